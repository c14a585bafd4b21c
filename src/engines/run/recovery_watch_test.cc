// SPDX-License-Identifier: Apache-2.0
#include "engines/run/recovery_watch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gossamer::engine {
namespace {

constexpr Instant at(std::int64_t ms) { return {ms * 1'000'000}; }

// The parts that each member holds; maybe none.
using Held = std::map<std::uint64_t, std::set<std::size_t>>;

// What is lost or moves with a change, and the steps that are computed anew for it.
struct Plan {
  bool changes = false;
  std::uint64_t replayed = 0;
};

RecoveryWatch::Change change_of(std::uint64_t epoch, const Held& before, const Held& after, Plan plan) {
  RecoveryWatch::Change change{
      .epoch = Epoch(epoch), .members = {}, .changes = plan.changes, .steps_replayed = plan.replayed};
  for (const auto& [node, parts] : after) {
    const auto held = before.find(node);
    change.members[NodeId(node)] = {.before = held != before.end() && !held->second.empty(),
                                    .after = !parts.empty()};
  }
  return change;
}

constexpr Plan losing(std::uint64_t steps) { return {.changes = true, .replayed = steps}; }
constexpr Plan moving() { return {.changes = true}; }

const std::map<NodeId, RecoveryWatch::Known> kKnown{{NodeId(1), {.name = "node 1"}},
                                                    {NodeId(2), {.name = "box"}},
                                                    {NodeId(3), {}},
                                                    {NodeId(4), {.name = "guest", .drains = true}}};

// A watch that has seen steps of 10 ms from 0 ms to 100 ms.
RecoveryWatch working(const Held& held) {
  RecoveryWatch watch;
  watch.installed(change_of(1, {}, held, {}), kKnown, at(-10));
  watch.recovered(at(-10));
  for (std::uint64_t i = 0; i <= 10; ++i)
    EXPECT_FALSE(watch.stepped(StepNumber(i), at(static_cast<std::int64_t>(10 * i))).has_value());
  return watch;
}

// Each part has the time that it took. The total is what the user waits for, without the step that would have
// been done anyway.
TEST(RecoveryWatch, TellsWhatTookHowLong) {
  RecoveryWatch watch = working({{1, {0, 1}}, {2, {2, 3}}});
  watch.frozen(at(400));
  watch.installed(change_of(2, {{1, {0, 1}}}, {{1, {0, 1, 2, 3}}}, losing(7)), kKnown, at(450));
  watch.loads(at(451));
  watch.loads(at(453));
  watch.replays(at(460));
  watch.replays(at(470));
  watch.replays(at(480));
  watch.recovered(at(500));
  const auto cost = watch.stepped(StepNumber(11), at(512));
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(cost->epoch, Epoch(2));
  EXPECT_EQ(cost->step, StepNumber(11));
  EXPECT_EQ(cost->cause, "box was lost");
  EXPECT_EQ(cost->steps_replayed, 7U);
  EXPECT_EQ(cost->detect.ns, 300'000'000);
  EXPECT_EQ(cost->agree.ns, 50'000'000);
  EXPECT_EQ(cost->load.ns, 10'000'000);
  EXPECT_EQ(cost->replay.ns, 40'000'000);
  EXPECT_EQ(cost->total.ns, 402'000'000);
  EXPECT_FALSE(watch.stepped(StepNumber(12), at(522)).has_value());
}

// Members that come, that give all away to leave, and that are gone are told apart. Members that only get
// other parts are not blamed. A view that loses and moves nothing is no recovery.
TEST(RecoveryWatch, NamesTheCause) {
  struct Case {
    Held before;
    Held now;  // what members report
    Held after;
    Plan plan;
    std::string cause;
  };
  const std::vector<Case> cases = {
      {{{1, {0, 1}}}, {{1, {0, 1}}}, {{1, {0}}, {2, {1}}}, moving(), "box joined"},
      {{{1, {0}}, {3, {1}}}, {{1, {0}}, {3, {1}}}, {{1, {0, 1}}, {3, {}}}, moving(), "parts were dealt anew"},
      {{{1, {0}}, {4, {1}}}, {{1, {0}}, {4, {1}}}, {{1, {0, 1}}, {4, {}}}, moving(), "guest left"},
      {{{1, {0}}, {3, {}}}, {{1, {0}}, {3, {}}}, {{1, {}}, {3, {0}}}, moving(), "parts were dealt anew"},
      {{{1, {0}}, {3, {1}}}, {{1, {0}}}, {{1, {0}}, {2, {1}}}, losing(1), "node 3 was lost, box joined"},
      {{{1, {0}}, {2, {1}}}, {{1, {0}}, {2, {1}}}, {{1, {1}}, {2, {0}}}, moving(), "parts were dealt anew"},
      {{{1, {0}}, {3, {}}}, {{1, {0}}}, {{1, {0}}}, {}, ""},
  };
  for (const Case& one : cases) {
    RecoveryWatch watch = working(one.before);
    watch.frozen(at(110));
    watch.installed(change_of(2, one.now, one.after, one.plan), kKnown, at(120));
    watch.recovered(at(130));
    const auto cost = watch.stepped(StepNumber(11), at(140));
    EXPECT_EQ(cost.has_value(), !one.cause.empty());
    EXPECT_EQ(cost.value_or(FleetRecovery{}).cause, one.cause);
  }
}

// A recovery that the next one cuts short is part of the next one.
TEST(RecoveryWatch, GoesOnOverSeveralChanges) {
  RecoveryWatch watch = working({{1, {0}}, {2, {1}}, {3, {2}}});
  watch.frozen(at(200));
  watch.installed(change_of(2, {{1, {0}}, {2, {1}}}, {{1, {0, 2}}, {2, {1}}}, losing(5)), kKnown, at(210));
  watch.replays(at(210));
  watch.frozen(at(250));
  watch.installed(change_of(3, {{1, {0}}}, {{1, {0, 1, 2}}}, losing(4)), kKnown, at(280));
  watch.replays(at(280));
  watch.recovered(at(300));
  const auto cost = watch.stepped(StepNumber(11), at(310));
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(cost->epoch, Epoch(3));
  EXPECT_EQ(cost->cause, "node 3 was lost, box was lost");
  EXPECT_EQ(cost->steps_replayed, 5U);
  EXPECT_EQ(cost->detect.ns, 100'000'000);
  EXPECT_EQ(cost->agree.ns, 40'000'000);
  EXPECT_EQ(cost->replay.ns, 60'000'000);
  EXPECT_EQ(cost->total.ns, 200'000'000);
}

// A step that ends while the view changes is counted, and nobody waited before it.
TEST(RecoveryWatch, CountsFromTheLastStep) {
  RecoveryWatch watch = working({{1, {0}}, {2, {1}}});
  watch.frozen(at(104));
  EXPECT_FALSE(watch.stepped(StepNumber(11), at(110)).has_value());
  watch.installed(change_of(2, {{1, {0}}}, {{1, {0, 1}}}, losing(1)), kKnown, at(130));
  watch.recovered(at(140));
  const auto cost = watch.stepped(StepNumber(12), at(150));
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(cost->detect.ns, 0);
  EXPECT_EQ(cost->agree.ns, 20'000'000);
  EXPECT_EQ(cost->total.ns, 30'000'000);
}

// A member that was not at work has nothing to tell, and its first layout has no cost.
TEST(RecoveryWatch, TellsNothingOfABeginning) {
  RecoveryWatch watch;
  watch.frozen(at(0));
  watch.installed(change_of(2, {{1, {0, 1}}}, {{1, {0}}, {2, {1}}}, moving()), kKnown, at(10));
  watch.recovered(at(20));
  EXPECT_FALSE(watch.stepped(StepNumber(11), at(30)).has_value());
}

// What a recovery costs, in milliseconds, that ends with a step 100 ms after `now`.
std::int64_t total_after(RecoveryWatch& watch, std::int64_t now) {
  watch.frozen(at(now + 40));
  watch.installed(change_of(2, {{1, {0}}}, {{1, {0, 1}}}, losing(1)), kKnown, at(now + 50));
  watch.recovered(at(now + 60));
  const auto cost = watch.stepped(StepNumber(1000), at(now + 100));
  return cost ? cost->total.ns / 1'000'000 : -1;
}

// Claim: a recovery costs what it took without a step of the usual length, the median of the last 63. One
// slow step changes nothing.
TEST(RecoveryWatch, TakesOffTheMedianStep) {
  // Steps of so many milliseconds, each length so often, after those of 10 ms.
  using Steps = std::vector<std::pair<int, std::int64_t>>;
  for (const auto& [steps, total] :
       {std::pair(Steps{{12, 30}, {1, 500}}, 70), std::pair(Steps{{100, 10}, {31, 40}}, 90),
        std::pair(Steps{{100, 10}, {32, 40}}, 60)}) {
    RecoveryWatch watch = working({{1, {0}}, {2, {1}}});
    std::int64_t now = 100;
    for (const auto& [count, length] : steps) {
      for (int i = 0; i < count; ++i) {
        now += length;
        EXPECT_FALSE(watch.stepped(StepNumber(11), at(now)).has_value());
      }
    }
    EXPECT_EQ(total_after(watch, now), total);
  }
}

// Claim: a member's name comes from that member. What is no text in it does not reach the terminals and files
// that causes are written to.
TEST(RecoveryWatch, NamesAreText) {
  const std::map<NodeId, RecoveryWatch::Known> known{{NodeId(1), {}}, {NodeId(5), {.name = "\x1b[2Jbox"}}};
  RecoveryWatch watch = working({{1, {0, 1}}});
  watch.frozen(at(110));
  watch.installed(change_of(2, {{1, {0, 1}}}, {{1, {0}}, {5, {1}}}, moving()), known, at(120));
  watch.recovered(at(130));
  const auto cost = watch.stepped(StepNumber(11), at(140));
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(cost->cause, "?[2Jbox joined");
}

}  // namespace
}  // namespace gossamer::engine
