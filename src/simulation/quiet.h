// SPDX-License-Identifier: Apache-2.0
//
// Quiet: what may still happen once faults have ended and the fleet has settled. Views change only if
// measured speeds are worth another placement. No member is fenced, and none begins. Messages cost what
// docs/protocols/membership.md ("Cost") says.
//
// Thread rule: the simulation's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/time.h"

namespace gossamer::simulation {

// Control messages between members and coordinators so far.
struct Traffic {
  std::uint64_t beats = 0;  // and as many answers to them
  std::uint64_t beats_seen = 0;
  std::uint64_t requests = 0;  // for leases, claims and commits
  std::uint64_t answers = 0;
  std::uint64_t doubts = 0;    // questions about a silent member, and their withdrawals
  std::uint64_t others = 0;    // all other messages, in both directions
  std::uint64_t silences = 0;  // times that a member was not heard for about a second
};

// Counts of a whole run, at one moment.
struct Calm {
  Instant at;
  Generation generation;  // of the last lead: a slow store may cost one
  Instant led_since;      // by that lead
  Epoch epoch;
  std::uint64_t fenced = 0;      // incarnations
  std::uint64_t lives = 0;       // of members
  std::uint64_t rebalanced = 0;  // changes of view for the sake of speed
  std::size_t members = 0;
  Traffic traffic;
};

// An event between two moments that should not have happened; nothing: all was quiet.
[[nodiscard]] std::optional<std::string> disturbance(const Calm& before, const Calm& after);

}  // namespace gossamer::simulation
