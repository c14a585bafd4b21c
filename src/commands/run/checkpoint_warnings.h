// SPDX-License-Identifier: Apache-2.0
//
// CheckpointWarnings tells people that no checkpoint can be written, also when quiet. A full disk fails each
// of them. So people are told of the first one, again after a while, and when one is written once more.
//
// Thread rule: the thread that trains or leads.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/counters.h"
#include "base/time.h"
#include "run/node_host.h"

namespace gossamer::commands {

class CheckpointWarnings {
 public:
  static constexpr Duration kAgain{600'000'000'000};  // between two warnings of the same failures

  // Borrows `host` for its life.
  explicit CheckpointWarnings(const run::NodeHost& host) : host_(host) {}

  // Takes each event of a run. `checkpoint_failed` has a step, an error and perhaps a node.
  void on_event(std::string_view name, EventFields fields);

 private:
  void failed(EventFields fields);

  const run::NodeHost& host_;
  std::uint64_t failed_ = 0;       // steps since the last one that was written
  std::uint64_t failed_step_ = 0;  // of the newest of them
  std::optional<Instant> told_;    // when people were warned last
};

}  // namespace gossamer::commands
