// SPDX-License-Identifier: Apache-2.0
//
// Filling members up to a target: no member shall need more than `target` seconds for its things. A member's
// room is the work that it can take on until then beside its own. Things are looked at most demanding first.
// A thing that needs a place goes to the member with the most room.
//
// Without regard to memory, settle() fails for a target T only if
//
//   T < (W + O + (m - 1) w) / S
//
// W: work of all things. O: own work of all members. w: the largest thing. m: number of members. S: their
// speed together. For if a thing of work w_j finds no room, every member has own + load + w_j > T * speed.
// The loads sum to at most W - w_j.
//
// `probes` counts things and tree nodes looked at. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "cluster/placement/problem.h"

namespace gossamer::placement {

// Which things a member keeps if it cannot keep all: kMostDemanding keeps those hardest to place elsewhere.
// kMostBytes keeps those with the most bytes to move for each unit of work saved.
enum class Keep { kMostDemanding, kMostBytes };

// The layout of the things in `now` that may stay within memory and target; the others are nowhere.
[[nodiscard]] Layout stay(const Problem& problem, const Layout& now, double target_s, Keep keep);

enum class Copies { kIgnored, kPreferred };
struct Target {
  double seconds = 0;
  Copies copies = Copies::kIgnored;  // kPreferred: to a member with a copy, if one has room
};

// Finds a place for each thing that is nowhere in `kept`. The others do not move, even if their member is
// over the target. Nothing when a thing finds no room.
[[nodiscard]] std::optional<Layout> settle(const Problem& problem, const Layout& kept, const Target& target,
                                           std::uint64_t& probes);

// Places everything anew. Each thing stays if there is still room when its turn comes. This finds exchanges
// that settle() cannot, and moves more.
[[nodiscard]] std::optional<Layout> repack(const Problem& problem, const Layout& now, double target_s,
                                           std::uint64_t& probes);

}  // namespace gossamer::placement
