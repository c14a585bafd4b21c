// SPDX-License-Identifier: Apache-2.0
//
// FleetWatch follows a run while this process leads it. It tells of steps and recoveries, looks after the
// checkpoints, and says why the run is over, once it is.
//
// Thread rule: one thread. The run's directory is looked at every tenth of a second.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "commands/engine/training.h"
#include "commands/run/checkpoint_keeper.h"
#include "commands/run/fleet_progress.h"
#include "engines/run/train_hooks.h"
#include "node/coordinator_node.h"
#include "node/node_processes.h"
#include "run/node_host.h"
#include "run/run_directory.h"

namespace gossamer::commands {

class FleetWatch {
 public:
  struct Options {
    StepNumber start;         // the step that the run begins with
    std::size_t members = 1;  // things are cut for so many
    // The directory of what members elsewhere deliver. Empty: all members are this process's own.
    std::string delivered = {};
    // The books of the lead. Null: its members are trusted, because they have ended.
    const OwnerBook* owners = nullptr;
    std::optional<Instant> began = {};  // since when its time counts; nothing: since now
  };
  // All that it borrows outlives it.
  FleetWatch(const run::NodeHost& host, const run::RunPaths& paths, LedTraining& training,
             const engine::TrainHooks& hooks, FleetProgress& progress, const Options& options);

  // Follows the processes that this process has started, too. A stop of this process is the end of the run
  // then.
  void follow(node::NodeProcesses& own, const node::CoordinatorNode& lead) {
    own_ = &own;
    lead_ = &lead;
  }

  // To be asked again and again: why the run is to end, once it is.
  [[nodiscard]] std::optional<std::string> over();
  void look(FleetProgress::Until until);
  // Why the run has failed, as far as is known here.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  // The step that the run begins with.
  [[nodiscard]] StepNumber start() const { return start_; }
  // The step of the newest whole checkpoint.
  [[nodiscard]] StepNumber newest_checkpoint() const { return keeper_.newest(); }
  // As in CheckpointKeeper.
  [[nodiscard]] std::optional<StepNumber> unfinished_checkpoint() const { return keeper_.unfinished(); }
  void forget_unfinished() { keeper_.forget_unfinished(); }
  // Keeps the result as a checkpoint. The rest of the work can be done without any node, from this checkpoint
  // or from what was delivered. A failure costs only room and time.
  void keep_trained();

 private:
  [[nodiscard]] tensors::CheckpointInfo info() const;
  [[nodiscard]] std::optional<StepNumber> done(FleetProgress::Until until) const;
  void look_at_own();
  void fail(const Error& error);

  const run::NodeHost& host_;
  LedTraining& training_;
  const LedTraining::Facts facts_;
  const StepNumber start_;
  const std::size_t members_;
  const OwnerBook* const owners_;
  const engine::TrainHooks& hooks_;
  FleetProgress& progress_;
  CheckpointKeeper keeper_;
  const Instant begin_;
  node::NodeProcesses* own_ = nullptr;  // null: members are no processes of this one
  const node::CoordinatorNode* lead_ = nullptr;
  Instant next_look_;
  std::optional<std::string> over_;
  std::optional<Error> failure_;
};

}  // namespace gossamer::commands
