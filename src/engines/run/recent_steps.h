// SPDX-License-Identifier: Apache-2.0
//
// RecentSteps: what a member tells its coordinator of its last steps, for people that watch the run. Thread
// rule: one owner.
#pragma once

#include <gossamer/membership.pb.h>

#include <algorithm>
#include <cstddef>
#include <deque>

#include "engines/run/sent_bytes.h"

namespace gossamer::engine {

class RecentSteps {
 public:
  static constexpr std::size_t kSteps = 100;

  // A step was applied. `loss`: this member's part of it. `sent`: bytes that this life has sent so far.
  void add(double loss, const SentBytes& sent) {
    steps_.push_back({.loss = loss, .sent = sent});
    if (steps_.size() > kSteps + 1) steps_.pop_front();
  }
  // The parts of the network have moved. A member's part of the loss before cannot be compared with its part
  // after.
  void clear() { steps_.clear(); }

  // Means of the last steps. Requires at least one step. Means of bytes need a second one, and are 0 until
  // then.
  [[nodiscard]] membership::StepFigures figures() const {
    membership::StepFigures figures;
    const std::size_t count = std::min(steps_.size(), kSteps);
    double loss = 0;
    for (std::size_t i = steps_.size() - count; i < steps_.size(); ++i) loss += steps_[i].loss;
    figures.set_loss(loss / static_cast<double>(count));
    if (steps_.size() < 2) return figures;
    const SentBytes& first = steps_.front().sent;
    const SentBytes& last = steps_.back().sent;
    const auto intervals = static_cast<double>(steps_.size() - 1);
    figures.set_step_bytes(static_cast<double>(last.steps - first.steps) / intervals);
    figures.set_background_bytes(static_cast<double>(last.background - first.background) / intervals);
    return figures;
  }

 private:
  struct Step {
    double loss = 0;
    SentBytes sent;
  };
  std::deque<Step> steps_;
};

}  // namespace gossamer::engine
