// SPDX-License-Identifier: Apache-2.0
#include "engines/run/recent_steps.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gossamer::engine {
namespace {

// Claim: a member tells means over its last 100 steps: of its part of the loss, and of the bytes between two
// steps, which a single step has not.
TEST(RecentSteps, TellsMeansOfTheLastOnes) {
  RecentSteps steps;
  steps.add(4, {.steps = 1000, .background = 70});
  EXPECT_EQ(steps.figures().loss(), 4);
  EXPECT_EQ(steps.figures().step_bytes(), 0);
  EXPECT_EQ(steps.figures().background_bytes(), 0);
  steps.add(2, {.steps = 1600, .background = 80});
  EXPECT_EQ(steps.figures().loss(), 3);
  EXPECT_EQ(steps.figures().step_bytes(), 600);
  EXPECT_EQ(steps.figures().background_bytes(), 10);
  for (std::uint64_t i = 1; i <= 50; ++i) steps.add(1, {.steps = 1600 + 100 * i, .background = 80 + 5 * i});
  EXPECT_GT(steps.figures().loss(), 1);
  EXPECT_GT(steps.figures().step_bytes(), 100);
  for (std::uint64_t i = 51; i <= 100; ++i) steps.add(1, {.steps = 1600 + 100 * i, .background = 80 + 5 * i});
  EXPECT_EQ(steps.figures().loss(), 1);
  EXPECT_EQ(steps.figures().step_bytes(), 100);
  EXPECT_EQ(steps.figures().background_bytes(), 5);
}

// Claim: means begin anew when the parts of the network have moved.
TEST(RecentSteps, BeginAnew) {
  RecentSteps steps;
  for (std::uint64_t i = 1; i <= 10; ++i) steps.add(8, {.steps = 1000 * i, .background = 0});
  steps.clear();
  steps.add(2, {.steps = 50'000, .background = 0});
  EXPECT_EQ(steps.figures().loss(), 2);
  EXPECT_EQ(steps.figures().step_bytes(), 0);
}

}  // namespace
}  // namespace gossamer::engine
