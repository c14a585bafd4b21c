// SPDX-License-Identifier: Apache-2.0
#include "engines/run/checkpoint_times.h"

#include <gtest/gtest.h>

namespace gossamer::engine {
namespace {

Instant minute(double minutes) { return Instant{} + from_seconds(60 * minutes); }

// Claim: checkpoints are due at every multiple of `every_steps` and after the last step, and not between.
TEST(CheckpointTimes, BySteps) {
  const CheckpointTimes times({.every_steps = 4, .steps = 10});
  for (std::uint64_t next = 1; next <= 10; ++next)
    EXPECT_EQ(times.due(StepNumber(next), minute(1000)), next % 4 == 0 || next == 10) << next;
}

// Claim: they are due so many minutes after the one before, and after the last step.
TEST(CheckpointTimes, ByMinutes) {
  CheckpointTimes times({.every_minutes = 5, .steps = 10});
  times.saved(minute(2));
  EXPECT_FALSE(times.due(StepNumber(1), minute(6.9)));
  EXPECT_TRUE(times.due(StepNumber(1), minute(7)));
  times.saved(minute(7));
  EXPECT_FALSE(times.due(StepNumber(2), minute(8)));
  EXPECT_TRUE(times.due(StepNumber(10), minute(8)));
}

// Claim: without both there is none, also not at the end.
TEST(CheckpointTimes, Never) {
  const CheckpointTimes times({.steps = 10});
  EXPECT_FALSE(times.due(StepNumber(5), minute(1000)));
  EXPECT_FALSE(times.due(StepNumber(10), minute(1000)));
}

}  // namespace
}  // namespace gossamer::engine
