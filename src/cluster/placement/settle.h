// SPDX-License-Identifier: Apache-2.0
//
// Filling members up to a target: no member shall need more than `target` seconds for its things. A member's
// room is the work that it can take on until then beside its own. Things are looked at most demanding first,
// and what needs a place goes where most room is.
//
// Without regard to memory, settle() fails for a target T only if T < (W + O + (m-1) w) / S, for the work W
// of all things, the own work O of all members, the largest thing w, and m members of speed S together: when
// a thing of work w_j finds no room, every member has own + load + w_j > T * speed, and the loads sum to at
// most W - w_j.
//
// `probes` counts things and tree nodes looked at. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "cluster/placement/problem.h"

namespace gossamer::placement {

// Which things a member keeps that cannot keep all: those hardest to place elsewhere, or those that cost most
// to move for the work that their leaving saves.
enum class Keep { kMostDemanding, kMostBytes };

// Those of `now` that may stay where they are within memory and target; the others are nowhere.
[[nodiscard]] Layout stay(const Problem& problem, const Layout& now, double target_s, Keep keep);

enum class Copies { kIgnored, kPreferred };
struct Target {
  double seconds = 0;
  Copies copies = Copies::kIgnored;  // kPreferred: on a member with a copy of it, if one has room
};

// Finds a place for what is nowhere in `kept`; the others do not move, even if their member is over the
// target. Nothing when a thing finds no room.
[[nodiscard]] std::optional<Layout> settle(const Problem& problem, const Layout& kept, const Target& target,
                                           std::uint64_t& probes);

// Places everything anew. Each in turn stays if there is still room: finds exchanges that settle() cannot,
// and moves more.
[[nodiscard]] std::optional<Layout> repack(const Problem& problem, const Layout& now, double target_s,
                                           std::uint64_t& probes);

}  // namespace gossamer::placement
