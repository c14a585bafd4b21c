// SPDX-License-Identifier: Apache-2.0
#include "exact/step_factors.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "exact/exact_math.h"

namespace gossamer::exact {
namespace {

// The part of the falling steps that is over: 0 at the first step after the warm-up, 1 at the last of the
// run.
double progress(const RateSchedule& schedule, std::uint64_t step) {
  const std::uint64_t before_last = schedule.steps - 1;
  const std::uint64_t falling = before_last > schedule.warmup ? before_last - schedule.warmup : 1;
  return std::min(1.0, static_cast<double>(step - schedule.warmup) / static_cast<double>(falling));
}

template <class T>
AdamWFactors<T> factors(const AdamWOptions& options, const StepNumbers& numbers) {
  const double bias1 = 1 - power(options.beta1, numbers.step + 1);
  const double bias2 = 1 - power(options.beta2, numbers.step + 1);
  return {.gradient_scale = static_cast<T>(numbers.gradient_scale),
          .weight_scale = static_cast<T>(1 - numbers.rate * options.weight_decay),
          .beta2 = static_cast<T>(options.beta2),
          .one_minus_beta1 = static_cast<T>(1 - options.beta1),
          .one_minus_beta2 = static_cast<T>(1 - options.beta2),
          .step_size = static_cast<T>(numbers.rate / bias1),
          .root_bias2 = static_cast<T>(std::sqrt(bias2)),
          .epsilon = static_cast<T>(options.epsilon)};
}

}  // namespace

double learning_rate(const RateSchedule& schedule, std::uint64_t step) {
  CHECK(schedule.steps >= 1);
  if (step < schedule.warmup)
    return schedule.peak * (static_cast<double>(step + 1) / static_cast<double>(schedule.warmup + 1));
  const double above_floor = 1 - schedule.floor_share;
  switch (schedule.shape) {
    case RateShape::kConstant: return schedule.peak;
    case RateShape::kLinear: return schedule.peak * (1 - above_floor * progress(schedule, step));
    case RateShape::kCosine: break;
  }
  const double falling = (1 + cosine(progress(schedule, step) / 2)) / 2;
  return schedule.peak * (schedule.floor_share + above_floor * falling);
}

double clip_factor(double norm, double limit) {
  CHECK(std::isfinite(norm) && norm >= 0, norm);
  constexpr double kAboveZero = 1e-6;
  return limit == 0 ? 1 : std::min(1.0, limit / (norm + kAboveZero));
}

template <>
AdamWFactors<float> adamw_factors<float>(const AdamWOptions& options, const StepNumbers& numbers) {
  return factors<float>(options, numbers);
}
template <>
AdamWFactors<double> adamw_factors<double>(const AdamWOptions& options, const StepNumbers& numbers) {
  return factors<double>(options, numbers);
}

}  // namespace gossamer::exact
