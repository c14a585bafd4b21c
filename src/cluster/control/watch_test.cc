// SPDX-License-Identifier: Apache-2.0
//
// The part of a coordinator that knows which members live, alone. coordinator_test.cc tests it with the
// others.
#include "cluster/control/watch.h"

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

using WatchTest = WatchOfMembers;

// Claim: a member that began and does not come is to be fenced after 10 s, and not sooner.
TEST_F(WatchTest, LateMembersAreDue) {
  watch_.expect(around_.add(10, membership::JOINING), {});
  EXPECT_EQ(watch_.next_wakeup(), at(10));
  EXPECT_TRUE(watch_.due(kTenMinutes, kMayLoseAny, at(9.9)).empty());
  const std::vector<Fencing> due = watch_.due(kTenMinutes, kMayLoseAny, at(10));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].nodes, std::vector{NodeId(10)});
  EXPECT_FALSE(watch_.next_wakeup().has_value());
}

// Claim: a member whose connection closed is to be fenced 0.25 s later, if another one that is heard says
// that it is quiet. While nobody has said anything it is to be fenced later: others are asked, and have time
// to answer. It is to be fenced at once when the first answer comes.
TEST_F(WatchTest, SilentMembersAreDue) {
  for (const auto& [answers, until] : {std::pair{200, 250}, {300, 300}, {1000, 500}}) {
    SCOPED_TRACE(answers);
    TestLeadership around;
    Watch watch{around.shared(), around.links, {}, {}};
    for (const std::uint64_t node : {10U, 11U}) add_living(around, watch, node);
    LedMember& silent = around.run.members.at(NodeId(10));
    LedMember& other = around.run.members.at(NodeId(11));
    watch.closed(silent, {});
    watch.schedule(silent);
    std::vector<std::pair<int, NodeId>> due;
    for (int ms = 0; ms < 1000; ++ms) {
      const Instant now = Instant{} + from_milliseconds(ms);
      if (ms % 50 == 0) {
        watch.heard(other, now);
        watch.schedule(other);
      }
      if (ms == answers) watch.says(NodeId(11), {.quiet = {NodeId(10)}}, now);
      for (const Fencing& one : watch.due(kTenMinutes, kMayLoseAny, now)) {
        for (const NodeId node : one.nodes) due.emplace_back(ms, node);
      }
    }
    EXPECT_EQ(due, (std::vector{std::pair{until, NodeId(10)}}));
  }
}

// Claim: after a takeover few members are heard at first. A liar among these does not decide for all: members
// that serve are judges though they are silent.
TEST_F(WatchTest, TheSilentAreJudges) {
  living(10);
  for (const std::uint64_t node : {11U, 12U, 13U}) watch_.expect(around_.add(node, membership::SERVING), {});
  EXPECT_TRUE(watch_.accuses(NodeId(10), NodeId(11), "a lie"));
  EXPECT_FALSE(watch_.guilty());
  EXPECT_TRUE(watch_.accuses(NodeId(12), NodeId(11), "a rule"));
  const auto verdict = watch_.guilty();
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->node, NodeId(11));
}

// Claim: while nobody at all is heard, nobody is to be fenced for ten minutes, and an event says so once.
TEST_F(WatchTest, SilenceOfAllIsOurOwn) {
  living(10);
  living(11);
  watch_.expect(around_.add(12, membership::SERVING), {});
  for (int s = 0; s < 600; ++s) {
    for (const int ms : {0, 300, 700}) {
      EXPECT_TRUE(watch_.due(kTenMinutes, kMayLoseAny, Instant{} + from_milliseconds(1000 * s + ms)).empty())
          << s << " s " << ms;
    }
  }
  EXPECT_EQ(around_.events(), std::vector<std::string>{"cut_off"});
  EXPECT_EQ(watch_.alone_since(at(599)), at(0));
  std::size_t due = 0;
  for (const Fencing& one : watch_.due(kTenMinutes, kMayLoseAny, at(600))) due += one.nodes.size();
  EXPECT_EQ(due, 3u);
}

// Claim: while nobody is heard, each silent member is spared by its own patience: between one on this machine
// and its coordinator is no network.
TEST_F(WatchTest, EachHasItsPatience) {
  around_.options.machine = "here";
  living(10);
  living(11).record.set_machine("here");
  watch_.expect(around_.add(12, membership::SERVING), {});
  const Patience patience{.elsewhere = from_seconds(20), .here = from_seconds(15)};
  std::vector<std::pair<int, NodeId>> due;
  for (int ms = 0; ms < 60'000; ms += 500) {
    for (const Fencing& one : watch_.due(patience, kMayLoseAny, Instant{} + from_milliseconds(ms))) {
      for (const NodeId node : one.nodes) due.emplace_back(ms, node);
    }
  }
  std::ranges::sort(due);
  EXPECT_EQ(due, (std::vector{std::pair{15'000, NodeId(11)}, std::pair{20'000, NodeId(10)},
                              std::pair{20'000, NodeId(12)}}));
}

// Claim: where two of six are silent together, the others are asked about them. One is due as soon as two
// more of those that know say that it is quiet for them, too, than hear it.
TEST_F(WatchTest, TheSilentTogetherNeedAWitness) {
  for (std::uint64_t node = 10; node < 16; ++node) living(node);
  const auto run_until = [&](int& ms, int end) {
    for (; ms < end; ms += 10) {
      const Instant now = Instant{} + from_milliseconds(ms);
      for (std::uint64_t node = 12; node < 16 && ms % 50 == 0; ++node) {
        LedMember& member = around_.run.members.at(NodeId(node));
        watch_.heard(member, now);
        watch_.schedule(member);
      }
      if (const auto due = watch_.due(kTenMinutes, kMayLoseAny, now); !due.empty()) return due[0].nodes;
    }
    return std::vector<NodeId>{};
  };
  int ms = 0;
  EXPECT_TRUE(run_until(ms, 1000).empty());
  EXPECT_EQ(around_.events(), std::vector<std::string>{"doubt"});
  EXPECT_EQ(around_.said(membership::ToMember::kDoubt), 4);
  watch_.says(NodeId(12), {.hears = {NodeId(10), NodeId(11)}}, at(1));
  watch_.says(NodeId(13), {.quiet = {NodeId(10), NodeId(11)}}, at(1));
  watch_.says(NodeId(14), {.quiet = {NodeId(10), NodeId(11)}}, at(1));
  EXPECT_TRUE(run_until(ms, 30'000).empty());
  watch_.says(NodeId(15), {.quiet = {NodeId(10)}}, at(30));
  EXPECT_EQ(run_until(ms, 31'000), std::vector{NodeId(10)});
  EXPECT_EQ(ms, 30'000);
}

// Claim: where three fell silent together and nobody knows of one of them, that one is due as soon as the
// others are gone: it is one of few then. Nothing else need happen.
TEST_F(WatchTest, TheLastOfTheSilentTogetherIsOneOfFew) {
  for (std::uint64_t node = 10; node < 16; ++node) living(node);
  std::vector<NodeId> gone;
  for (int ms = 0; ms < 30'000 && gone.size() < 3; ms += 10) {
    const Instant now = Instant{} + from_milliseconds(ms);
    for (std::uint64_t node = 13; node < 16 && ms % 50 == 0; ++node) {
      LedMember& member = around_.run.members.at(NodeId(node));
      watch_.heard(member, now);
      watch_.schedule(member);
      if (ms == 2000) watch_.says(NodeId(node), {.quiet = {NodeId(10), NodeId(11)}}, now);
    }
    for (const Fencing& one : watch_.due(kTenMinutes, kMayLoseAny, now)) {
      EXPECT_GE(ms, 2000);
      for (const NodeId node : one.nodes) {
        watch_.forget(around_.run.members.at(node), now);
        around_.run.members.erase(node);
        gone.push_back(node);
      }
    }
  }
  EXPECT_EQ(gone, (std::vector{NodeId(10), NodeId(11), NodeId(12)}));
}

// Claim: the facts that spare a member are looked at once a second. A patience that is shorter since counts
// at once.
TEST_F(WatchTest, AShorterPatienceCounts) {
  living(10);
  for (int tenth = 1; tenth < 30; ++tenth) (void)watch_.due(kTenMinutes, kMayLoseAny, at(0.1 * tenth));
  for (int s = 15; s < 60; ++s) EXPECT_TRUE(watch_.due(kTenMinutes, kMayLoseAny, at(s)).empty()) << s;
  constexpr Patience kShort{from_seconds(70), from_seconds(70)};
  for (int s = 60; s < 70; ++s) EXPECT_TRUE(watch_.due(kShort, kMayLoseAny, at(s)).empty()) << s;
  EXPECT_EQ(watch_.due(kShort, kMayLoseAny, at(70)).size(), 1u);
}

// Claim: others are asked about a member alone, too: at once if its connection closed, else after a second of
// silence. While they hear it, it is not due, and an event says so. A member that comes later is asked as
// well.
TEST_F(WatchTest, OthersAreAskedAboutOne) {
  for (const bool closes : {true, false}) {
    SCOPED_TRACE(closes);
    TestLeadership around;
    Watch watch{around.shared(), around.links, {}, {}};
    const auto hear = [&](std::uint64_t node, Instant now) {
      const auto found = around.run.members.find(NodeId(node));
      LedMember& member =
          found == around.run.members.end() ? around.add(node, membership::SERVING) : found->second;
      watch.come(member, now);
      watch.heard(member, now);
      watch.schedule(member);
    };
    for (std::uint64_t node = 10; node < 14; ++node) hear(node, {});
    if (closes) watch.closed(around.run.members.at(NodeId(10)), {});
    std::optional<int> asked;
    std::optional<int> due;
    for (int ms = 0; ms < 30'000 && !due; ms += 10) {
      const Instant now = Instant{} + from_milliseconds(ms);
      for (std::uint64_t node = 11; node < 14 && ms % 50 == 0; ++node) hear(node, now);
      if (ms >= 20'000 && ms % 50 == 0) hear(14, now);
      if (!watch.due(kTenMinutes, kMayLoseAny, now).empty()) due = ms;
      if (asked || around.said(membership::ToMember::kDoubt) == 0) continue;
      asked = ms;
      EXPECT_EQ(around.said(membership::ToMember::kDoubt), 3);
      watch.says(NodeId(11), {.hears = {NodeId(10)}}, now);
    }
    EXPECT_EQ(asked, closes ? 0 : 1000);
    EXPECT_EQ(due, std::nullopt);
    EXPECT_EQ(around.said(membership::ToMember::kDoubt), 4);
    EXPECT_EQ(around.events(), std::vector<std::string>{"unheard"});
    watch.says(NodeId(12), {.quiet = {NodeId(10)}}, at(30));
    EXPECT_EQ(watch.due(kTenMinutes, kMayLoseAny, at(30)).size(), 1u);
  }
}

// Claim: a member that joins takes over two minutes after all that serve have fallen silent.
TEST_F(WatchTest, AJoinerTakesOverLate) {
  living(10);
  living(11);
  LedMember& joins = around_.add(12, membership::JOINING);
  std::vector<std::pair<int, NodeId>> due;
  for (int ms = 0; ms < 200'000 && due.empty(); ms += 50) {
    const Instant now = Instant{} + from_milliseconds(ms);
    if (ms == 20'000) watch_.expect(joins, now);
    if (ms > 20'000) {
      watch_.come(joins, now);
      watch_.heard(joins, now);
      watch_.schedule(joins);
    }
    for (const Fencing& one : watch_.due(kTenMinutes, kMayLoseAny, now)) {
      for (const NodeId node : one.nodes) due.emplace_back(ms, node);
    }
  }
  EXPECT_EQ(due, (std::vector{std::pair{120'000, NodeId(10)}, std::pair{120'000, NodeId(11)}}));
}

// Claim: a member that says that it does not reach another costs no life while steps are taken. Once none is,
// the dispute is settled after 7 s, or after three steps if these take longer.
TEST_F(WatchTest, StepsDisproveAccusations) {
  for (const double step_s : {0.5, 10.0}) {
    TestLeadership around;
    Watch watch{around.shared(), around.links, {}, {}};
    for (const std::uint64_t node : {10U, 11U}) {
      LedMember& member = around.add(node, membership::SERVING);
      watch.expect(member, {});
      watch.come(member, {});
      for (std::size_t i = 0; i < SmoothedPace::kWindow; ++i)
        member.pace.add({.speed = 1, .own_work = 0, .step_s = step_s});
    }
    std::optional<int> gone_ms;
    for (int ms = 0; ms < 100'000 && !gone_ms; ms += 100) {
      const Instant now = Instant{} + from_milliseconds(ms);
      for (auto& [node, member] : around.run.members) {
        watch.heard(member, now);
        watch.schedule(member);
      }
      const auto step = static_cast<std::uint64_t>(std::min(ms, 60'000) / static_cast<int>(1000 * step_s));
      watch.works({.installed = Epoch(1), .committed = StepNumber(step)}, now);
      watch.says(NodeId(10), {.unreachable = {NodeId(11)}}, now);
      if (!watch.unreachable(now).empty()) gone_ms = ms;
    }
    EXPECT_EQ(gone_ms, 60'000 + static_cast<int>(1000 * std::max(7.0, 3 * step_s))) << step_s;
  }
}

// Claim: members that take steps together are asked to rest once no step was taken for three minutes, and the
// engine of none has worked. Members that go on while the view changes are not: no rest would show who hangs.
TEST_F(WatchTest, StandsStillInLockstepAlone) {
  const auto asks = [this] {
    for (int s = 0; s < 400; ++s) {
      if (watch_.stands_still(true, [] { return true; }, at(s))) return s;
    }
    return 0;
  };
  living(10);
  watch_.works({.installed = Epoch(1), .committed = StepNumber(0)}, {});
  around_.options.view_change = ViewChange::kAnnounced;
  EXPECT_EQ(asks(), 0);
  around_.options.view_change = ViewChange::kFrozen;
  EXPECT_EQ(asks(), 180);
}

// Claim: silent members that the run cannot lose are spared, all or none, until their patience is over. The
// question is asked again each second, and when the Watch is told to look.
TEST_F(WatchTest, NeededMembersAreSpared) {
  living(10);
  living(11);
  LedMember& other = living(12);
  std::set<NodeId> asked_about;
  bool can = false;
  const auto can_lose = [&](const std::set<NodeId>& silent) {
    asked_about = silent;
    return can;
  };
  int due_ms = 0;
  std::size_t asked = 0;
  const auto until = [&](int end) {
    for (int ms = due_ms; ms < end; ms += 50) {
      const Instant now = Instant{} + from_milliseconds(ms);
      watch_.heard(other, now);
      watch_.schedule(other);
      watch_.says(NodeId(12), {.quiet = {NodeId(10), NodeId(11)}}, now);
      const std::set<NodeId> before = std::exchange(asked_about, {});
      const std::vector<Fencing> due = watch_.due(kTenMinutes, can_lose, now);
      asked += asked_about.empty() ? 0 : 1;
      due_ms = ms;
      if (!due.empty()) return due.front().nodes.size();
    }
    return std::size_t{0};
  };
  EXPECT_EQ(until(60'000), 0u);
  EXPECT_GE(asked, 50U);
  EXPECT_LE(asked, 62U);
  can = true;
  watch_.look_again(at(60));
  due_ms = 60'000;
  EXPECT_EQ(until(60'050), 2u) << "at once";
  EXPECT_EQ(asked_about, (std::set{NodeId(10), NodeId(11)}));
}

// Claim: a member that the run cannot lose is due once its patience is over. The process of a member on the
// coordinator's own machine is dead while it has no connection, and a joining member holds nothing: about
// these nobody is asked.
TEST_F(WatchTest, WhoCannotBeNeeded) {
  around_.options.machine = "here";
  LedMember& gone = living(10);
  gone.record.set_machine("here");
  LedMember& hangs = living(11);
  hangs.record.set_machine("here");
  LedMember& joins = living(12);
  joins.record.set_state(membership::JOINING);
  living(13);
  LedMember& other = living(14);
  LedMember& never_came = around_.add(15, membership::SERVING);
  never_came.record.set_machine("here");
  watch_.expect(never_came, {});
  watch_.closed(gone, {});
  watch_.schedule(gone);
  std::set<NodeId> asked_about;
  const auto never = [&](const std::set<NodeId>& silent) {
    asked_about.insert(silent.begin(), silent.end());
    return false;
  };
  std::map<NodeId, int> due;
  for (int ms = 0; ms <= 30'000; ms += 50) {
    const Instant now = Instant{} + from_milliseconds(ms);
    watch_.heard(other, now);
    watch_.schedule(other);
    watch_.says(NodeId(14), {.quiet = {NodeId(12), NodeId(13)}}, now);
    for (const Fencing& one :
         watch_.due({.elsewhere = from_seconds(20), .here = from_seconds(25)}, never, now)) {
      for (const NodeId node : one.nodes) {
        due[node] = ms;
        watch_.forget(around_.run.members.at(node), {});
        around_.run.members.erase(node);
      }
    }
  }
  EXPECT_EQ(asked_about, (std::set{NodeId(11), NodeId(13)}));
  EXPECT_EQ(due.at(NodeId(10)), 250);
  EXPECT_EQ(due.at(NodeId(15)), 10'000);
  EXPECT_LE(due.at(NodeId(12)), 3'000);
  EXPECT_EQ(due.at(NodeId(13)), 20'000);
  EXPECT_EQ(due.at(NodeId(11)), 25'000);
}

// Claim: a member on the coordinator's own machine says nothing about members elsewhere.
TEST_F(WatchTest, ItsOwnMachineProvesNothing) {
  around_.options.machine = "here";
  LedMember& own = living(10);
  own.record.set_machine("here");
  living(11);
  living(12);
  for (int ms = 0; ms < 60'000; ms += 50) {
    const Instant now = Instant{} + from_milliseconds(ms);
    watch_.heard(own, now);
    watch_.schedule(own);
    EXPECT_TRUE(watch_.due(kTenMinutes, kMayLoseAny, now).empty()) << ms;
  }
  EXPECT_EQ(watch_.alone_since(at(60)), at(0));
}

// Claim: after a takeover the last member has 10 s from when the one before it came.
TEST_F(WatchTest, AFleetComesOneByOne) {
  for (std::uint64_t node = 10; node < 14; ++node) watch_.expect(around_.add(node, membership::SERVING), {});
  std::vector<std::pair<int, NodeId>> due;
  for (int ms = 0; ms < 60'000 && due.empty(); ms += 50) {
    const Instant now = Instant{} + from_milliseconds(ms);
    for (std::uint64_t node = 10; node < 13; ++node) {
      const int comes = 8000 * static_cast<int>(node - 9);
      if (ms < comes) continue;
      LedMember& member = around_.run.members.at(NodeId(node));
      watch_.come(member, now);
      watch_.heard(member, now);
      watch_.schedule(member);
    }
    for (const Fencing& one : watch_.due(kTenMinutes, kMayLoseAny, now)) {
      for (const NodeId node : one.nodes) due.emplace_back(ms, node);
    }
  }
  EXPECT_EQ(due, (std::vector{std::pair{34'000, NodeId(13)}}));
}

}  // namespace
}  // namespace gossamer::cluster
