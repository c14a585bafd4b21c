// SPDX-License-Identifier: Apache-2.0
//
// ContactWatch: whether members that could hear each other do. Thread rule: the simulation's.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/ids.h"
#include "base/time.h"
#include "simulation/sim_coordinator.h"
#include "simulation/sim_member.h"

namespace gossamer::simulation {

class Fleet;

// Two members that both hear the leader, and that it hears, reach each other through it
// (docs/protocols/membership.md, "Another way").
class PairWatch {
 public:
  // A broken pair takes 3 s until it tries another way. A dispute about it is ripe 10 s after that silence.
  static constexpr Duration kOtherWay{8'000'000'000};

  struct Seen {
    std::set<Incarnation> led = {};                           // they and the leader hear each other
    std::set<std::pair<Incarnation, Incarnation>> deaf = {};  // the first hears nothing of the second
  };
  // Returns what is wrong with what has been seen since the first call. Called about once a second.
  [[nodiscard]] std::optional<std::string> look(const Seen& seen, Instant now);

 private:
  std::map<Incarnation, Instant> led_since_;
  std::map<std::pair<Incarnation, Incarnation>, Instant> deaf_since_;
};

class ContactWatch {
 public:
  // Likewise. Looks at all members of the fleet.
  [[nodiscard]] std::optional<std::string> look(Fleet& fleet);

 private:
  PairWatch pairs_;
};

}  // namespace gossamer::simulation
