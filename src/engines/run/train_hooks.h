// SPDX-License-Identifier: Apache-2.0
//
// TrainHooks: how the training of a run is watched and stopped, whatever is trained. Thread rule: called on
// the thread that trains or leads, between steps.
#pragma once

#include <cstdint>
#include <optional>

#include "base/counters.h"
#include "base/function_ref.h"

namespace gossamer::engine {

// The progress after a step.
struct TrainProgress {
  std::uint64_t steps_done = 0;  // in the whole run, with those before a resume
  std::uint64_t steps_total = 0;
  std::uint64_t samples_done = 0;
  double epoch = 0;  // samples_done / samples of an epoch
  double loss = 0;   // mean over this step's samples, nats
  double learning_rate = 0;
  std::optional<std::uint64_t> active_rows = {};  // of engines that choose rows in each step
  bool just_done = true;                          // false: some time ago, when is not known
};

struct TrainHooks {
  // Called in order. A step that is not behind the one before begins anew: the later ones come once more.
  FunctionRef<void(const TrainProgress&)> on_step;
  // Asked after each step; true ends the run with a checkpoint.
  FunctionRef<bool()> stop_requested;
  EventSink events;
};

}  // namespace gossamer::engine
