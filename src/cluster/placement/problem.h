// SPDX-License-Identifier: Apache-2.0
//
// The dense form of a placement problem: things and serving members sorted by id and named by their position.
// Part of place(). Thread rule: a plain value.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cluster/placement/placement.h"

namespace gossamer::placement {

using Index = std::uint32_t;
inline constexpr Index kNowhere = std::numeric_limits<Index>::max();

// The member of each thing, or kNowhere.
using Layout = std::vector<Index>;

struct Problem {
  std::vector<ThingId> thing_ids;
  std::vector<std::uint64_t> bytes;
  std::vector<double> work;
  std::vector<Index> copy_end;  // thing j's copies: [copy_end[j - 1], copy_end[j]), from 0 for the first
  std::vector<Index> copies;    // on serving members

  std::vector<MemberId> member_ids;
  std::vector<std::uint64_t> limit;
  std::vector<double> speed;     // believed
  std::vector<double> own_work;  // believed

  // Things, most demanding first, by the larger of their fractions of all work and of all memory on offer.
  std::vector<Index> order;
  // Things, most bytes for each unit of work first.
  std::vector<Index> dense_first;
  std::uint64_t all_bytes = 0;
  std::uint64_t all_limits = 0;  // saturates
  double all_work = 0;
  double all_speeds = 0;
  double all_own_work = 0;

  [[nodiscard]] std::span<const Index> copies_of(Index thing) const;
  // The work that the member can take on until `seconds`; < 0: it cannot even do its own work.
  [[nodiscard]] double room(Index member, double seconds) const {
    return speed[member] * seconds - own_work[member];
  }
};

// Makes the dense form, with believed speeds. Serving members in `before` are believed to have the speed and
// own work there. All are measured anew if a measured value of any member differs by more than `dead_band`.
// This is a fraction of the speed, or of the own work together with an equal part of all work.
[[nodiscard]] Problem make_problem(std::span<const Thing> things, std::span<const Member> members,
                                   std::span<const BelievedSpeed> before, double dead_band);

// The layout of those `holdings` whose thing and serving member are in the problem.
[[nodiscard]] Layout layout_of(const Problem& problem, std::span<const Holding> holdings);

// The largest member's time. Things nowhere and members without things cost nothing. Sums run in the order of
// ids, so equal layouts give equal bits.
[[nodiscard]] double step_seconds(const Problem& problem, const Layout& layout);

// A time that no placement within the limits can beat. Requires a member. Three arguments give it:
// - The k largest things need at least their time on the k fastest members, for each k. (This is the optimum
//   if things could be divided and interrupted: Horvath, Lam, Sethi, JACM 1977.)
// - All work needs all the room that members have beside their own work.
// - Work that does not fit into the memory of fast members is left to slow ones.
[[nodiscard]] double step_bound(const Problem& problem);

}  // namespace gossamer::placement
