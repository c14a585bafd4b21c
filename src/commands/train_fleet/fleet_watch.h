// SPDX-License-Identifier: Apache-2.0
//
// FleetWatch follows a run while this process leads it. It tells of steps and recoveries, looks after the
// checkpoints, and says why the run is over, once it is.
//
// Thread rule: one thread. The run's directory is looked at every tenth of a second.
#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "commands/train_fleet/checkpoint_keeper.h"
#include "commands/train_fleet/fleet_measuring.h"
#include "commands/train_fleet/fleet_progress.h"
#include "engines/sparse/train/trainer.h"
#include "node/coordinator_node.h"
#include "node/node_processes.h"
#include "run/node_host.h"

namespace gossamer::commands {

class FleetWatch {
 public:
  struct Options {
    StepNumber start;  // the step that the run begins with
    // The directory of what members elsewhere deliver. Empty: all members are this process's own.
    std::string delivered = {};
  };
  // All that it borrows outlives it.
  FleetWatch(const run::NodeHost& host, const sparse_engine::TrainInputs& inputs,
             const sparse_engine::TrainHooks& hooks, FleetProgress& progress, const Options& options);

  // Follows the processes that this process has started, too. A stop of this process is the end of the run
  // then.
  void follow(node::NodeProcesses& own, const node::CoordinatorNode& lead) {
    own_ = &own;
    lead_ = &lead;
  }

  // The run is over once its network is measured, too.
  void measure_by(FleetMeasuring& measuring) { measuring_ = &measuring; }

  // To be asked again and again: why the run is to end, once it is.
  [[nodiscard]] std::optional<std::string> over();
  void look(FleetProgress::Until until);
  // Why the run has failed, as far as is known here.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  // The step of the newest whole checkpoint.
  [[nodiscard]] StepNumber newest_checkpoint() const { return keeper_.newest(); }
  // Saves the trained network as one process keeps it. The rest of the work can be done without any node,
  // from this checkpoint or from the parts. A failure costs only room and time.
  void save_trained(sparse::Network& network);

 private:
  [[nodiscard]] tensors::CheckpointInfo info() const;
  [[nodiscard]] Result<bool> trained();
  void look_at_own();
  void fail(const Error& error);

  const run::NodeHost& host_;
  const sparse_engine::TrainInputs& in_;
  const sparse_engine::TrainHooks& hooks_;
  FleetProgress& progress_;
  CheckpointKeeper keeper_;
  const Instant begin_;
  node::NodeProcesses* own_ = nullptr;  // null: members are no processes of this one
  const node::CoordinatorNode* lead_ = nullptr;
  FleetMeasuring* measuring_ = nullptr;  // null: nothing is measured
  Instant next_look_;
  std::optional<std::string> over_;
  std::optional<Error> failure_;
};

}  // namespace gossamer::commands
