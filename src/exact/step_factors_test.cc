// SPDX-License-Identifier: Apache-2.0
#include "exact/step_factors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numbers>

namespace gossamer::exact {
namespace {

constexpr RateSchedule kTenSteps{
    .shape = RateShape::kCosine, .peak = 0.5, .warmup = 3, .steps = 10, .floor_share = 0.1};

RateSchedule ten_steps(RateShape shape) {
  RateSchedule schedule = kTenSteps;
  schedule.shape = shape;
  return schedule;
}

// Claim: all shapes rise evenly, never from zero, and reach the peak at the first step after the warm-up.
TEST(LearningRate, RisesToThePeak) {
  for (const RateShape shape : {RateShape::kConstant, RateShape::kLinear, RateShape::kCosine}) {
    for (std::uint64_t step = 0; step < 4; ++step)
      EXPECT_DOUBLE_EQ(learning_rate(ten_steps(shape), step), 0.5 * static_cast<double>(step + 1) / 4)
          << step;
  }
}

// Claim: the last step has the floor, and so has every later one, should a run be made longer.
TEST(LearningRate, FallsToTheFloor) {
  for (const RateShape shape : {RateShape::kLinear, RateShape::kCosine}) {
    EXPECT_DOUBLE_EQ(learning_rate(ten_steps(shape), 9), 0.05);
    EXPECT_DOUBLE_EQ(learning_rate(ten_steps(shape), 10), 0.05);
    EXPECT_DOUBLE_EQ(learning_rate(ten_steps(shape), 1'000'000), 0.05);
  }
  EXPECT_EQ(learning_rate(ten_steps(RateShape::kConstant), 9), 0.5);
}

// Claim: between them the rate is that of the formula.
TEST(LearningRate, FollowsItsFormula) {
  for (std::uint64_t step = 3; step < 10; ++step) {
    const double p = static_cast<double>(step - 3) / 6;
    EXPECT_NEAR(learning_rate(ten_steps(RateShape::kLinear), step), 0.5 * (1 - 0.9 * p), 1e-15);
    EXPECT_NEAR(learning_rate(ten_steps(RateShape::kCosine), step),
                0.5 * (0.1 + 0.9 * (1 + std::cos(std::numbers::pi * p)) / 2), 1e-15);
  }
}

// Claim: runs of one step, without warm-up, or shorter than their warm-up have a rate at each step.
TEST(LearningRate, OfShortRuns) {
  EXPECT_EQ(learning_rate({.peak = 2, .warmup = 0, .steps = 1}, 0), 2);
  EXPECT_EQ(learning_rate({.peak = 2, .warmup = 4, .steps = 2}, 1), 0.8);
  EXPECT_EQ(learning_rate({.peak = 2, .warmup = 1, .steps = 2}, 1), 2);
  EXPECT_EQ(learning_rate({.peak = 2, .warmup = 0, .steps = 2}, 1), 0);
}

// Claim: a norm below the limit is left alone, a larger one comes down to it, and a limit of 0 is none.
TEST(ClipFactor, BoundsTheNorm) {
  EXPECT_EQ(clip_factor(0, 1), 1);
  EXPECT_EQ(clip_factor(0.5, 1), 1);
  EXPECT_NEAR(clip_factor(8, 1) * 8, 1, 1e-6);
  EXPECT_EQ(clip_factor(8, 0), 1);
}

// Claim: with step_size and root_bias2 the first step moves each weight by the rate, whatever its gradient.
TEST(AdamWFactorsOfStep, FirstStepMovesByTheRate) {
  const auto f = adamw_factors<double>({.epsilon = 0, .weight_decay = 0}, {.step = 0, .rate = 0.01});
  for (const double gradient : {1e-6, -3.0, 1e5}) {
    double weight = 1;
    double first = 0;
    double second = 0;
    dense_update<double>(kernels::Isa::kScalar)
        .adamw({.weights = &weight, .first = &first, .second = &second, .gradients = &gradient, .n = 1}, f);
    EXPECT_NEAR(weight, 1 - std::copysign(0.01, gradient), 1e-14);
  }
}

// Claim: weights without gradient shrink by rate * weight decay, and nothing else.
TEST(AdamWFactorsOfStep, DecaysApartFromTheGradient) {
  const auto f = adamw_factors<double>({.weight_decay = 0.5}, {.step = 41, .rate = 0.01});
  double weight = 8;
  double first = 0;
  double second = 0;
  const double gradient = 0;
  dense_update<double>(kernels::Isa::kScalar)
      .adamw({.weights = &weight, .first = &first, .second = &second, .gradients = &gradient, .n = 1}, f);
  EXPECT_DOUBLE_EQ(weight, 8 * (1 - 0.01 * 0.5));
}

// Claim: after many steps the corrections are gone.
TEST(AdamWFactorsOfStep, CorrectionsVanish) {
  const auto early = adamw_factors<double>({}, {.step = 1, .rate = 0.01});
  EXPECT_NEAR(early.step_size, 0.01 / (1 - 0.9 * 0.9), 1e-15);
  EXPECT_NEAR(early.root_bias2, std::sqrt(1 - 0.95 * 0.95), 1e-15);
  const auto late = adamw_factors<double>({}, {.step = 1'000'000, .rate = 0.01});
  EXPECT_EQ(late.step_size, 0.01);
  EXPECT_EQ(late.root_bias2, 1);
}

}  // namespace
}  // namespace gossamer::exact
