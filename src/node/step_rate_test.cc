// SPDX-License-Identifier: Apache-2.0
#include "node/step_rate.h"

#include <gtest/gtest.h>

namespace gossamer::node {
namespace {

Instant at(double seconds) { return Instant{} + from_seconds(seconds); }

// One sample gives no rate. Then the rate is the slope over the last ten seconds, whatever was before.
TEST(StepRate, IsOfTheLastTenSeconds) {
  StepRate rate;
  rate.saw(StepNumber(100), at(0));
  EXPECT_FALSE(rate.steps_per_second().has_value());
  rate.saw(StepNumber(200), at(1));
  EXPECT_DOUBLE_EQ(*rate.steps_per_second(), 100);
  for (int second = 2; second <= 30; ++second)
    rate.saw(StepNumber(200 + 7 * static_cast<std::uint64_t>(second - 1)), at(second));
  EXPECT_DOUBLE_EQ(*rate.steps_per_second(), 7);
  for (int second = 31; second <= 41; ++second) rate.saw(StepNumber(403), at(second));
  EXPECT_DOUBLE_EQ(*rate.steps_per_second(), 0);
}

// A step below the last one begins the measurement anew.
TEST(StepRate, BeginsAnew) {
  StepRate rate;
  rate.saw(StepNumber(100), at(0));
  rate.saw(StepNumber(110), at(1));
  rate.saw(StepNumber(50), at(2));
  EXPECT_FALSE(rate.steps_per_second().has_value());
}

}  // namespace
}  // namespace gossamer::node
