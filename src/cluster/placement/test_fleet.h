// SPDX-License-Identifier: Apache-2.0
//
// Tests only: things and members made by a seed or by counting, and the worth of their placements. It is
// computed from the definitions, without the code under test. Thread rule: one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/rng.h"
#include "cluster/placement/placement.h"

namespace gossamer::placement {

// The horizon of a fleet that works for ever: every move is worth its time.
inline constexpr double kAlways = std::numeric_limits<double>::infinity();

struct Fleet {
  std::vector<Thing> things;
  std::vector<Member> members;
};

struct Range {
  double low;
  double high;
};
struct FleetShape {
  std::size_t members = 4;
  std::size_t things_each = 16;
  Range speed = {1, 1};
  Range work = {1, 1};
  Range bytes = {100, 100};
  std::uint64_t limit = 1'000'000;
  Range own_work = {0, 0};
};

inline double drawn(Rng& rng, Range range) {
  return range.low + (range.high - range.low) * static_cast<double>(rng.uniform());
}

// Ids have gaps and no order; bytes are whole numbers of the range.
inline Fleet random_fleet(const FleetShape& shape, Rng& rng) {
  Fleet fleet;
  for (std::uint64_t i = 0; i < shape.members; ++i) {
    Member& member = fleet.members.emplace_back();
    member.id = MemberId((i * 7 + 3) % 1'000'003);
    member.limit_bytes = shape.limit;
    member.speed = drawn(rng, shape.speed);
    if (shape.own_work.high > 0) member.own_work = drawn(rng, shape.own_work);
  }
  for (std::uint64_t j = 0; j < shape.members * shape.things_each; ++j) {
    fleet.things.push_back({ThingId((j * 5 + 2) % 1'000'003),
                            static_cast<std::uint64_t>(drawn(rng, shape.bytes)), drawn(rng, shape.work)});
  }
  return fleet;
}

template <class Value>
void shuffle(std::vector<Value>& values, Rng& rng) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[rng.below(i)]);
}

using Holders = std::map<ThingId, MemberId>;

inline Holders holders_of(const Placement& placement) {
  Holders holders;
  for (const Holding& holding : placement.holdings) holders[holding.thing] = holding.member;
  return holders;
}

// The position of each thing's member in the fleet, in the order of the things; kNobody if it has none.
using Assigned = std::vector<std::size_t>;
inline constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

inline Assigned assigned(const Fleet& fleet, const Placement& placement) {
  std::map<MemberId, std::size_t> position;
  for (std::size_t i = 0; i < fleet.members.size(); ++i) position[fleet.members[i].id] = i;
  const Holders holders = holders_of(placement);
  Assigned result;
  for (const Thing& thing : fleet.things) {
    const auto holder = holders.find(thing.id);
    const auto member = holder == holders.end() ? position.end() : position.find(holder->second);
    result.push_back(member == position.end() ? kNobody : member->second);
  }
  return result;
}

// The worth of a placement, by measured speeds. Not allowed: a limit exceeded, or a thing on nobody or on a
// member that drains.
struct Worth {
  bool allowed = true;
  double step_s = 0;
};

inline Worth worth(const Fleet& fleet, const Assigned& of) {
  std::vector<std::uint64_t> bytes(fleet.members.size(), 0);
  std::vector<double> work(fleet.members.size(), 0);
  std::vector<bool> holds(fleet.members.size(), false);
  Worth result;
  for (std::size_t j = 0; j < of.size(); ++j) {
    if (of[j] == kNobody || fleet.members[of[j]].service == Service::kDraining) return {.allowed = false};
    bytes[of[j]] += fleet.things[j].bytes;
    work[of[j]] += fleet.things[j].work;
    holds[of[j]] = true;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] > fleet.members[i].limit_bytes) result.allowed = false;
    const double own = holds[i] ? fleet.members[i].own_work : 0;
    result.step_s = std::max(result.step_s, (own + work[i]) / fleet.members[i].speed);
  }
  return result;
}

// Bytes of the things that `after` has on another member than `before`.
inline std::uint64_t bytes_between(const Fleet& fleet, const Holders& before, const Holders& after) {
  std::uint64_t bytes = 0;
  for (const Thing& thing : fleet.things) {
    const auto old = before.find(thing.id);
    if (old == before.end() || old->second != after.at(thing.id)) bytes += thing.bytes;
  }
  return bytes;
}

// All numbers with `digits` digits below `base`.
inline void for_each_number(std::size_t digits, std::size_t base,
                            FunctionRef<void(const std::vector<std::size_t>&)> visit) {
  std::vector<std::size_t> number(digits, 0);
  for (;;) {
    visit(number);
    std::size_t place = 0;
    while (place < digits && ++number[place] == base) number[place++] = 0;
    if (place == digits) return;
  }
}

// The same, but of numbers with the same digits only the one whose digits fall.
inline void for_each_choice(std::size_t digits, std::size_t base,
                            FunctionRef<void(const std::vector<std::size_t>&)> visit) {
  for_each_number(digits, base, [&](const std::vector<std::size_t>& number) {
    if (std::is_sorted(number.rbegin(), number.rend())) visit(number);
  });
}

// Every way to assign the fleet's things to its members.
inline void for_each_assigned(const Fleet& fleet, FunctionRef<void(const Assigned&)> visit) {
  for_each_number(fleet.things.size(), fleet.members.size(), visit);
}

// The shortest step within the limits, by trying all; infinite if nothing is allowed.
inline double shortest_step(const Fleet& fleet) {
  double shortest = std::numeric_limits<double>::infinity();
  for_each_assigned(fleet, [&](const Assigned& of) {
    const Worth here = worth(fleet, of);
    if (here.allowed) shortest = std::min(shortest, here.step_s);
  });
  return shortest;
}

}  // namespace gossamer::placement
