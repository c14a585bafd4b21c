// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network/schedule.h"

#include <gtest/gtest.h>

namespace gossamer::sparse {
namespace {

// Each decay at its start, quarters and end, without a warm-up; zero past the end. The cosine falls slowly at
// first and last.
TEST(Schedule, DecaysFromPeakToZero) {
  for (const Decay decay : {Decay::kLinear, Decay::kCosine}) {
    const Schedule s{.peak = 2, .warmup_steps = 0, .total_steps = 100, .decay = decay};
    EXPECT_FLOAT_EQ(s.learning_rate(StepNumber{0}), 2);
    EXPECT_NEAR(s.learning_rate(StepNumber{50}), 1, 1e-6);
    EXPECT_NEAR(s.learning_rate(StepNumber{100}), 0, 1e-6);
    EXPECT_NEAR(s.learning_rate(StepNumber{1000}), 0, 1e-6);
  }
  const Schedule line{.peak = 2, .warmup_steps = 0, .total_steps = 100, .decay = Decay::kLinear};
  EXPECT_NEAR(line.learning_rate(StepNumber{25}), 1.5, 1e-6);
  EXPECT_NEAR(line.learning_rate(StepNumber{75}), 0.5, 1e-6);
  const Schedule cosine{.peak = 2, .warmup_steps = 0, .total_steps = 100, .decay = Decay::kCosine};
  EXPECT_NEAR(cosine.learning_rate(StepNumber{25}), 1.7071068, 1e-6);
  EXPECT_NEAR(cosine.learning_rate(StepNumber{75}), 0.2928932, 1e-6);
  const Schedule constant{.peak = 2, .warmup_steps = 0, .total_steps = 100, .decay = Decay::kConstant};
  EXPECT_FLOAT_EQ(constant.learning_rate(StepNumber{1000}), 2);
}

// The warm-up rises in equal parts, the first of them at step 0, and multiplies the decay.
TEST(Schedule, WarmsUpLinearly) {
  const Schedule s{.peak = 1, .warmup_steps = 4, .total_steps = 8, .decay = Decay::kLinear};
  EXPECT_FLOAT_EQ(s.learning_rate(StepNumber{0}), 0.25F);
  EXPECT_FLOAT_EQ(s.learning_rate(StepNumber{1}), 0.5F * 7 / 8);
  EXPECT_FLOAT_EQ(s.learning_rate(StepNumber{3}), 5.0F / 8);
  EXPECT_FLOAT_EQ(s.learning_rate(StepNumber{6}), 2.0F / 8);
}

}  // namespace
}  // namespace gossamer::sparse
