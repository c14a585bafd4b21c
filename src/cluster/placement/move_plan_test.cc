// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/move_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cluster/placement/test_fleet.h"

namespace gossamer::placement {
namespace {

// The memory of the members while things move: a model of what the plan promises.
class Memory {
 public:
  Memory(const Fleet& fleet, const Placement& from) {
    for (const Member& member : fleet.members)
      free_[member.id] = static_cast<std::int64_t>(member.limit_bytes);
    for (const Thing& thing : fleet.things) bytes_[thing.id] = static_cast<std::int64_t>(thing.bytes);
    for (const auto& [thing, holder] : holders_of(from)) {
      if (!free_.contains(holder)) continue;
      holders_[thing] = holder;
      free_[holder] -= bytes_.at(thing);
    }
  }

  [[nodiscard]] bool fits(const Move& move) const { return free_.at(move.to) >= bytes_.at(move.thing); }
  void begin(const Move& move) { free_[move.to] -= bytes_.at(move.thing); }
  void end(const Move& move) {
    const auto holder = holders_.find(move.thing);
    if (holder != holders_.end()) free_[holder->second] += bytes_.at(move.thing);
    holders_[move.thing] = move.to;
  }
  [[nodiscard]] const Holders& holders() const { return holders_; }

 private:
  std::map<MemberId, std::int64_t> free_;
  std::map<ThingId, std::int64_t> bytes_;
  Holders holders_;
};

// Carries out the moves one after the other; false if one does not fit.
bool carried_out(const Fleet& fleet, const Placement& from, const std::vector<Move>& moves, Holders& end) {
  Memory memory(fleet, from);
  for (const Move& move : moves) {
    if (!memory.fits(move)) return false;
    memory.begin(move);
    memory.end(move);
  }
  end = memory.holders();
  return true;
}

struct Transition {
  Fleet fleet;
  Placement from;
  Placement to;
};

struct TransitionShape {
  std::size_t members = 3;
  std::size_t things = 6;
  std::uint64_t largest = 4;
  std::uint64_t spare = 2;  // at most so many bytes beyond the needs of the fuller end
  bool losses = false;
};

// Two placements, and limits that both keep with little to spare.
Transition random_transition(const TransitionShape& shape, Rng& rng) {
  Transition change;
  std::map<MemberId, std::uint64_t> before;
  std::map<MemberId, std::uint64_t> after;
  for (std::uint64_t j = 0; j < shape.things; ++j) {
    Thing thing{.id = ThingId(j), .bytes = 1 + rng.below(shape.largest), .work = 1};
    const MemberId from(rng.below(shape.members));
    const MemberId to(rng.below(shape.members));
    const bool lost = shape.losses && rng.below(4) == 0;
    if (lost) thing.copies = {MemberId(rng.below(shape.members)), MemberId(77)};
    change.from.holdings.push_back({thing.id, lost ? MemberId(77) : from});
    change.to.holdings.push_back({thing.id, to});
    if (!lost) before[from] += thing.bytes;
    after[to] += thing.bytes;
    change.fleet.things.push_back(thing);
  }
  for (std::uint64_t i = 0; i < shape.members; ++i) {
    const std::uint64_t needed = std::max(before[MemberId(i)], after[MemberId(i)]);
    change.fleet.members.push_back({MemberId(i), needed + rng.below(shape.spare + 1)});
  }
  return change;
}

Result<std::vector<Move>> plan(const Transition& change) {
  return plan_moves(change.fleet.things, change.fleet.members, change.from, change.to);
}

// Tries all orders of the moves: does any keep the limits?
bool some_order_fits(const Transition& change) {
  std::vector<Move> moves;
  const Holders before = holders_of(change.from);
  for (const Holding& holding : change.to.holdings) {
    if (before.at(holding.thing) != holding.member) moves.push_back({holding.thing, {}, holding.member, 0});
  }
  Holders end;
  do {
    if (carried_out(change.fleet, change.from, moves, end)) return true;
  } while (std::ranges::next_permutation(moves, {}, &Move::thing).found);
  return false;
}

// A plan for a small change with little memory to spare is found exactly when some order of the moves keeps
// the limits. The plan keeps them, ends at the wanted placement and moves everything once.
TEST(MovePlan, FindsAnOrderWheneverThereIsOne) {
  int found = 0;
  int blocked = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Rng rng(seed, Purpose::kTest);
    const Transition change = random_transition({.members = 2 + rng.below(3),
                                                 .things = 2 + rng.below(5),
                                                 .spare = rng.below(4),
                                                 .losses = seed % 2 == 0},
                                                rng);
    const Result<std::vector<Move>> moves = plan(change);
    ASSERT_EQ(moves.ok(), some_order_fits(change)) << "seed " << seed;
    ++(moves.ok() ? found : blocked);
    if (!moves.ok()) continue;
    Holders end;
    ASSERT_TRUE(carried_out(change.fleet, change.from, *moves, end)) << "seed " << seed;
    ASSERT_EQ(end, holders_of(change.to)) << "seed " << seed;
    const Holders before = holders_of(change.from);
    const auto different = std::ranges::count_if(change.to.holdings, [&](const Holding& holding) {
      return before.at(holding.thing) != holding.member;
    });
    ASSERT_EQ(moves->size(), static_cast<std::size_t>(different)) << "seed " << seed;
  }
  EXPECT_GE(found, 1000);
  EXPECT_GE(blocked, 150);
}

// Plans of hundreds of moves are found if every member has room for the largest thing to spare.
TEST(MovePlan, ALittleSpareMemorySuffices) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed, Purpose::kTest);
    Transition change = random_transition({.members = 2 + rng.below(20), .things = 300, .spare = 0}, rng);
    for (Member& member : change.fleet.members) member.limit_bytes += 4;
    const Result<std::vector<Move>> moves = plan(change);
    ASSERT_TRUE(moves.ok()) << "seed " << seed << ": " << moves.error().message();
    Holders end;
    ASSERT_TRUE(carried_out(change.fleet, change.from, *moves, end)) << "seed " << seed;
    ASSERT_EQ(end, holders_of(change.to)) << "seed " << seed;
  }
}

// Moves never wait for ever, and limits hold, if each starts in order as soon as it fits. They may end in any
// order.
TEST(MovePlan, MayBeCarriedOutSideBySide) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Rng rng(seed, Purpose::kTest);
    const Transition change =
        random_transition({.members = 4, .things = 20, .spare = 6, .losses = true}, rng);
    const Result<std::vector<Move>> moves = plan(change);
    if (!moves.ok()) continue;
    Memory memory(change.fleet, change.from);
    std::vector<Move> under_way;
    std::size_t next = 0;
    while (next < moves->size() || !under_way.empty()) {
      const bool may_begin = next < moves->size() && memory.fits((*moves)[next]);
      ASSERT_TRUE(may_begin || !under_way.empty()) << "seed " << seed;
      if (may_begin && (under_way.empty() || rng.below(2) == 0)) {
        memory.begin((*moves)[next]);
        under_way.push_back((*moves)[next++]);
      } else {
        const auto ends = under_way.begin() + static_cast<std::ptrdiff_t>(rng.below(under_way.size()));
        memory.end(*ends);
        under_way.erase(ends);
      }
    }
    ASSERT_EQ(memory.holders(), holders_of(change.to)) << "seed " << seed;
  }
}

// The message names the circle and the bytes that open it, for two full members that exchange their things.
TEST(MovePlan, NamesTheCircle) {
  const Fleet fleet{.things = {{ThingId(1), 5, 1}, {ThingId(2), 4, 1}},
                    .members = {{MemberId(10), 5}, {MemberId(20), 6}}};
  const Placement from{.holdings = {{ThingId(1), MemberId(10)}, {ThingId(2), MemberId(20)}}, .speeds = {}};
  const Placement to{.holdings = {{ThingId(1), MemberId(20)}, {ThingId(2), MemberId(10)}}, .speeds = {}};
  const Result<std::vector<Move>> moves = plan_moves(fleet.things, fleet.members, from, to);
  ASSERT_FALSE(moves.ok());
  EXPECT_EQ(moves.error().message(),
            "placement: moves wait for one another: got thing 1 from member 10 to 20, thing 2 from member 20 "
            "to 10; "
            "3 bytes more on member 20 would open this circle");
}

// The bytes that the message names open the circle. Given to the member again and again, they lead to a plan
// after at most as many times as there are moves.
TEST(MovePlan, NamedBytesOpenTheCircle) {
  int blocked = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed, Purpose::kTest, 1);
    Transition change =
        random_transition({.members = 2 + rng.below(4), .things = 2 + rng.below(30), .spare = 1}, rng);
    Result<std::vector<Move>> moves = plan(change);
    for (std::size_t times = 0; !moves.ok(); ++times) {
      ++blocked;
      ASSERT_LE(times, change.fleet.things.size()) << "seed " << seed;
      std::uint64_t bytes = 0;
      std::uint64_t id = 0;
      const std::string& fix = moves.error().fix;
      ASSERT_EQ(std::sscanf(fix.c_str(), "%lu bytes more on member %lu", &bytes, &id), 2) << fix;
      change.fleet.members[id].limit_bytes += bytes;
      moves = plan(change);
    }
  }
  EXPECT_GE(blocked, 150);
}

// Lost things come first: from the copy on their new holder if there is one, otherwise from the copies in
// turn. A thing without any copy comes from nowhere. A member that drains gives its things away.
TEST(MovePlan, LostThingsFirstAndDonorsInTurn) {
  Fleet fleet;
  Placement from;
  Placement to;
  const MemberId dead(9);
  for (std::uint64_t i = 0; i < 4; ++i) fleet.members.push_back({MemberId(i), 100});
  fleet.members[3].service = Service::kDraining;
  const auto add = [&](std::uint64_t id, MemberId before, MemberId after, std::vector<MemberId> copies) {
    fleet.things.push_back({ThingId(id), 10, 1, std::move(copies)});
    from.holdings.push_back({ThingId(id), before});
    to.holdings.push_back({ThingId(id), after});
  };
  add(1, MemberId(3), MemberId(0), {MemberId(1)});
  add(2, dead, MemberId(0), {dead, MemberId(1), MemberId(2)});
  add(3, dead, MemberId(0), {MemberId(1), MemberId(2)});
  add(4, dead, MemberId(0), {MemberId(0), MemberId(1)});
  add(5, dead, MemberId(0), {dead});
  const Result<std::vector<Move>> moves = plan_moves(fleet.things, fleet.members, from, to);
  ASSERT_TRUE(moves.ok());
  const std::vector<Move> expected = {{ThingId(2), MemberId(1), MemberId(0), 10},
                                      {ThingId(3), MemberId(2), MemberId(0), 10},
                                      {ThingId(4), MemberId(0), MemberId(0), 10},
                                      {ThingId(5), std::nullopt, MemberId(0), 10},
                                      {ThingId(1), MemberId(3), MemberId(0), 10}};
  EXPECT_EQ(*moves, expected);
}

// The order of the arguments does not matter.
TEST(MovePlan, OrderOfTheArgumentsDoesNotMatter) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Rng rng(seed, Purpose::kTest, 2);
    Transition change = random_transition({.members = 4, .things = 12, .spare = 5, .losses = true}, rng);
    const Result<std::vector<Move>> first = plan(change);
    shuffle(change.fleet.things, rng);
    shuffle(change.fleet.members, rng);
    shuffle(change.from.holdings, rng);
    shuffle(change.to.holdings, rng);
    const Result<std::vector<Move>> second = plan(change);
    ASSERT_EQ(first.ok(), second.ok()) << "seed " << seed;
    ASSERT_TRUE(!first.ok() || *first == *second) << "seed " << seed;
    ASSERT_TRUE(first.ok() || first.error().message() == second.error().message()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace gossamer::placement
