// SPDX-License-Identifier: Apache-2.0
//
// RecoveryWatch: what a change of the view costs that lost or moved something. A member that was at work sees
// it from its last step before to its first step after:
//
//   stepped    frozen   installed     loads, replays ...     recovered    stepped
//      | detect  |  agree  |        load and replay               | a step    |
//
// Changes that come before the first step after belong to the same recovery. Pure: its owner tells it the
// time. Thread rule: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/control/view.h"
#include "engines/run/fleet_recovery.h"

namespace gossamer::engine {

class RecoveryWatch {
 public:
  static constexpr std::size_t kSteps = 63;  // their median is taken
  struct Known {
    std::string name;  // for people; may be empty
    bool drains = false;
  };
  // What a member of a view holds.
  struct Holder {
    bool before = false;  // it held something when it came to rest
    bool after = false;   // it is to hold something
  };
  struct Change {
    Epoch epoch;
    std::map<NodeId, Holder> members;  // of the view that is installed
    bool changes = false;              // something was lost, or is to move
    std::uint64_t steps_replayed = 0;  // that are computed anew
  };

  // A step was applied. Returns the cost of the recovery that ends with it, if that lost or moved something.
  std::optional<FleetRecovery> stepped(StepNumber step, Instant now);
  // The view changes: the member comes to rest.
  void frozen(Instant now);
  // The member is to go on with this change. `known`: the members of the view.
  void installed(const Change& change, const std::map<NodeId, Known>& known, Instant now);
  // From now on data come that are somewhere else, or lost ones are computed anew.
  void loads(Instant now) { enter(Phase::kLoad, now); }
  void replays(Instant now) { enter(Phase::kReplay, now); }
  // The member has its part of what was installed.
  void recovered(Instant now) { enter(Phase::kStep, now); }

 private:
  // The phase that time is counted for; kStep: for none.
  enum class Phase { kStep, kDetect, kAgree, kLoad, kReplay };

  void enter(Phase phase, Instant now);
  void add_causes(const Change& change, const std::map<NodeId, Known>& known);
  void add_cause(std::string cause);
  [[nodiscard]] Duration median_step() const;

  std::optional<Instant> last_step_;  // nothing: the member was not at work yet
  std::deque<Duration> steps_;
  bool recovering_ = false;  // the view has changed since
  Phase phase_ = Phase::kStep;
  Instant phase_began_;
  FleetRecovery cost_;
  std::vector<std::string> causes_;
  std::map<NodeId, bool> holds_;  // whether the node holds something by the last change
  std::map<NodeId, std::string> names_;
};

// The members of a view, for installed().
[[nodiscard]] std::map<NodeId, RecoveryWatch::Known> known_members(const cluster::View& view);

}  // namespace gossamer::engine
