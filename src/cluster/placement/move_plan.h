// SPDX-License-Identifier: Apache-2.0
//
// plan_moves(): the way from one placement to another, one thing after the other, such that no member ever
// holds more than its limit. A moving thing is in the memory of both its old and its new holder; then the old
// one drops it. Moves may start before earlier ones have ended. They must start in the order of the plan, and
// each must wait until its bytes are free at `to`. Then no move waits for ever.
//
// Deciding whether there is an order is NP-hard (things of unequal size and members with little to spare).
// Moves that fit are made, smallest first. If that ends in a circle of moves that wait for one another, plans
// of up to kExactMoves moves are searched completely. No product code calls it yet.
//
// Thread rule: pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "cluster/placement/placement.h"

namespace gossamer::placement {

struct Move {
  ThingId thing;
  // The donor. Equal to `to` when the copy there is loaded. Empty when no living member has the thing: it
  // begins anew or is lost, which the caller knows.
  std::optional<MemberId> from;
  MemberId to;
  std::uint64_t bytes = 0;  // memory at `to`; sent over the network unless from == to
  bool operator==(const Move&) const = default;
};

inline constexpr std::size_t kExactMoves = 16;

// Plans the moves. Things whose holder is not among `members` are lost and are loaded from a copy, before all
// others where memory allows it. The copy is the one on `to` if there is one, else on the member that gives
// least so far. Requires that `to` holds every thing on one of `members` and within its limit; ids as for
// place(). The error is kFailed when no order was found. It names a circle and the bytes that would open it.
[[nodiscard]] Result<std::vector<Move>> plan_moves(std::span<const Thing> things,
                                                   std::span<const Member> members, const Placement& from,
                                                   const Placement& to);

}  // namespace gossamer::placement
