// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/release_clock.h"

#include <gtest/gtest.h>

namespace gossamer::cluster {
namespace {

Instant after(double seconds) { return Instant{} + from_seconds(seconds); }

// Claim: where nobody joins, members may go at once. Otherwise they wait ten seconds from when they began to
// wait, however often it is asked. The time to ask again is told once.
TEST(ReleaseClock, WaitsOnce) {
  ReleaseClock clock;
  EXPECT_TRUE(clock.may_go(false, after(1)));
  EXPECT_FALSE(clock.next_look());
  EXPECT_FALSE(clock.may_go(true, after(2)));
  EXPECT_FALSE(clock.may_go(true, after(11)));
  EXPECT_EQ(clock.next_look(), after(12));
  EXPECT_FALSE(clock.take_due(after(11.9)));
  EXPECT_TRUE(clock.take_due(after(12)));
  EXPECT_TRUE(clock.may_go(true, after(12)));
  EXPECT_FALSE(clock.take_due(after(13)));
  EXPECT_FALSE(clock.next_look());
  EXPECT_TRUE(clock.may_go(true, after(50))) << "another one that joins does not stop them";
}

// Claim: members that drain later wait anew, and the time to ask again is told anew.
TEST(ReleaseClock, BeginsAnew) {
  ReleaseClock clock;
  EXPECT_FALSE(clock.may_go(true, after(0)));
  EXPECT_TRUE(clock.take_due(after(10)));
  EXPECT_TRUE(clock.may_go(true, after(10)));
  clock.end();
  EXPECT_FALSE(clock.next_look());
  EXPECT_FALSE(clock.may_go(true, after(20)));
  EXPECT_EQ(clock.next_look(), after(30));
  EXPECT_TRUE(clock.take_due(after(30)));
}

}  // namespace
}  // namespace gossamer::cluster
