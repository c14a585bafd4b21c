// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/rest_clock.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>

namespace gossamer::cluster {
namespace {

constexpr NodeId kResting{10};
constexpr NodeId kOther{11};
const std::set<NodeId> kNobody;

Instant rest_at(double seconds) { return Instant{} + from_seconds(seconds); }

// Members have 30 s, and 600 s of patience.
class RestClockTest : public testing::Test {
 protected:
  // The late ones of those awaited. All are heard but `silent`.
  std::set<NodeId> late(const std::set<NodeId>& awaited, double seconds, NodeId silent = NodeId(0)) {
    return look(awaited, seconds, silent).nodes;
  }
  RestClock::Late look(const std::set<NodeId>& awaited, double seconds, NodeId silent = NodeId(0)) {
    return clock_.late(awaited, {[&](NodeId node) { return node != silent; }}, rest_at(seconds));
  }
  void ask(double seconds) {
    clock_.begin({}, rest_at(seconds));
    clock_.left(rest_at(seconds));
  }

  RestClock clock_{from_seconds(30), from_seconds(600)};
  std::uint64_t work_ms_ = 0;
};

// Claim: the time counts from when the request left, not from when it was decided: the store may be away.
TEST_F(RestClockTest, CountsFromWhenTheRequestLeft) {
  clock_.begin({}, {});
  EXPECT_EQ(clock_.next_look(), std::nullopt);
  EXPECT_EQ(late({kResting}, 100), kNobody);
  clock_.left(rest_at(100));
  EXPECT_EQ(clock_.next_look(), rest_at(101));
  EXPECT_EQ(late({kResting}, 129), kNobody);
  EXPECT_EQ(clock_.next_look(), rest_at(130));
  EXPECT_EQ(late({kResting}, 130), std::set{kResting});
}

// Claim: an engine that gives signs of work is not late before the patience is over; one that gives none is.
TEST_F(RestClockTest, SparesAnEngineThatWorks) {
  ask(0);
  for (int s = 1; s < 600; ++s) {
    clock_.beat(kResting, true, static_cast<std::uint64_t>(s), rest_at(s));
    EXPECT_EQ(late({kResting}, s), kNobody) << s;
  }
  EXPECT_EQ(late({kResting}, 600), std::set{kResting});
  ask(1000);
  for (int s = 1001; s < 1031; ++s) clock_.beat(kResting, true, 599, rest_at(s));
  EXPECT_EQ(late({kResting}, 1030), kNobody) << "it was told at 1001";
  EXPECT_EQ(late({kResting}, 1031), std::set{kResting});
}

// Claim: the time of a member counts from when it knows the request, or its link is new. It cannot be
// stretched beyond four times by that.
TEST_F(RestClockTest, GivesTimeToAMemberThatDidNotKnow) {
  ask(0);
  clock_.beat(kResting, false, 7, rest_at(1));
  clock_.beat(kResting, true, 7, rest_at(20));
  EXPECT_EQ(late({kResting, kOther}, 30), std::set{kOther});
  EXPECT_EQ(late({kResting}, 50), std::set{kResting});
  ask(1000);
  for (int s = 1001; s < 1120; ++s) {
    clock_.came(kResting, rest_at(s));
    EXPECT_EQ(late({kResting}, s), kNobody) << s;
  }
  EXPECT_EQ(late({kResting}, 1120), std::set{kResting});
}

// Claim: work of a member that does not know the request yet counts for nothing.
TEST_F(RestClockTest, WorkBeforeTheRequestIsNone) {
  ask(0);
  for (int s = 1; s < 30; ++s) clock_.beat(kResting, false, static_cast<std::uint64_t>(s), rest_at(s));
  EXPECT_EQ(late({kResting}, 30), std::set{kResting});
}

// Claim: a member that is heard again has its whole time again, and its limits too. So has one that falls
// silent: then it is late, and never given up.
TEST_F(RestClockTest, SilenceBeginsTheTimeAnew) {
  ask(0);
  for (int s = 1; s < 20; ++s) EXPECT_EQ(late({kResting}, s), kNobody) << s;
  for (int s = 20; s < 50; ++s) EXPECT_EQ(late({kResting}, s, kResting), kNobody) << s;
  for (int s = 50; s < 900; ++s) {
    const RestClock::Late found = look({kResting}, s, kResting);
    EXPECT_EQ(found.nodes, std::set{kResting}) << s;
    EXPECT_EQ(found.given_up, kNobody) << s;
  }
  for (int s = 900; s < 930; ++s) EXPECT_EQ(late({kResting}, s), kNobody) << s;
  EXPECT_EQ(late({kResting}, 930), std::set{kResting});
}

// Claim: a member that is silent already when the request leaves is late after the time, as others are.
TEST_F(RestClockTest, ASilenceFromBeforeCostsNoTime) {
  ask(0);
  for (int s = 1; s < 31; ++s) EXPECT_EQ(late({kResting}, s, kResting), kNobody) << s;
  EXPECT_EQ(late({kResting}, 31, kResting), std::set{kResting});
}

// Claim: a member that is silent for a second each minute, and works, is given up when the patience is over.
// So is one whose silences are longer than its time, after the third of them.
TEST_F(RestClockTest, SilencesNowAndThenGiveNoTimeForEver) {
  const auto given_up_at = [this](int silent_s, int of_s) {
    clock_.end();
    ask(0);
    for (int s = 1; s < 5000; ++s) {
      clock_.beat(kResting, true, ++work_ms_, rest_at(s));
      if (look({kResting}, s, s % of_s < silent_s ? kResting : NodeId(0)).given_up.contains(kResting))
        return s;
    }
    return 5000;
  };
  EXPECT_EQ(given_up_at(1, 60), 601) << "at 600 it is silent";
  EXPECT_EQ(given_up_at(31, 60), 120 + 31 + 600);
}

// Claim: short silences cost a member none of the time that a long one gives it.
TEST_F(RestClockTest, ALineThatStuttersCostsNoTime) {
  ask(0);
  for (int s = 1; s <= 5; ++s) (void)look({kResting}, s, s % 2 == 0 ? kResting : NodeId(0));
  clock_.beat(kResting, true, 1, rest_at(5));
  for (int s = 6; s <= 185; ++s) (void)look({kResting}, s, kResting);
  for (int s = 186; s < 216; ++s) EXPECT_EQ(late({kResting}, s), kNobody) << s;
  EXPECT_EQ(late({kResting}, 216), std::set{kResting});
}

// Claim: another request in the place of one, because another member has died, begins no limit anew of a
// member that owed rest already: a hung engine would else hold the others for ten minutes after each death.
// Its time begins anew, as it has to learn of the request. Members that had come to rest have all of it
// again.
TEST_F(RestClockTest, ARequestInTheirPlaceBeginsNoLimitAnew) {
  ask(0);
  int given_up = 0;
  for (int s = 1; s < 2000 && given_up == 0; ++s) {
    if (s % 90 == 0) {
      clock_.begin({kResting}, rest_at(s));
      clock_.left(rest_at(s));
    }
    clock_.beat(kResting, true, static_cast<std::uint64_t>(s), rest_at(s));
    clock_.beat(kOther, true, static_cast<std::uint64_t>(s), rest_at(s));
    const RestClock::Late found = look({kResting, kOther}, s);
    EXPECT_FALSE(found.given_up.contains(kOther)) << s << " it rested each time";
    if (found.given_up.contains(kResting)) given_up = s;
  }
  EXPECT_EQ(given_up, 600);
  clock_.begin({kResting}, rest_at(700));
  clock_.left(rest_at(700));
  EXPECT_EQ(late({kResting}, 701), std::set{kResting}) << "all of its time was over";
  clock_.begin({kResting}, rest_at(800));
  clock_.begin({kResting}, rest_at(800));
  clock_.left(rest_at(800));
  EXPECT_EQ(late({kResting}, 801), std::set{kResting}) << "two deaths before the request had left";
  clock_.end();
  clock_.begin({kResting}, rest_at(1000));
  clock_.left(rest_at(1000));
  EXPECT_EQ(late({kResting}, 1029), kNobody) << "no request was open";
}

// Claim: limits stand still while no request is out: the store may be away, and nobody can know of it.
TEST_F(RestClockTest, LimitsStandStillWhileTheStoreIsAway) {
  ask(0);
  EXPECT_EQ(late({kResting}, 5), kNobody);
  clock_.begin({kResting}, rest_at(5));
  clock_.begin({kResting}, rest_at(300));
  clock_.left(rest_at(1000));
  for (int s = 1001; s < 1030; ++s) EXPECT_EQ(late({kResting}, s), kNobody) << s;
  for (int s = 1030; s < 1595; ++s) EXPECT_EQ(look({kResting}, s).given_up, kNobody) << s;
  EXPECT_EQ(look({kResting}, 1595).given_up, std::set{kResting})
      << "five seconds of the first, and the rest of this";
}

// Claim: a late member is looked at once a second, and given up after the patience.
TEST_F(RestClockTest, GivesUpAfterThePatience) {
  ask(0);
  for (int s = 30; s < 600; ++s) {
    const RestClock::Late found = look({kResting}, s);
    EXPECT_EQ(found.nodes, std::set{kResting}) << s;
    EXPECT_EQ(found.given_up, kNobody) << s;
    EXPECT_EQ(clock_.next_look(), rest_at(s + 1));
  }
  EXPECT_EQ(look({kResting}, 600).given_up, std::set{kResting});
}

// Claim: where the run's steps take long, an engine that works has the time of three of them, and an hour at
// most. One that gives no sign of work has no more than in any run.
TEST_F(RestClockTest, LongStepsGiveTime) {
  double begin = 0;
  std::uint64_t work_ms = 0;
  for (const auto& [step_s, most] : std::map<double, int>{{0, 600}, {100, 600}, {900, 2700}, {1e24, 3600}}) {
    clock_.steps_take(step_s);
    ask(begin);
    int idle_late = 0;
    for (int s = 1; s < most; ++s) {
      clock_.beat(kResting, true, ++work_ms, rest_at(begin + s));
      const RestClock::Late found = look({kResting, kOther}, begin + s);
      EXPECT_FALSE(found.nodes.contains(kResting)) << s;
      if (idle_late == 0 && found.nodes.contains(kOther)) idle_late = s;
      EXPECT_EQ(found.given_up.contains(kOther), s >= 600) << s;
    }
    EXPECT_EQ(idle_late, 30);
    EXPECT_TRUE(look({kResting}, begin + most).given_up.contains(kResting)) << step_s;
    begin += 10'000;
  }
}

// Claim: a node that says that it works, and never rests, holds the others for the patience once. Its later
// lives have half of it each time, and at last no more than an engine without a sign of work. Others have all
// of it.
TEST_F(RestClockTest, AWordCountsLessEachTime) {
  double now = 0;
  for (const double most : {600.0, 300.0, 150.0, 75.0, 37.5, 30.0, 30.0}) {
    ask(now);
    double past = 0;
    std::uint64_t work_ms = 0;
    const auto beat = [&](NodeId node) { clock_.beat(node, true, ++work_ms, rest_at(now + past)); };
    std::set<NodeId> found;
    for (; past < 1000 && !found.contains(kResting); past += 0.5) {
      beat(kResting);
      beat(kOther);
      found = late({kResting, kOther}, now + past);
    }
    EXPECT_NEAR(past, most, 1.5);
    EXPECT_EQ(found.contains(kOther), most >= 600);
    clock_.gone(kResting);
    now += 2000;
  }
}

// Claim: no request, nobody late.
TEST_F(RestClockTest, EndsWithTheRequest) {
  ask(0);
  clock_.end();
  EXPECT_EQ(clock_.next_look(), std::nullopt);
  EXPECT_EQ(late({kResting}, 100), kNobody);
}

}  // namespace
}  // namespace gossamer::cluster
