// SPDX-License-Identifier: Apache-2.0
//
// FleetReporter: what a member tells of its steps. The coordinator gets figures for people, and how fast the
// member is, for the placement. The cost of a recovery is known with the step after it.
//
// Thread rule: the loop thread.
#pragma once

#include <optional>

#include "base/time.h"
#include "cluster/control/member_process.h"
#include "engines/run/fleet_recovery.h"
#include "engines/run/recent_steps.h"
#include "engines/run/recovery_watch.h"
#include "engines/run/sent_bytes.h"
#include "engines/sparse/fleet/recovery/recovery.h"
#include "engines/sparse/fleet/recovery/recovery_plan.h"
#include "engines/sparse/fleet/step/fleet_learner.h"
#include "engines/sparse/fleet/step/layout.h"
#include "host/api/clock.h"
#include "learn/sparse/network/network_shape.h"

namespace gossamer::sparse_engine {

class FleetReporter {
 public:
  // Both outlive it. Without a clock members count as fast as they have cores.
  FleetReporter(cluster::MemberProcess& process, const host::Clock* clock)
      : process_(process), clock_(clock) {}

  // The parts of a view's change, as they come.
  [[nodiscard]] engine::RecoveryWatch& watch() { return watch_; }
  // A stage of a recovery is computed, or its exchange begins.
  void computes(RecoveryStage::Kind stage, Instant now);
  void exchanges(RecoveryStage::Kind stage, Instant now);
  // Members hold other parts from now on.
  void begin_layout(Epoch epoch, const Layout& layout, const RecoveryPlan& plan, Instant now);

  // Measures how fast this member is. Its work is its number of shards, as columns go with them. Steps beside
  // a snapshot do not count. A snapshot takes CPU for a while, not the same at all members, and longest over
  // slow lines. Parts that moved for that would need another snapshot.
  enum class Beside { kNothing, kSnapshot };
  void measure(FleetLearner& learner, const sparse::NetworkPart& part, Beside beside, Instant now);
  // A step was applied. Returns what the recovery before it has cost, if there was one.
  [[nodiscard]] std::optional<engine::FleetRecovery> stepped(StepNumber step, double loss, Instant now);
  // What this life has handed to the socket.
  [[nodiscard]] engine::SentBytes sent() const;

 private:
  cluster::MemberProcess& process_;
  const host::Clock* const clock_;
  engine::RecoveryWatch watch_;
  engine::RecentSteps recent_;
  Duration cpu_before_ = {};  // CPU of the process, when the step before was done
  Instant measured_at_;       // when that step was done
};

}  // namespace gossamer::sparse_engine
