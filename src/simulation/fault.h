// SPDX-License-Identifier: Apache-2.0
//
// Faults: what goes wrong in a simulated fleet, and when. They are drawn from a seed or read from a scenario.
// Thread rule: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace gossamer::simulation {

enum class FaultKind {
  kKill,              // a member's process ends, its connections are reset; after a while it begins again
  kPowerOff,          // a member's machine is silent for ever; after a while another takes its place
  kPause,             // a member is stopped for a while
  kCut,               // a member and another machine cannot reach each other for a while
  kCutOneWay,         // only the first cannot reach the second
  kPartition,         // a member reaches nobody for a while
  kReset,             // the connections between two break once
  kCutLane,           // a member and another machine cannot reach each other on one lane for a while
  kResetLane,         // the connections of one lane between two break once
  kSlow,              // a member's link has 1/1000 of its rate for a while
  kLossy,             // the paths of a member lose a fifth of their segments for a while
  kKillCoordinator,   // it is back after a while, or a standby takes over; `other` may give it a bad start
  kLoseCoordinator,   // it is gone for good, if another one is there; else as above
  kPauseCoordinator,  // it is stopped for a while
  kCutCoordinator,    // it reaches no member for a while, but it reaches its store
  kStoreFails,        // the coordinator's next calls of the store fail
  kStoreAway,         // all of them fail for a while
  kJoin,              // one more member
  kDrain,             // a member leaves in order
  kLeave,             // a member leaves at once and hands nothing over
  kNotice,            // a member leaves in order, and is killed after a while whether it has left or not
  kHang,              // a member's engine does nothing for a while; its process beats on
  kLongWork,          // a member's engine works for a while before it does anything else
  kHostile,           // a member sends malformed, impossible or huge messages until its life ends
  kLie,               // a member sends well-formed, untrue messages for a while, in all of its lives
  kStop,              // the run is told to end
};

struct FaultName {
  FaultKind kind;
  std::string_view name;
};
inline constexpr std::array<FaultName, 26> kFaults{{{FaultKind::kKill, "kill"},
                                                    {FaultKind::kPowerOff, "power-off"},
                                                    {FaultKind::kPause, "pause"},
                                                    {FaultKind::kCut, "cut"},
                                                    {FaultKind::kCutOneWay, "cut-one-way"},
                                                    {FaultKind::kPartition, "partition"},
                                                    {FaultKind::kReset, "reset"},
                                                    {FaultKind::kCutLane, "cut-lane"},
                                                    {FaultKind::kResetLane, "reset-lane"},
                                                    {FaultKind::kSlow, "slow"},
                                                    {FaultKind::kLossy, "lossy"},
                                                    {FaultKind::kKillCoordinator, "kill-coordinator"},
                                                    {FaultKind::kLoseCoordinator, "lose-coordinator"},
                                                    {FaultKind::kPauseCoordinator, "pause-coordinator"},
                                                    {FaultKind::kCutCoordinator, "cut-coordinator"},
                                                    {FaultKind::kStoreFails, "store-fails"},
                                                    {FaultKind::kStoreAway, "store-away"},
                                                    {FaultKind::kJoin, "join"},
                                                    {FaultKind::kDrain, "drain"},
                                                    {FaultKind::kLeave, "leave"},
                                                    {FaultKind::kNotice, "notice"},
                                                    {FaultKind::kHang, "hang"},
                                                    {FaultKind::kLongWork, "long-work"},
                                                    {FaultKind::kHostile, "hostile"},
                                                    {FaultKind::kLie, "lie"},
                                                    {FaultKind::kStop, "stop"}}};

[[nodiscard]] std::string_view name(FaultKind kind);
[[nodiscard]] std::optional<FaultKind> fault_of(std::string_view name);

struct Fault {
  FaultKind kind = FaultKind::kKill;
  Instant at;
  Duration lasts;
  std::uint64_t member = 0;  // index among the present members, modulo their number
  std::uint64_t other = 0;   // index of the second of two, likewise
};

// kLong: one fault in sixteen lasts from 20 s to two minutes, a hang six times as long. kShort: none lasts
// longer than 20 s.
enum class Longest { kShort, kLong };

// `count` faults of the given kinds over (from, to), in order of time. Requires at least one kind.
[[nodiscard]] std::vector<Fault> draw_faults(std::uint64_t seed, const std::vector<FaultKind>& kinds,
                                             std::size_t count, Instant from, Instant to,
                                             Longest longest = Longest::kShort);

// Makes one in six of the coordinators' deaths one for good. The draws stay what they are.
void lose_some_coordinators(std::vector<Fault>& faults);

}  // namespace gossamer::simulation
