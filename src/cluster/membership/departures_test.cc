// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/departures.h"

#include <gtest/gtest.h>

#include <vector>

namespace gossamer::cluster {
namespace {

constexpr NodeId kGoing{2};
constexpr NodeId kGoingToo{3};
constexpr NodeId kPartner{4};
constexpr NodeId kOtherPartner{5};

Instant departures_at(double seconds) { return Instant{} + from_seconds(seconds); }

// Claim: all are to rest again 1, 2, 4 ... s after each Install, and after ten minutes at most, however many
// members follow the first. While they rest there is no next look, however long that takes. A first member
// later begins with 1 s again.
TEST(Departures, LooksLessAndLessOften) {
  Departures departures;
  departures.add(kGoing, {kPartner}, departures_at(0));
  departures.add(kGoingToo, {kPartner}, departures_at(0));
  double now = 0;
  for (const double pause : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 600.0, 600.0}) {
    EXPECT_FALSE(departures.next_look());
    EXPECT_FALSE(departures.take_due(departures_at(now + 1e4)));
    departures.installed(departures_at(now));
    now += pause;
    EXPECT_EQ(departures.next_look(), departures_at(now));
    EXPECT_FALSE(departures.take_due(departures_at(now - 0.1)));
    EXPECT_TRUE(departures.take_due(departures_at(now)));
    now += 100;  // of rest
  }
  departures.gone(kGoing);
  departures.gone(kGoingToo);
  departures.installed(departures_at(now));
  EXPECT_FALSE(departures.next_look());
  departures.add(kGoing, {kPartner}, departures_at(now));
  departures.installed(departures_at(now));
  EXPECT_EQ(departures.next_look(), departures_at(now + 1));
  departures.put_off(departures_at(now + 5));
  EXPECT_EQ(departures.next_look(), departures_at(now + 6));
}

// Claim: whether the others of its dispute live changes nothing for a member that has to go.
TEST(Departures, GoesWithoutPartners) {
  Departures departures;
  departures.add(kGoing, {kPartner, kOtherPartner}, departures_at(0));
  departures.installed(departures_at(0));
  for (const NodeId one : {kPartner, kOtherPartner}) EXPECT_TRUE(departures.gone(one).empty());
  EXPECT_TRUE(departures.contains(kGoing));
  EXPECT_TRUE(departures.next_look());
}

// Claim: the patience counts for each by itself, from when it first had to go, or from the last step since.
TEST(Departures, PatienceCountsWithoutSteps) {
  Departures departures;
  const Duration patience = from_seconds(100);
  departures.add(kGoing, {kPartner}, departures_at(0));
  departures.add(kGoing, {kPartner}, departures_at(40));
  departures.add(kGoingToo, {kPartner}, departures_at(50));
  EXPECT_FALSE(departures.is_over(kGoing, patience, departures_at(99)));
  EXPECT_TRUE(departures.is_over(kGoing, patience, departures_at(100)));
  EXPECT_FALSE(departures.is_over(kGoingToo, patience, departures_at(149)));
  departures.stepped(departures_at(149));
  EXPECT_FALSE(departures.is_over(kGoing, patience, departures_at(248)));
  EXPECT_TRUE(departures.is_over(kGoing, patience, departures_at(249)));
  EXPECT_FALSE(departures.is_over(kPartner, patience, departures_at(1000)));
}

// Claim: three spoilt views are enough, and those of others do not count.
TEST(Departures, SpoiltViewsAreEnough) {
  Departures departures;
  const Duration patience = from_seconds(100);
  departures.add(kGoing, {kPartner}, departures_at(0));
  departures.add(kGoingToo, {kPartner}, departures_at(0));
  departures.spoilt(kPartner, kOtherPartner);
  departures.spoilt(kPartner, kGoing);
  departures.spoilt(kGoing, kOtherPartner);
  EXPECT_FALSE(departures.is_over(kGoing, patience, departures_at(1)));
  departures.spoilt(kOtherPartner, kGoing);
  EXPECT_TRUE(departures.is_over(kGoing, patience, departures_at(1)));
  EXPECT_FALSE(departures.is_over(kGoingToo, patience, departures_at(1)));
}

// Claim: others may go in the place of one that is needed, once in its life, and only where views are spoilt.
TEST(Departures, OthersGoInItsPlaceOnce) {
  Departures departures;
  const auto spoil = [&] {
    departures.add(kGoing, {kPartner}, departures_at(0));
    EXPECT_TRUE(departures.in_its_place(kGoing).empty());
    for (int i = 0; i < 3; ++i) departures.spoilt(kPartner, kGoing);
    return departures.in_its_place(kGoing);
  };
  EXPECT_EQ(spoil(), std::set{kPartner});
  EXPECT_EQ(departures.gone(kPartner), std::set{kGoing});
  EXPECT_FALSE(departures.contains(kGoing));
  EXPECT_TRUE(spoil().empty());
  departures.gone(kGoing);
  EXPECT_EQ(spoil(), std::set{kPartner}) << "another life";
}

}  // namespace
}  // namespace gossamer::cluster
