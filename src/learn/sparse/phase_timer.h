// SPDX-License-Identifier: Apache-2.0
//
// PhaseTimer: how long one worker spent in each part of a step. Without a clock it does nothing.
//
// Owner: one worker. Thread rule: one owner at a time.
#pragma once

#include "host/api/clock.h"

namespace gossamer::sparse {

class PhaseTimer {
 public:
  explicit PhaseTimer(const host::Clock* clock) : clock_(clock) {}

  void start() {
    if (clock_ != nullptr) last_ = clock_->now();
  }
  // Adds the time since start() or the last lap to `milliseconds`.
  void lap(double& milliseconds) {
    if (clock_ == nullptr) return;
    const Instant now = clock_->now();
    milliseconds += (now - last_).milliseconds();
    last_ = now;
  }

 private:
  const host::Clock* clock_;
  Instant last_ = {};
};

}  // namespace gossamer::sparse
