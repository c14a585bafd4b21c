// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/departures.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace gossamer::cluster {
namespace {

constexpr NodeId kGoing{2};
constexpr NodeId kGoingToo{3};
constexpr NodeId kPartner{4};
constexpr NodeId kOutsider{5};

Instant departures_at(double seconds) { return Instant{} + from_seconds(seconds); }

class DeparturesTest : public ::testing::Test {
 protected:
  // The links of the two end in so many views.
  void spoil(NodeId by, NodeId of, int views) {
    for (int i = 0; i < views; ++i) departures_.spoilt(by, of, Epoch(++epoch_));
  }

  Departures departures_;
  std::uint64_t epoch_ = 0;
};

// Claim: all are to rest again 1, 2, 4 ... s after each Install, however many members follow the first. While
// they rest there is no next look, however long that takes. A first member later begins with 1 s again.
TEST_F(DeparturesTest, LooksLessAndLessOften) {
  departures_.add(kGoing, {});
  departures_.add(kGoingToo, {});
  double now = 0;
  for (double pause = 1; pause <= 512; pause *= 2) {
    EXPECT_FALSE(departures_.next_look());
    EXPECT_FALSE(departures_.is_due(departures_at(now + 1e4)));
    EXPECT_FALSE(departures_.is_over(kGoing));
    departures_.installed(departures_at(now));
    now += pause;
    EXPECT_EQ(departures_.next_look(), departures_at(now));
    EXPECT_FALSE(departures_.is_due(departures_at(now - 0.1)));
    EXPECT_TRUE(departures_.is_due(departures_at(now)));
    departures_.looks();
    now += 100;  // of rest
  }
  EXPECT_TRUE(departures_.is_over(kGoing));
  departures_.installed(departures_at(now));
  EXPECT_EQ(departures_.next_look(), departures_at(now + 512));
  (void)departures_.gone(kGoing);
  (void)departures_.gone(kGoingToo);
  EXPECT_FALSE(departures_.next_look());
  departures_.installed(departures_at(now));
  EXPECT_FALSE(departures_.next_look());
  departures_.add(kGoing, {});
  departures_.installed(departures_at(now));
  EXPECT_EQ(departures_.next_look(), departures_at(now + 1));
}

// Claim: a look that has to wait comes a second later. The time for a hand-over grows with looks alone, and
// counts from the Install after the last look.
TEST_F(DeparturesTest, ALookMayWait) {
  departures_.add(kGoing, {});
  departures_.installed(departures_at(0));
  for (int s = 1; s <= 100; ++s) {
    EXPECT_TRUE(departures_.is_due(departures_at(s)));
    departures_.put_off(departures_at(s));
    EXPECT_FALSE(departures_.is_due(departures_at(s + 0.9)));
  }
  departures_.looks();
  departures_.installed(departures_at(200));
  EXPECT_EQ(departures_.next_look(), departures_at(202));
}

// Claim: other rests do not push a look away, however many there are. After each there is a second to go on.
TEST_F(DeparturesTest, OtherRestsPushNoLookAway) {
  departures_.add(kGoing, {});
  for (int i = 0; i < 5; ++i) departures_.looks();
  for (int s = 0; s <= 31; ++s) {
    departures_.installed(departures_at(s));
    EXPECT_EQ(departures_.next_look(), departures_at(32)) << s;
    departures_.rest();
    EXPECT_FALSE(departures_.next_look());
  }
  departures_.installed(departures_at(40));
  EXPECT_EQ(departures_.next_look(), departures_at(41));
  departures_.looks();
  departures_.installed(departures_at(50));
  EXPECT_EQ(departures_.next_look(), departures_at(50 + 64)) << "twice the time";
}

// Claim: with the last that had to go its plan is gone. A later one begins with a plan of its own.
TEST_F(DeparturesTest, ThePlanGoesWithTheLast) {
  departures_.add(kGoing, {});
  departures_.installed(departures_at(0));
  (void)departures_.gone(kGoing);
  departures_.add(kGoingToo, {});
  departures_.installed(departures_at(100));
  EXPECT_EQ(departures_.next_look(), departures_at(101));
  departures_.rest();
  departures_.installed(departures_at(100.5));
  EXPECT_EQ(departures_.next_look(), departures_at(101.5)) << "its own plan, and a second";
}

// Claim: looks count anew from each step, and for each member from its own beginning.
TEST_F(DeparturesTest, LooksCountFromTheLastStep) {
  departures_.add(kGoing, {});
  for (int i = 0; i < 6; ++i) departures_.looks();
  departures_.add(kGoing, {});
  departures_.add(kGoingToo, {});
  for (int i = 0; i < 3; ++i) departures_.looks();
  EXPECT_FALSE(departures_.is_over(kGoing));
  departures_.looks();
  EXPECT_TRUE(departures_.is_over(kGoing));
  EXPECT_FALSE(departures_.is_over(kGoingToo));
  departures_.stepped();
  for (int i = 0; i < 9; ++i) departures_.looks();
  EXPECT_FALSE(departures_.is_over(kGoing));
  departures_.looks();
  EXPECT_TRUE(departures_.is_over(kGoing));
  EXPECT_FALSE(departures_.is_over(kPartner));
}

// Claim: three spoilt views are enough, whoever the other one is. A view counts once, and those of others do
// not count.
TEST_F(DeparturesTest, SpoiltViewsAreEnough) {
  departures_.add(kGoing, {});
  departures_.add(kGoingToo, {});
  spoil(kPartner, kOutsider, 5);
  spoil(kPartner, kGoing, 1);
  spoil(kGoing, kOutsider, 1);
  for (int i = 0; i < 5; ++i) departures_.spoilt(kOutsider, kGoing, Epoch(epoch_));
  EXPECT_FALSE(departures_.is_over(kGoing));
  spoil(kOutsider, kGoing, 1);
  EXPECT_TRUE(departures_.is_over(kGoing));
  EXPECT_FALSE(departures_.is_over(kGoingToo));
}

// Claim: the other one of a quarrel may go in the place of one that is needed, once in its life. It does not
// for views that third ones spoil, and nobody else does.
TEST_F(DeparturesTest, TheOtherGoesInItsPlaceOnce) {
  const auto quarrels = [&] {
    departures_.add(kGoing, kPartner);
    spoil(kOutsider, kGoing, 3);
    spoil(kGoing, kPartner, 2);
    EXPECT_EQ(departures_.in_its_place(kGoing), std::nullopt);
    spoil(kPartner, kGoing, 1);
    return departures_.in_its_place(kGoing);
  };
  EXPECT_EQ(quarrels(), kPartner);
  EXPECT_TRUE(departures_.gone(kOutsider).empty());
  EXPECT_EQ(departures_.gone(kPartner), std::set{kGoing});
  EXPECT_FALSE(departures_.contains(kGoing));
  EXPECT_EQ(quarrels(), std::nullopt);
  EXPECT_TRUE(departures_.gone(kPartner).empty());
  EXPECT_TRUE(departures_.contains(kGoing));
  EXPECT_TRUE(departures_.gone(kGoing).empty());
  EXPECT_EQ(quarrels(), kPartner) << "another life";
}

// Claim: views that were spoilt with a life of the other one do not count against its next life.
TEST_F(DeparturesTest, NewLifeOfThePartnerBeginsAnew) {
  departures_.add(kGoing, kPartner);
  spoil(kGoing, kPartner, Departures::kMostSpoilt - 1);
  EXPECT_TRUE(departures_.gone(kPartner).empty());
  spoil(kGoing, kPartner, 1);
  EXPECT_FALSE(departures_.in_its_place(kGoing));
  EXPECT_TRUE(departures_.is_over(kGoing)) << "it has spoilt three views itself";
}

}  // namespace
}  // namespace gossamer::cluster
