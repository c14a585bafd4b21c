// SPDX-License-Identifier: Apache-2.0
//
// Misconduct: members of a fleet with counting engines that turn hostile (hostile.h) or lie (liar.h), by the
// hooks of their processes. Thread rule: the simulation's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/ids.h"
#include "base/rng.h"
#include "simulation/fault.h"
#include "simulation/fleet.h"
#include "simulation/liar.h"

namespace gossamer::simulation {

class Misconduct {
 public:
  // The fleet outlives it.
  Misconduct(Fleet& fleet, std::uint64_t seed, std::uint64_t things)
      : fleet_(fleet), rng_(seed, Purpose::kFault, 18), things_(things) {}

  // kHostile: the member sends nonsense to its coordinator, and on any channel to all others, again and
  // again, until its life ends. Or it sends nonsense to one other at a time alone, if `other` is odd. kLie:
  // it lies for a while, in all of its lives.
  void begin(SimMember& member, const Fault& fault);
  // A life that is hostile to its coordinator and to all others, and is not fenced.
  [[nodiscard]] std::optional<std::string> harboured() const;
  // A life breaks rules towards one other after another, and is not fenced.
  [[nodiscard]] bool quarrels() const;
  // Members were told to contradict each other, so the run may fail.
  [[nodiscard]] bool contradicted() const { return contradicted_; }

 private:
  void say_nonsense(SimMember& member, Incarnation life);
  // A hostile life is fenced within kFencedWithin, counted over the time in which the leader hears it.
  void judge_time(SimMember& member, Incarnation life);
  void quarrel(SimMember& member, Incarnation life, net::PeerId victim);
  void break_rules(SimMember& member);
  void break_rule(SimMember& member, NodeId to);
  // So many bytes go to the node that nothing else comes through a slow line of its machine for longer than
  // the others wait, also after their sender is fenced: what is under way fills the line.
  void fill_line(NodeId to);
  [[nodiscard]] bool is_slow(SimMember& member);
  void lie(SimMember& member, Lies lies, Duration lasts);
  void say_inventions(SimMember& member, const std::weak_ptr<Liar>& liar);

  Fleet& fleet_;
  Rng rng_;
  std::uint64_t things_;
  std::map<Incarnation, Duration> hostile_;  // and for how long the leader has heard it without a break
  std::set<Incarnation> quarrelling_;
  bool contradicted_ = false;
};

}  // namespace gossamer::simulation
