// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network/adam.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace gossamer::sparse {

PowerTable::PowerTable(double base) : low_(), high_() {
  for (std::size_t i = 0; i < kSize; ++i) {
    low_[i] = static_cast<float>(std::pow(base, static_cast<double>(i)));
    high_[i] = static_cast<float>(std::pow(base, static_cast<double>(i * kSize)));
  }
}

MomentBound::MomentBound(const OptimizerOptions& options, Moments kind, std::uint64_t updates) {
  // Four roundings of floats an update, with those of the powers. First moments of a block are stored in
  // bf16.
  constexpr double kRounding = 0x1p-20;
  constexpr double kHalfRounding = 0x1p-8;
  // An update loses less than this of v: 16 squares below the smallest normal float.
  constexpr double kLost = 0x1p-122;
  constexpr double kMargin = 1.02;
  const bool block = kind == Moments::kBlock;
  const double beta1 = options.beta1 * (1 + kRounding) * (block ? 1 + kHalfRounding : 1);
  const double beta2 = options.beta2 * (1 - kRounding);
  const double q = beta1 * beta1 / beta2;
  const auto n = static_cast<double>(updates);
  const double sum = q == 1 ? n : (1 - std::pow(q, n)) / (1 - q);
  const double newest = (1 - options.beta1) * (1 - options.beta1) / (1 - options.beta2);
  ratio_ = kMargin * newest * sum * (block ? static_cast<double>(kernels::kMomentBlock) : 1);
  lost_ = kLost / (1 - beta2);
}

RowOptimizer::RowOptimizer(const OptimizerOptions& options)
    : options_(options),
      beta1_powers_(options.beta1),
      beta2_powers_(options.beta2),
      ratio_powers_(options.beta1 / std::sqrt(options.beta2)),
      ratio_(options.beta1 / std::sqrt(options.beta2)) {
  CHECK(options.beta1 >= 0 && options.beta1 < 1, options.beta1);
  CHECK(options.beta2 > options.beta1 * options.beta1 && options.beta2 < 1, options.beta1, options.beta2);
}

void RowOptimizer::begin_step(StepNumber step, float learning_rate) {
  CHECK(step.value < UINT32_MAX, step.value);
  now_ = static_cast<std::uint32_t>(step.value) + 1;
  learning_rate_ = learning_rate;
  const double t = now_;
  step_ = {.step_size = static_cast<float>(learning_rate / (1 - std::pow(options_.beta1, t))),
           .inv_sqrt_bias2 = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, t))),
           .beta1 = static_cast<float>(options_.beta1),
           .beta2 = static_cast<float>(options_.beta2),
           .one_minus_beta1 = static_cast<float>(1 - options_.beta1),
           .one_minus_beta2 = static_cast<float>(1 - options_.beta2),
           .epsilon = static_cast<float>(options_.epsilon)};
}

kernels::AdamCoefficients RowOptimizer::coefficients(std::uint64_t skipped) const {
  kernels::AdamCoefficients c = step_;
  if (options_.skipped == SkippedSteps::kHold || skipped == 0) return c;
  c.decay1 = beta1_powers_.power(skipped);
  c.decay2 = beta2_powers_.power(skipped);
  // A decay of 0 would let the rest of m move its weight by a huge step, and an infinite v would end as a
  // NaN.
  c.decay2 = std::max(c.decay2, std::numeric_limits<float>::min());
  if (options_.skipped == SkippedSteps::kDecayAndMove) {
    // sum of ratio^j for j = 1..skipped
    const double sum = ratio_ * (1.0 - static_cast<double>(ratio_powers_.power(skipped))) / (1.0 - ratio_);
    c.skipped_move = step_.step_size * static_cast<float>(sum);
  }
  return c;
}

kernels::AdamCoefficients RowOptimizer::update(const kernels::Kernels& k, RowTable& table, std::uint32_t row,
                                               const float* gradient) const {
  std::uint32_t& last = table.last_step(row);
  const std::uint64_t skipped = last == 0 || now_ <= last ? 0 : now_ - last - 1;
  last = now_;
  const kernels::AdamCoefficients c = coefficients(skipped);
  if (options_.kind == OptimizerKind::kSgd) {
    k.add_scaled(table.weights(row), gradient, -learning_rate_, table.stride());
  } else if (table.moments() == Moments::kBlock) {
    k.adam_blocks({.w = table.weights(row),
                   .m = table.block_moment1(row),
                   .v = table.block_moment2(row),
                   .g = gradient,
                   .n = table.stride(),
                   .used = table.width()},
                  c);
  } else {
    k.adam_row({.w = table.weights(row),
                .m = table.moment1(row),
                .v = table.moment2(row),
                .g = gradient,
                .n = table.stride()},
               c);
  }
  return c;
}

void RowOptimizer::update_scalar(const AdamScalar& scalar, float gradient,
                                 const kernels::AdamCoefficients& c) const {
  if (options_.kind == OptimizerKind::kSgd) {
    *scalar.w -= learning_rate_ * gradient;
    return;
  }
  float m = *scalar.m;
  float v = *scalar.v;
  float w = *scalar.w;
  w -= c.skipped_move * m / (std::sqrt(v) * c.inv_sqrt_bias2 + c.epsilon);
  m = c.beta1 * (c.decay1 * m) + c.one_minus_beta1 * gradient;
  v = c.beta2 * (c.decay2 * v) + c.one_minus_beta2 * gradient * gradient;
  w -= c.step_size * m / (std::sqrt(v) * c.inv_sqrt_bias2 + c.epsilon);
  *scalar.m = m;
  *scalar.v = v;
  *scalar.w = w;
}

}  // namespace gossamer::sparse
