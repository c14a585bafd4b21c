// SPDX-License-Identifier: Apache-2.0
//
// RecoveryWatch: what a change of the view costs that lost or moved something. A member that was at work sees
// it from its last step before to its first step after:
//
//   stepped    frozen   installed   computes, exchanges ...   recovered    stepped
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
#include "engines/sparse/fleet/recovery/recovery.h"
#include "engines/sparse/fleet/recovery/recovery_plan.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/fleet/step/layout.h"

namespace gossamer::sparse_engine {

class RecoveryWatch {
 public:
  static constexpr std::size_t kSteps = 63;  // their median is taken
  struct Known {
    std::string name;  // for people; may be empty
    bool drains = false;
  };

  // A step was applied. Returns the cost of the recovery that ends with it, if that lost or moved something.
  std::optional<engine::FleetRecovery> stepped(StepNumber step, Instant now);
  // The view changes: the member comes to rest.
  void frozen(Instant now);
  // The member is to go on with this layout. `known`: its members.
  void installed(Epoch epoch, const Layout& layout, const RecoveryPlan& plan,
                 const std::map<NodeId, Known>& known, Instant now);
  // A stage is computed, and then exchanged.
  void computes(RecoveryStage::Kind stage, Instant now);
  void exchanges(RecoveryStage::Kind stage, Instant now);
  // The member has its part of the layout.
  void recovered(Instant now);

 private:
  // The phase that time is counted for; kStep: for none.
  enum class Phase { kStep, kDetect, kAgree, kLoad, kReplay };

  void enter(Phase phase, Instant now);
  void add_causes(const Layout& layout, const std::map<NodeId, Known>& known);
  void add_cause(std::string cause);
  [[nodiscard]] Duration median_step() const;

  std::optional<Instant> last_step_;  // nothing: the member was not at work yet
  std::deque<Duration> steps_;
  bool recovering_ = false;  // the view has changed since
  Phase phase_ = Phase::kStep;
  Instant phase_began_;
  engine::FleetRecovery cost_;
  std::vector<std::string> causes_;
  std::map<NodeId, bool> holds_;  // whether the node holds something in the last layout
  std::map<NodeId, std::string> names_;
};

}  // namespace gossamer::sparse_engine
