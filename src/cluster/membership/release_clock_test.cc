// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/release_clock.h"

#include <gtest/gtest.h>

namespace gossamer::cluster {
namespace {

Instant at(double seconds) { return Instant{} + from_seconds(seconds); }

// Claim: where nobody joins, members may go at once. Otherwise they wait ten seconds from when they began to
// wait, however often it is asked. The time to ask again is told once.
TEST(ReleaseClock, WaitsOnce) {
  ReleaseClock clock;
  EXPECT_TRUE(clock.may_go(false, at(1)));
  EXPECT_FALSE(clock.next_look());
  EXPECT_FALSE(clock.may_go(true, at(2)));
  EXPECT_FALSE(clock.may_go(true, at(11)));
  EXPECT_EQ(clock.next_look(), at(12));
  EXPECT_FALSE(clock.take_due(at(11.9)));
  EXPECT_TRUE(clock.take_due(at(12)));
  EXPECT_TRUE(clock.may_go(true, at(12)));
  EXPECT_FALSE(clock.take_due(at(13)));
  EXPECT_FALSE(clock.next_look());
  EXPECT_TRUE(clock.may_go(true, at(50))) << "another one that joins does not stop them";
}

// Claim: members that drain later wait anew.
TEST(ReleaseClock, BeginsAnew) {
  ReleaseClock clock;
  EXPECT_FALSE(clock.may_go(true, at(0)));
  EXPECT_TRUE(clock.may_go(true, at(10)));
  clock.end();
  EXPECT_FALSE(clock.next_look());
  EXPECT_FALSE(clock.may_go(true, at(20)));
  EXPECT_EQ(clock.next_look(), at(30));
}

}  // namespace
}  // namespace gossamer::cluster
