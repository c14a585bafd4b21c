// SPDX-License-Identifier: Apache-2.0
//
// Schedule: the learning rate of each step. A linear warm-up (small first steps while Adam's moments are
// noise), then constant, a straight line to 0 or half a cosine to 0.
//
// Thread rule: plain values.
#pragma once

#include <cstdint>

#include "base/ids.h"

namespace gossamer::sparse {

enum class Decay { kLinear, kCosine, kConstant };

struct Schedule {
  double peak = 0.01;
  std::uint64_t warmup_steps = 50;
  std::uint64_t total_steps = 1;  // >= 1
  Decay decay = Decay::kLinear;

  // At step t: peak * min(1, (t + 1) / warmup_steps) * decay(t / total_steps), where decay falls from 1 at
  // t = 0 to 0 at total_steps and stays there. Never negative.
  [[nodiscard]] float learning_rate(StepNumber step) const;
};

// What a step needs to know of the schedule.
struct StepSchedule {
  float learning_rate = 0;
};

}  // namespace gossamer::sparse
