// SPDX-License-Identifier: Apache-2.0
//
// Properties that place() keeps for every placement: limits, determinism, fixpoint, snapshots, messages,
// counted work.
#include "cluster/placement/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "base/rng.h"
#include "cluster/placement/test_fleet.h"

namespace gossamer::placement {
namespace {

// A fleet of any shape up to 12 members, some draining, some short of memory. The running placement names
// some members and things that are gone.
struct Situation {
  Fleet fleet;
  Placement current = {};
  Options options = {};
};

Situation random_situation(std::uint64_t seed) {
  Rng rng(seed, Purpose::kTest);
  const bool alike = seed % 3 == 0;  // many equal choices
  const std::uint64_t tightness = 700 + 100 * rng.below(20);
  const FleetShape shape{.members = 1 + rng.below(12),
                         .things_each = rng.below(8),
                         .speed = alike ? Range{1, 1} : Range{0.25, 4},
                         .work = alike ? Range{1, 1} : Range{0, 3},
                         .bytes = {0, 300},
                         .limit = tightness,
                         .own_work = seed % 5 < 2 ? Range{0, 6} : Range{0, 0}};
  Situation situation{.fleet = random_fleet(shape, rng)};
  std::vector<MemberId> ids = {MemberId(900), MemberId(901)};
  for (Member& member : situation.fleet.members) {
    ids.push_back(member.id);
    if (rng.below(8) == 0) member.service = Service::kDraining;
    if (rng.below(4) == 0) member.limit_bytes = rng.below(1000);
    if (rng.below(2) == 0)
      situation.current.speeds.push_back(
          {member.id, member.speed * drawn(rng, {0.7, 1.3}), member.own_work * drawn(rng, {0.7, 1.3})});
  }
  for (Thing& thing : situation.fleet.things) {
    for (std::uint64_t copies = rng.below(3); copies > 0; --copies)
      thing.copies.push_back(ids[rng.below(ids.size())]);
    if (rng.below(10) > 0) situation.current.holdings.push_back({thing.id, ids[rng.below(ids.size())]});
  }
  situation.current.holdings.push_back({ThingId(1'000'000), ids[2]});
  situation.options.tolerance = rng.below(2) == 0 ? 0 : 1.0 / 16;
  situation.options.horizon_s = std::array{0.0, 1e-3, 600.0, 1e9}[rng.below(4)];
  return situation;
}

Result<Decision> decide(const Situation& situation) {
  return place(situation.fleet.things, situation.fleet.members, situation.current, situation.options);
}

// The number of bytes that a refusal asks of one more member.
std::uint64_t bytes_asked(const Error& error) {
  const std::size_t begin = error.fix.rfind('(') + 1;
  std::uint64_t bytes = 0;
  const auto read = std::from_chars(error.fix.data() + begin, error.fix.data() + error.fix.size(), bytes);
  EXPECT_EQ(std::string(read.ptr), " bytes)") << error.fix;
  return bytes;
}

// place() keeps its promises in every situation. Limits are kept, members that drain or are gone hold
// nothing, and every thing is held once. The predicted time is the step of the placement at believed speeds,
// and not below the bound. If a placement is refused, one more member with the bytes asked for makes it
// possible.
TEST(Placement, KeepsItsPromisesInEverySituation) {
  std::uint64_t placed = 0;
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    Situation situation = random_situation(seed);
    Result<Decision> decision = decide(situation);
    if (!decision.ok()) {
      ++refused;
      situation.fleet.members.push_back({MemberId(5000), bytes_asked(decision.error()), 1});
      ASSERT_TRUE(decide(situation).ok()) << "seed " << seed << ": " << decision.error().message();
      continue;
    }
    ++placed;
    Fleet believed = situation.fleet;
    for (Member& member : believed.members) {
      for (const BelievedSpeed& speed : decision->placement.speeds) {
        if (speed.member != member.id) continue;
        member.speed = speed.speed;
        member.own_work = speed.own_work;
      }
    }
    const Worth reached = worth(believed, assigned(believed, decision->placement));
    ASSERT_TRUE(reached.allowed) << "seed " << seed;
    ASSERT_EQ(decision->placement.holdings.size(), situation.fleet.things.size()) << "seed " << seed;
    ASSERT_NEAR(reached.step_s, decision->step_s, 1e-9 * reached.step_s) << "seed " << seed;
    ASSERT_LE(decision->bound_s, decision->step_s * (1 + 1e-9)) << "seed " << seed;
    const std::uint64_t moved =
        bytes_between(situation.fleet, holders_of(situation.current), holders_of(decision->placement));
    ASSERT_EQ(decision->moved_bytes, moved) << "seed " << seed;
  }
  EXPECT_GE(placed, 2000U);
  EXPECT_GE(refused, 500U);
}

// Placing a placement again changes nothing.
TEST(Placement, PlacingAgainChangesNothing) {
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    Situation situation = random_situation(seed);
    const Result<Decision> first = decide(situation);
    if (!first.ok()) continue;
    situation.current = first->placement;
    const Result<Decision> second = decide(situation);
    ASSERT_TRUE(second.ok()) << "seed " << seed;
    ASSERT_EQ(second->placement, first->placement) << "seed " << seed;
    ASSERT_EQ(second->change, Change::kNone) << "seed " << seed;
    ASSERT_EQ(second->moved_bytes, 0U) << "seed " << seed;
  }
}

// The order of things, members, copies, holdings and speeds does not matter. The predicted time is the same
// to the last bit, and a refusal has the same text.
TEST(Placement, OrderOfTheArgumentsDoesNotMatter) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Situation situation = random_situation(seed);
    const Result<Decision> first = decide(situation);
    Rng rng(seed, Purpose::kTest, 1);
    shuffle(situation.fleet.things, rng);
    shuffle(situation.fleet.members, rng);
    shuffle(situation.current.holdings, rng);
    shuffle(situation.current.speeds, rng);
    for (Thing& thing : situation.fleet.things) shuffle(thing.copies, rng);
    const Result<Decision> second = decide(situation);
    ASSERT_EQ(first.ok(), second.ok()) << "seed " << seed;
    if (!first.ok()) {
      ASSERT_EQ(first.error().message(), second.error().message()) << "seed " << seed;
      continue;
    }
    ASSERT_EQ(first->placement, second->placement) << "seed " << seed;
    ASSERT_EQ(first->step_s, second->step_s) << "seed " << seed;
    ASSERT_EQ(first->probes, second->probes) << "seed " << seed;
  }
}

// Fleets without things, and fleets without members.
TEST(Placement, EmptyFleets) {
  const std::vector<Member> members = {{MemberId(1), 10, 2}};
  const Result<Decision> nothing = place({}, members, {}, {});
  ASSERT_TRUE(nothing.ok());
  EXPECT_TRUE(nothing->placement.holdings.empty());
  EXPECT_EQ(nothing->step_s, 0);
  const std::vector<Thing> things = {{ThingId(1), 7, 1}};
  const Result<Decision> nobody = place(things, {}, {}, {});
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.error().fix, "add one member with 7 B (7 bytes)");
  EXPECT_TRUE(place({}, {}, {}, {}).ok());
  const std::vector<Thing> weightless = {{ThingId(1), 0, 0}};
  EXPECT_FALSE(place(weightless, {}, {}, {}).ok());
  EXPECT_TRUE(place(weightless, members, {}, {}).ok());
}

// A shortage of memory in all: the message says what is needed, what is there, and what one more member must
// have.
TEST(Placement, ShortageNamesBytes) {
  std::vector<Thing> things(32, {.id = {}, .bytes = 100'000'000, .work = 1});
  std::vector<Member> members(4, {.id = {}, .limit_bytes = 700'000'000});
  for (std::uint64_t j = 0; j < things.size(); ++j) things[j].id = ThingId(j);
  for (std::uint64_t i = 0; i < members.size(); ++i) members[i].id = MemberId(i);
  const Result<Decision> decision = place(things, members, {}, {});
  ASSERT_FALSE(decision.ok());
  EXPECT_EQ(
      decision.error().message(),
      "placement: the things do not fit into the members' memory: got 3.2 GB needed, 4 members offer 2.8 GB; "
      "add one member with 400.0 MB (400000000 bytes)");
}

// Memory that suffices in all but lies in pieces that are too small: the message names the thing and the
// largest piece.
TEST(Placement, ShortageNamesTheThingThatFitsNowhere) {
  const std::vector<Thing> things = {{ThingId(7), 300, 1}, {ThingId(8), 100, 1}};
  const std::vector<Member> members = {{MemberId(1), 200, 1}, {MemberId(2), 250, 1}};
  const Result<Decision> decision = place(things, members, {}, {});
  ASSERT_FALSE(decision.ok());
  EXPECT_EQ(
      decision.error().message(),
      "placement: the things do not fit into the members' memory: got thing 7 of 300 B, at most 250 B free "
      "on one member (400 B needed in all, 2 members offer 450 B); add one member with 300 B (300 bytes)");
}

// A thing that fits in only one arrangement is placed, although others must move for it.
TEST(Placement, MemoryMovesWhatIsInTheWay) {
  const std::vector<Thing> things = {
      {ThingId(1), 4, 1}, {ThingId(2), 3, 1}, {ThingId(3), 3, 1}, {ThingId(4), 6, 1}};
  const std::vector<Member> members = {{MemberId(1), 10, 1}, {MemberId(2), 6, 1}};
  const Placement current{
      .holdings = {{ThingId(1), MemberId(1)}, {ThingId(2), MemberId(2)}, {ThingId(3), MemberId(1)}},
      .speeds = {}};
  const Result<Decision> decision = place(things, members, current, {.horizon_s = 0});
  ASSERT_TRUE(decision.ok()) << decision.error().message();
  const std::vector<Holding> expected = {{ThingId(1), MemberId(1)},
                                         {ThingId(2), MemberId(1)},
                                         {ThingId(3), MemberId(1)},
                                         {ThingId(4), MemberId(2)}};
  EXPECT_EQ(decision->placement.holdings, expected);
  EXPECT_EQ(decision->change, Change::kNeeded);
  EXPECT_EQ(decision->moved_bytes, 9U);
}

// The things of a dead member go where their snapshots lie, spread over the others. All of them do, and
// nothing else moves.
TEST(Placement, LostThingsGoWhereTheirSnapshotsLie) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed, Purpose::kTest, 2);
    Fleet fleet = random_fleet({.members = 17, .things_each = 16}, rng);
    const Result<Decision> first = place(fleet.things, fleet.members, {}, {});
    ASSERT_TRUE(first.ok());
    const MemberId dead = fleet.members[rng.below(fleet.members.size())].id;
    std::erase_if(fleet.members, [&](const Member& member) { return member.id == dead; });
    Holders expected = holders_of(first->placement);
    std::size_t next = rng.below(16);
    for (Thing& thing : fleet.things) {
      if (expected[thing.id] != dead) {
        thing.copies = {fleet.members[rng.below(16)].id};
        continue;
      }
      thing.copies = {dead, fleet.members[next++ % 16].id};
      expected[thing.id] = thing.copies[1];
    }
    const Result<Decision> second = place(fleet.things, fleet.members, first->placement, {});
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(holders_of(second->placement), expected) << "seed " << seed;
    EXPECT_EQ(second->change, Change::kNeeded) << "seed " << seed;
  }
}

// One member with all the snapshots gets as many things as the tolerance allows. The others are spread, and
// only lost things move.
TEST(Placement, SnapshotsDoNotOverloadTheirMember) {
  Rng rng(1, Purpose::kTest);
  Fleet fleet = random_fleet({.members = 5, .things_each = 64}, rng);
  const MemberId holder = fleet.members[2].id;
  const Result<Decision> first = place(fleet.things, fleet.members, {}, {});
  ASSERT_TRUE(first.ok());
  for (Thing& thing : fleet.things) thing.copies = {holder};
  const MemberId dead = fleet.members.front().id;
  fleet.members.erase(fleet.members.begin());
  const Result<Decision> second = place(fleet.things, fleet.members, first->placement, {.horizon_s = 0});
  ASSERT_TRUE(second.ok());
  const Holders holders = holders_of(second->placement);
  const auto held = std::ranges::count_if(holders, [&](const auto& pair) { return pair.second == holder; });
  for (const auto& [thing, before] : holders_of(first->placement)) {
    EXPECT_TRUE(before == dead || holders.at(thing) == before) << thing.value;
  }
  EXPECT_EQ(held, 85);  // 80 each, and 1/16 more at most
}

// The counted work is bounded, for 10,000 members and 160,000 things of all sizes. From nothing it is at most
// 256 looks for each of them, and 32 after a loss and after a change of all speeds. Sixteen things on four
// members take 1,000 in all.
TEST(Placement, WorkIsBounded) {
  Rng rng(1, Purpose::kTest);
  const FleetShape shape{.members = 10'000,
                         .things_each = 16,
                         .speed = {0.5, 4},
                         .work = {0.5, 1.5},
                         .bytes = {50, 150},
                         .limit = 16'000};
  Fleet fleet = random_fleet(shape, rng);
  const std::uint64_t size = fleet.members.size() + fleet.things.size();
  const Result<Decision> first = place(fleet.things, fleet.members, {}, {});
  ASSERT_TRUE(first.ok());
  EXPECT_LE(first->probes, 256 * size);
  EXPECT_LE(first->step_s, first->bound_s * (1 + 1.0 / 16));

  fleet.members.pop_back();
  const Result<Decision> loss = place(fleet.things, fleet.members, first->placement, {});
  ASSERT_TRUE(loss.ok());
  EXPECT_LE(loss->probes, 32 * size);
  EXPECT_EQ(loss->change, Change::kNeeded);

  for (Member& member : fleet.members) member.speed *= drawn(rng, {0.5, 1.5});
  const Result<Decision> shift = place(fleet.things, fleet.members, loss->placement, {});
  ASSERT_TRUE(shift.ok());
  EXPECT_LE(shift->probes, 32 * size);
  EXPECT_EQ(shift->change, Change::kRebalancing);
  EXPECT_LE(shift->step_s, shift->bound_s * (1 + 1.0 / 15));

  const Fleet small = random_fleet({.members = 4, .things_each = 4, .speed = {1, 4}, .work = {1, 3}}, rng);
  const Result<Decision> quick = place(small.things, small.members, {}, {});
  ASSERT_TRUE(quick.ok());
  EXPECT_LE(quick->probes, 1000U);
}

}  // namespace
}  // namespace gossamer::placement
