// SPDX-License-Identifier: Apache-2.0
//
// StepRate says how fast a run commits steps, from samples of the last ten seconds. Thread rule: one owner.
#pragma once

#include <deque>
#include <optional>

#include "base/ids.h"
#include "base/time.h"

namespace gossamer::node {

class StepRate {
 public:
  static constexpr Duration kOver{10'000'000'000};
  static constexpr Duration kEvery{500'000'000};  // samples closer together are left out

  void saw(StepNumber step, Instant now) {
    // After a takeover another coordinator's step may be lower.
    if (!seen_.empty() && step < seen_.back().step) seen_.clear();
    if (!seen_.empty() && now - seen_.back().when < kEvery) return;
    seen_.push_back({now, step});
    while (now - seen_.front().when > kOver) seen_.pop_front();
  }
  // The rate; nothing before there are two samples.
  [[nodiscard]] std::optional<double> steps_per_second() const {
    if (seen_.size() < 2) return std::nullopt;
    const auto steps = static_cast<double>(seen_.back().step.value - seen_.front().step.value);
    return steps / (seen_.back().when - seen_.front().when).seconds();
  }

 private:
  struct Sample {
    Instant when;
    StepNumber step;
  };
  std::deque<Sample> seen_;
};

}  // namespace gossamer::node
