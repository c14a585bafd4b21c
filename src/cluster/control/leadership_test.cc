// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/leadership.h"

#include <gtest/gtest.h>

#include <vector>

namespace gossamer::cluster {
namespace {

// Seconds of the clock at the first report: a machine may have been up for a moment only.
class BelievedLossesFrom : public ::testing::TestWithParam<double> {};

// Claim: of a member that reports losses all the time, one report counts after half a second, and then after
// twice as long each time, at most a minute. After a minute without any it begins anew.
TEST_P(BelievedLossesFrom, CountLessOften) {
  BelievedLosses losses;
  Instant now = Instant{} + from_seconds(GetParam());
  EXPECT_TRUE(losses.take(now));
  const auto tenths_until_one_counts = [&] {
    for (int tenths = 1; tenths < 10'000; ++tenths) {
      now = now + from_milliseconds(100);
      if (losses.take(now)) return tenths;
    }
    return 0;
  };
  for (const int tenths : {5, 10, 20, 40, 80, 160, 320, 600, 600})
    EXPECT_EQ(tenths_until_one_counts(), tenths);
  now = now + from_seconds(60 + 59);
  EXPECT_TRUE(losses.take(now));
  EXPECT_EQ(tenths_until_one_counts(), 600);
  now = now + from_seconds(60 + 61);
  EXPECT_TRUE(losses.take(now));
  EXPECT_EQ(tenths_until_one_counts(), 5);
}

INSTANTIATE_TEST_SUITE_P(Times, BelievedLossesFrom, ::testing::Values(0.0, 1.0, 59.0, 1000.0));

}  // namespace
}  // namespace gossamer::cluster
