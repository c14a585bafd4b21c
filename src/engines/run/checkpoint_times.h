// SPDX-License-Identifier: Apache-2.0
//
// CheckpointTimes: when a process that trains alone writes a checkpoint: every so many steps, every so many
// minutes, and after the last step. Thread rule: one owner.
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/time.h"

namespace gossamer::engine {

class CheckpointTimes {
 public:
  struct Options {
    std::uint64_t every_steps = 0;  // 0: by time alone
    double every_minutes = 0;       // 0: by steps alone. Both 0: never, also not after the last step
    std::uint64_t steps = 1;        // of the run
  };
  explicit CheckpointTimes(const Options& options) : options_(options) {}

  // Whether one is due before the step `next`.
  [[nodiscard]] bool due(StepNumber next, Instant now) const {
    if (next.value == options_.steps) return options_.every_steps > 0 || options_.every_minutes > 0;
    if (options_.every_steps > 0 && next.value % options_.every_steps == 0) return true;
    return options_.every_minutes > 0 && now - saved_ >= from_seconds(60 * options_.every_minutes);
  }
  // One was written, or could not be, or the run begins.
  void saved(Instant now) { saved_ = now; }

 private:
  Options options_;
  Instant saved_;
};

}  // namespace gossamer::engine
