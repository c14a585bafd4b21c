// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/arrivals.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace gossamer::cluster {
namespace {

constexpr NodeId kThree{3};
constexpr NodeId kFour{4};
constexpr NodeId kFive{5};
constexpr auto kHere = Arrivals::Began::kHere;
using Nodes = std::vector<NodeId>;

constexpr auto kAllHeard = [](NodeId) { return true; };
Instant at_second(double seconds) { return Instant{} + from_seconds(seconds); }

// Claim: a member waits for others that join, and for nobody else. All that came in time serve together.
TEST(Arrivals, WaitForOthersThatJoin) {
  Arrivals arrivals;
  arrivals.ready(kThree, kHere, at_second(1));
  EXPECT_EQ(arrivals.take({kThree}, kAllHeard, at_second(1)), Nodes{kThree});
  EXPECT_TRUE(arrivals.take({}, kAllHeard, at_second(100)).empty()) << "each once";
  arrivals.ready(kFour, kHere, at_second(100));
  EXPECT_TRUE(arrivals.take({kFour, kFive}, kAllHeard, at_second(100)).empty());
  arrivals.ready(kFive, kHere, at_second(100.5));
  EXPECT_EQ(arrivals.take({kFour, kFive}, kAllHeard, at_second(100.5)), (Nodes{kFour, kFive}));
  EXPECT_FALSE(arrivals.next_wakeup());
}

// Claim: nobody waits longer than kTogether for members that do not become ready, or whose lives end.
TEST(Arrivals, WaitForALimitedTime) {
  Arrivals arrivals;
  arrivals.ready(kThree, kHere, at_second(1));
  EXPECT_TRUE(arrivals.take({kThree, kFour}, kAllHeard, at_second(1.999)).empty());
  EXPECT_EQ(arrivals.next_wakeup(), at_second(1) + Arrivals::kTogether);
  EXPECT_EQ(arrivals.take({kThree, kFour}, kAllHeard, at_second(2)), Nodes{kThree});
  arrivals.ready(kFive, kHere, at_second(3));
  EXPECT_TRUE(arrivals.take({kFour, kFive}, kAllHeard, at_second(3)).empty());
  arrivals.gone(kFour, {}, at_second(3.1));
  EXPECT_EQ(arrivals.take({kFive}, kAllHeard, at_second(3.1)), Nodes{kFive});
}

// Claim: one that is not heard serves later, and keeps nobody: it is looked at within a second again.
TEST(Arrivals, TheSilentServeLater) {
  Arrivals arrivals;
  const auto three_is_silent = [](NodeId node) { return node != kThree; };
  arrivals.ready(kThree, kHere, at_second(1));
  arrivals.ready(kFour, kHere, at_second(1));
  EXPECT_EQ(arrivals.take({kThree, kFour}, three_is_silent, at_second(1)), Nodes{kFour});
  EXPECT_EQ(arrivals.next_wakeup(), at_second(2));
  arrivals.ready(kFive, kHere, at_second(1.5));
  EXPECT_EQ(arrivals.take({kThree, kFive}, three_is_silent, at_second(1.5)), Nodes{kFive});
  EXPECT_TRUE(arrivals.take({kThree}, three_is_silent, at_second(60)).empty());
  EXPECT_EQ(arrivals.take({kThree}, kAllHeard, at_second(61)), Nodes{kThree});
  EXPECT_FALSE(arrivals.next_wakeup());
}

// Claim: a member that is gone serves no more. Nobody waits for one that has to wait after short lives. A
// life that began with another coordinator does not wait.
TEST(Arrivals, AfterShortLives) {
  Arrivals arrivals;
  for (int life = 0; life < 4; ++life) {
    arrivals.ready(kThree, kHere, at_second(life));
    arrivals.gone(kThree, at_second(life), at_second(life + 0.1));
    EXPECT_TRUE(arrivals.take({}, kAllHeard, at_second(life + 0.1)).empty());
  }
  arrivals.ready(kThree, kHere, at_second(3.2));
  arrivals.ready(kFour, kHere, at_second(3.2));
  EXPECT_EQ(arrivals.take({kThree, kFour}, kAllHeard, at_second(3.2)), Nodes{kFour});
  ASSERT_TRUE(arrivals.next_wakeup());
  EXPECT_GT(*arrivals.next_wakeup(), at_second(3.5));
  EXPECT_EQ(arrivals.take({kThree}, kAllHeard, *arrivals.next_wakeup()), Nodes{kThree});
  arrivals.ready(kThree, Arrivals::Began::kBefore, at_second(3.3));
  EXPECT_EQ(arrivals.take({kThree}, kAllHeard, at_second(3.3)), Nodes{kThree});
}

}  // namespace
}  // namespace gossamer::cluster
