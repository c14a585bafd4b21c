// SPDX-License-Identifier: Apache-2.0
//
// Watch, how long silent members are spared over several leads, and which leader misses most of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/control/test_watch.h"

namespace gossamer::cluster {
namespace {

using WatchSilence = WatchOfMembers;

// Claim: patience goes on over the leads of several coordinators. What is left of it in this one counts, for
// the member that was silent before, and for no other. A word of it gives it the whole again.
TEST_F(WatchSilence, PatienceGoesOnOverLeads) {
  for (const bool heard : {false, true}) {
    SCOPED_TRACE(heard);
    TestLeadership around;
    Watch watch{around.shared(), around.links, {{Incarnation(110), from_seconds(500)}}, {}};
    for (const std::uint64_t node : {10U, 11U}) watch.expect(around.add(node, membership::SERVING), {});
    if (heard) {
      LedMember& member = around.run.members.at(NodeId(10));
      watch.come(member, {});
      watch.heard(member, {});
      watch.schedule(member);
      (void)watch.due(kTenMinutes, kMayLoseAny, {});
      EXPECT_EQ(around.store(), std::vector<std::string>{"silent"});
    }
    std::vector<std::pair<int, NodeId>> due;
    int writes = 0;
    for (int s = 0; s < 700 && due.size() < 2; ++s) {
      for (const Fencing& one : watch.due(kTenMinutes, kMayLoseAny, at(s))) {
        for (const NodeId node : one.nodes) {
          due.emplace_back(s, node);
          writes += static_cast<int>(around.store().size());
          watch.forget(around.run.members.at(node), at(s));
          around.run.members.erase(node);
          (void)watch.due(kTenMinutes, kMayLoseAny, at(s + 1.5 * static_cast<double>(due.size())));
          EXPECT_EQ(around.store(), std::vector<std::string>{"silent"}) << "the row goes with it";
        }
      }
      writes += static_cast<int>(around.store().size());
    }
    std::ranges::sort(due);
    EXPECT_EQ(due, (std::vector{std::pair{heard ? 600 : 100, NodeId(10)}, std::pair{600, NodeId(11)}}));
    EXPECT_GE(writes, 59);
    EXPECT_LE(writes, 64);
  }
}

// Claim: a coordinator that stood still does not take that for the members' silence. Their patience begins
// when it goes on, and so does what the store has of their silence. A member that fell silent before has
// less.
TEST_F(WatchSilence, AnOwnPauseIsNoSilence) {
  constexpr Patience kTold{from_seconds(20), from_seconds(20)};
  for (const int pause : {0, 1, 19, 21, 300}) {
    SCOPED_TRACE(pause);
    TestLeadership around;
    Watch watch{around.shared(), around.links, {}, {}};
    (void)add_living(around, watch, 10);
    std::optional<double> due_at;
    const auto look = [&](double s) {
      if (!due_at && !watch.due(kTold, kMayLoseNone, at(s)).empty()) due_at = s;
    };
    for (int tenth = 1; tenth <= 2; ++tenth) look(0.1 * tenth);
    for (int tenth = 3; tenth <= 600; ++tenth) look(pause + 0.1 * tenth);
    ASSERT_TRUE(due_at.has_value());
    EXPECT_NEAR(*due_at, pause + 20, 1.2);
    EXPECT_LT(around.run.members.at(NodeId(10)).silent_since(), at(pause + 1));
  }
}

// Claim: a connection that closes long after its member fell silent is no pause of the coordinator. The
// member's patience goes on.
TEST_F(WatchSilence, AConnectionThatClosesIsNoPause) {
  constexpr Patience kTold{from_seconds(20), from_seconds(20)};
  LedMember& member = living(10);
  std::optional<double> due_at;
  for (int tenth = 1; tenth <= 600 && !due_at; ++tenth) {
    if (tenth == 100) watch_.closed(member, at(10));
    if (!watch_.due(kTold, kMayLoseNone, at(0.1 * tenth)).empty()) due_at = 0.1 * tenth;
  }
  ASSERT_TRUE(due_at.has_value());
  EXPECT_NEAR(*due_at, 20, 1.2);
}

// Claim: where all that hold something are silent and one joins, the two minutes go on over leads as well.
TEST_F(WatchSilence, TheAbandonedOverLeads) {
  TestLeadership around;
  Watch watch{around.shared(), around.links, {{Incarnation(110), from_seconds(50)}}, {}};
  watch.expect(around.add(10, membership::SERVING), {});
  LedMember& joins = around.add(11, membership::JOINING);
  watch.come(joins, {});
  int due_at = 0;
  for (int tenths = 0; tenths < 2000 && due_at == 0; ++tenths) {
    const Instant now = Instant{} + from_milliseconds(100.0 * tenths);
    watch.heard(joins, now);
    watch.schedule(joins);
    if (!watch.due(kTenMinutes, kMayLoseAny, now).empty()) due_at = tenths;
  }
  EXPECT_GE(due_at, 700);
  EXPECT_LE(due_at, 715);
}

// Claim: members that come back one after another cost one write a second at most.
TEST_F(WatchSilence, ManyThatComeBackAreOneWrite) {
  TestLeadership around;
  SilentTimes::Rows rows;
  for (std::uint64_t node = 10; node < 60; ++node) rows[Incarnation(node + 100)] = from_seconds(50);
  Watch watch{around.shared(), around.links, rows, {}};
  for (std::uint64_t node = 10; node < 60; ++node) watch.expect(around.add(node, membership::SERVING), {});
  std::size_t writes = 0;
  for (std::uint64_t node = 10; node < 60; ++node) {
    const Instant now = Instant{} + from_milliseconds(20.0 * static_cast<double>(node));
    LedMember& member = around.run.members.at(NodeId(node));
    watch.come(member, now);
    watch.heard(member, now);
    watch.schedule(member);
    (void)watch.due(kTenMinutes, kMayLoseNone, now);
    writes += around.store().size();
  }
  EXPECT_GE(writes, 1U);
  EXPECT_LE(writes, 2U);
}

// Claim: a coordinator misses most members if it hears fewer than half of those that serve elsewhere, and
// does so since the one fell silent with which they were most. Those that join, and those on its machine, do
// not count.
TEST_F(WatchSilence, MissesMost) {
  around_.options.machine = "here";
  for (std::uint64_t node = 10; node < 15; ++node) living(node);
  living(15).record.set_machine("here");
  LedMember& joins = around_.add(16, membership::JOINING);
  watch_.come(joins, {});
  const auto hear = [&](std::uint64_t first, double seconds) {
    for (std::uint64_t node = first; node < 17; ++node) {
      LedMember& member = around_.run.members.at(NodeId(node));
      watch_.heard(member, at(seconds));
      watch_.schedule(member);
    }
    (void)watch_.due(kTenMinutes, kMayLoseAny, at(seconds));
  };
  for (double s = 0; s < 10; s += 0.1) {
    hear(10, s);
    EXPECT_FALSE(watch_.hears_elsewhere(at(s)).misses_most_since);
  }
  for (double s = 10; s < 20; s += 0.1) {
    hear(12, s);
    EXPECT_FALSE(watch_.hears_elsewhere(at(s)).misses_most_since) << "two of five";
  }
  hear(12, 20);
  for (double s = 20.1; s < 30; s += 0.1) hear(13, s);
  EXPECT_EQ(watch_.hears_elsewhere(at(30)).misses_most_since, at(20));
  for (double s = 30; s < 40; s += 0.1) hear(15, s);
  EXPECT_EQ(watch_.hears_elsewhere(at(40)).misses_most_since, at(20));
  hear(12, 40);
  EXPECT_FALSE(watch_.hears_elsewhere(at(40)).misses_most_since);
}

// Claim: after a takeover members have their time to come before they are missed, if one has come. If none
// has, all are missed from the beginning.
TEST_F(WatchSilence, MissesNobodyThatMayCome) {
  for (std::uint64_t node = 10; node < 15; ++node) watch_.expect(around_.add(node, membership::SERVING), {});
  EXPECT_EQ(watch_.hears_elsewhere(at(5)).misses_most_since, Instant{});
  EXPECT_EQ(watch_.hears_elsewhere(at(5)).heard, 0U);
  LedMember& first = around_.run.members.at(NodeId(10));
  watch_.come(first, at(1));
  for (double s = 1; s < 20; s += 0.1) {
    watch_.heard(first, at(s));
    watch_.schedule(first);
    (void)watch_.due(kTenMinutes, kMayLoseNone, at(s));
    if (s < 10.9) {
      EXPECT_FALSE(watch_.hears_elsewhere(at(s)).misses_most_since) << s;
    }
  }
  EXPECT_EQ(watch_.hears_elsewhere(at(20)).misses_most_since, at(11));
  EXPECT_EQ(watch_.hears_elsewhere(at(20)).heard, 1U);
}

}  // namespace
}  // namespace gossamer::cluster
