// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace gossamer::sparse {

float Schedule::learning_rate(StepNumber step) const {
  CHECK(total_steps >= 1, total_steps);
  const auto t = static_cast<double>(step.value);
  const double progress = std::min(1.0, t / static_cast<double>(total_steps));
  const double warm = warmup_steps == 0 ? 1.0 : std::min(1.0, (t + 1.0) / static_cast<double>(warmup_steps));
  double factor = 1;
  switch (decay) {
    case Decay::kConstant: break;
    case Decay::kLinear: factor = 1 - progress; break;
    case Decay::kCosine: factor = 0.5 * (1 + std::cos(std::numbers::pi * progress)); break;
  }
  return static_cast<float>(peak * warm * factor);
}

}  // namespace gossamer::sparse
