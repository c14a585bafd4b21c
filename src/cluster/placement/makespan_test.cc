// SPDX-License-Identifier: Apache-2.0
//
// How short a step place() reaches. The comparison is with all placements where they can be tried, and with
// bounds elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cluster/placement/placement.h"
#include "cluster/placement/test_fleet.h"

namespace gossamer::placement {
namespace {

constexpr double kRounding = 1 + 1e-9;

struct Kind {
  double quantity;  // work or speed
  std::uint64_t bytes;
};

// Fleets of things and members of these kinds: every choice of up to so many of them.
struct SmallFleets {
  std::vector<Kind> things;
  std::vector<Kind> members;
  std::size_t most_things = 6;
  std::size_t most_members = 3;
};

void for_each_fleet_of(std::size_t n, std::size_t m, const SmallFleets& small,
                       FunctionRef<void(const Fleet&)> visit) {
  for_each_choice(n, small.things.size(), [&](const std::vector<std::size_t>& things) {
    for_each_choice(m, small.members.size(), [&](const std::vector<std::size_t>& members) {
      Fleet fleet;
      for (std::size_t j = 0; j < n; ++j) {
        const Kind& kind = small.things[things[j]];
        fleet.things.push_back({ThingId(j), kind.bytes, kind.quantity});
      }
      for (std::size_t i = 0; i < m; ++i) {
        const Kind& kind = small.members[members[i]];
        fleet.members.push_back({MemberId(i), kind.bytes, kind.quantity});
      }
      visit(fleet);
    });
  });
}

void for_each_fleet(const SmallFleets& small, FunctionRef<void(const Fleet&)> visit) {
  for (std::size_t n = 1; n <= small.most_things; ++n) {
    for (std::size_t m = 1; m <= small.most_members; ++m) for_each_fleet_of(n, m, small, visit);
  }
}

std::string shown(const Fleet& fleet) {
  std::string text = "things (work, bytes)";
  for (const Thing& thing : fleet.things) text += fmt::format(" {},{}", thing.work, thing.bytes);
  text += "; members (speed, limit)";
  for (const Member& member : fleet.members) text += fmt::format(" {},{}", member.speed, member.limit_bytes);
  return text;
}

// Every choice of up to 6 things on up to 3 members from nothing, with memory to spare and with limits that
// bind. A placement is found exactly when there is one, keeps the limits and is optimal.
TEST(Makespan, SmallFleetsArePlacedOptimally) {
  const std::vector<Kind> spare = {{1, 99}, {2, 99}, {4, 99}};
  const std::vector<Kind> tight = {{1, 2}, {1, 4}, {2, 3}, {4, 5}};
  std::uint64_t placed = 0;
  std::uint64_t refused = 0;
  for (const std::vector<Kind>& members : {spare, tight}) {
    const SmallFleets small{.things = {{1, 1}, {3, 1}, {1, 2}, {5, 3}}, .members = members};
    for_each_fleet(small, [&](const Fleet& fleet) {
      const double shortest = shortest_step(fleet);
      const Result<Decision> decision = place(fleet.things, fleet.members, {}, {.tolerance = 0});
      ASSERT_EQ(decision.ok(), std::isfinite(shortest)) << shown(fleet);
      ++(decision.ok() ? placed : refused);
      if (!decision.ok()) return;
      const Worth reached = worth(fleet, assigned(fleet, decision->placement));
      ASSERT_TRUE(reached.allowed) << shown(fleet);
      ASSERT_LE(reached.step_s, shortest * kRounding) << shown(fleet);
      ASSERT_DOUBLE_EQ(reached.step_s, decision->step_s) << shown(fleet);
      ASSERT_LE(decision->bound_s, shortest * kRounding) << shown(fleet);
    });
  }
  EXPECT_GE(placed, 7000U);
  EXPECT_GE(refused, 3000U);
}

// Small fleets are placed optimally, too, if each member has work of its own as soon as it holds something.
// Some members then hold nothing.
TEST(Makespan, WhoCostsMoreThanItTakesOffHoldsNothing) {
  std::uint64_t idle = 0;
  for (const double own_work : {0.5, 2.0, 20.0}) {
    const SmallFleets small{.things = {{1, 1}, {3, 1}}, .members = {{1, 99}, {2, 9}, {4, 99}}};
    for_each_fleet(small, [&](const Fleet& equal) {
      Fleet fleet = equal;
      for (Member& member : fleet.members) member.own_work = own_work;
      const Result<Decision> decision = place(fleet.things, fleet.members, {}, {.tolerance = 0});
      ASSERT_TRUE(decision.ok()) << shown(fleet);
      const Assigned of = assigned(fleet, decision->placement);
      ASSERT_LE(worth(fleet, of).step_s, shortest_step(fleet) * kRounding) << shown(fleet);
      ASSERT_LE(decision->bound_s, decision->step_s * kRounding) << shown(fleet);
      for (std::size_t i = 0; i < fleet.members.size(); ++i) idle += std::ranges::count(of, i) == 0 ? 1 : 0;
    });
  }
  EXPECT_GE(idle, 500U);
}

// A weak member gives all things away. Four members have 64 equal things, until one has a quarter of its
// speed. Its own work is then more than it saves the others. Each thing goes to the member that has a copy.
// The step is as near to the bound as from nothing.
TEST(Makespan, AWeakMemberGivesAllAwayToWhereCopiesLie) {
  Fleet fleet;
  for (std::uint64_t j = 0; j < 64; ++j) fleet.things.push_back({ThingId(j), 1'000'000, 1});
  for (std::uint64_t i = 0; i < 4; ++i) {
    fleet.members.push_back({MemberId(i), 1'000'000'000, 50});
    fleet.members.back().own_work = 8;
  }
  const Result<Decision> even = place(fleet.things, fleet.members, {}, {});
  ASSERT_TRUE(even.ok());
  EXPECT_DOUBLE_EQ(even->step_s, (16 + 8) / 50.0);
  const Holders before = holders_of(even->placement);
  for (Thing& thing : fleet.things)
    thing.copies = {MemberId((before.at(thing.id).value + 1 + thing.id.value / 4 % 3) % 4)};
  fleet.members[3].speed /= 4;
  const Result<Decision> uneven = place(fleet.things, fleet.members, even->placement, {.bandwidth = 1e3});
  ASSERT_TRUE(uneven.ok());
  EXPECT_EQ(uneven->change, Change::kRebalancing);
  for (const auto& [thing, holder] : holders_of(uneven->placement)) {
    const bool weak = before.at(thing) == MemberId(3);
    ASSERT_EQ(holder, weak ? fleet.things[thing.value].copies.front() : before.at(thing)) << thing.value;
  }
  EXPECT_LE(uneven->step_s, (22 + 8) / 50.0 * kRounding);
  EXPECT_LE(uneven->step_s, uneven->bound_s * (1 + 1.0 / 16));
}

// The step is at most 4/3 of the optimum if things are filled in one by one, with memory to spare. (Eight
// things on three members are too many arrangements to try.) This holds from nothing, and from any running
// placement that is rebalanced for nothing. Nine of ten steps are optimal.
TEST(Makespan, FillingUpIsWithinFourThirdsOfTheOptimum) {
  std::uint64_t fleets = 0;
  std::uint64_t optimal = 0;
  Rng rng(1, Purpose::kTest);
  const SmallFleets small{.things = {{1, 1}, {2, 1}, {3, 1}, {5, 1}}, .members = {{1, 9}, {2, 9}}};
  for_each_fleet_of(8, 3, small, [&](const Fleet& fleet) {
    const double shortest = shortest_step(fleet);
    Placement start;
    for (const Thing& thing : fleet.things) {
      start.holdings.push_back({thing.id, fleet.members[rng.below(3)].id});
    }
    for (const Placement& current : {Placement{}, start}) {
      const Result<Decision> decision = place(fleet.things, fleet.members, current,
                                              {.tolerance = 0, .settled_tolerance = 0, .horizon_s = kAlways});
      ASSERT_TRUE(decision.ok()) << shown(fleet);
      const Worth reached = worth(fleet, assigned(fleet, decision->placement));
      ASSERT_LE(reached.step_s, 4.0 / 3 * shortest * kRounding) << shown(fleet);
      ++fleets;
      if (reached.step_s <= shortest * kRounding) ++optimal;
    }
  });
  EXPECT_EQ(fleets, 1320U);
  EXPECT_GE(10 * optimal, 9 * fleets) << optimal;
}

// A step is at most (W + (m - 1) w) / S with memory to spare. W: the work of all things and the members' own
// work. w: the largest thing. m: the number of members. S: their speed together. This holds from nothing, and
// from any placement once that is rebalanced for nothing.
TEST(Makespan, WithinOneThingAMemberOfTheFractionalOptimum) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Rng rng(seed, Purpose::kTest);
    const FleetShape shape{.members = 1 + rng.below(40),
                           .things_each = 1 + rng.below(20),
                           .speed = {0.25, 4},
                           .work = {0, 3},
                           .own_work = {0, seed % 2 == 0 ? 0.0 : 9.0}};
    Fleet fleet = random_fleet(shape, rng);
    double work = 0;
    double largest = 0;
    double speed = 0;
    Placement start;
    for (const Thing& thing : fleet.things) {
      work += thing.work;
      largest = std::max(largest, thing.work);
      start.holdings.push_back({thing.id, fleet.members[rng.below(fleet.members.size())].id});
    }
    for (const Member& member : fleet.members) {
      speed += member.speed;
      work += member.own_work;
    }
    const double bound = (work + static_cast<double>(shape.members - 1) * largest) / speed;
    for (const Placement& current : {Placement{}, start}) {
      const Result<Decision> decision = place(fleet.things, fleet.members, current,
                                              {.tolerance = 0, .settled_tolerance = 0, .horizon_s = kAlways});
      ASSERT_TRUE(decision.ok()) << "seed " << seed;
      EXPECT_LE(decision->step_s, bound * (1 + 1.0 / 128)) << "seed " << seed;
    }
  }
}

// Sixteen or more equal things a node are within 1 + 1/16 of the fractional optimum, whatever the speeds,
// with the default options. That includes one node at a quarter of the others' speed, for which 1.07 is
// asked.
TEST(Makespan, SixteenEqualThingsANodeWithinASixteenth) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed, Purpose::kTest, 1);
    const FleetShape shape{
        .members = 2 + rng.below(30), .things_each = 16 + rng.below(5), .speed = {0.25, 1}};
    Fleet fleet = random_fleet(shape, rng);
    if (seed % 2 == 0) {
      for (Member& member : fleet.members) member.speed = 1;
      fleet.members[rng.below(fleet.members.size())].speed = 0.25;
    }
    double speed = 0;
    for (const Member& member : fleet.members) speed += member.speed;
    const Result<Decision> decision = place(fleet.things, fleet.members, {}, {});
    ASSERT_TRUE(decision.ok()) << "seed " << seed;
    const Worth reached = worth(fleet, assigned(fleet, decision->placement));
    EXPECT_LE(reached.step_s, (1 + 1.0 / 16) * static_cast<double>(fleet.things.size()) / speed)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace gossamer::placement
