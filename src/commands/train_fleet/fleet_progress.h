// SPDX-License-Identifier: Apache-2.0
//
// FleetProgress says how far the nodes of a run are, from the reports that they deliver into its
// directory. At the end it has the network that they have trained. The lead asks it now and then.
//
// Thread rule: the thread that asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "commands/train/train_run.h"
#include "commands/train_fleet/part_file.h"
#include "commands/train_fleet/recovery_reports.h"
#include "commands/train_fleet/step_reports.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/train/trainer.h"
#include "learn/sparse/network/schedule.h"
#include "run/node_host.h"

namespace gossamer::commands {

// A trained network: in the outcome's memory, or in parts.
struct TrainedNetwork {
  sparse_engine::TrainOutcome outcome;
  std::optional<NetworkInParts> parts;
};

class FleetProgress {
 public:
  // Host, inputs and hooks, and what they borrow, outlive it. Makes the directory for parts.
  // `from` is where the run goes on.
  FleetProgress(const run::NodeHost& host, const std::string& run, const sparse_engine::TrainInputs& inputs,
                const sparse_engine::TrainHooks& hooks, sparse_engine::FleetShape shape,
                tensors::CheckpointInfo from = {});

  // Hands on the steps that all members have told of since the last call, and the checkpoints that failed.
  void tell_steps();
  // Hands on recoveries, once a step after them is known, or at the end.
  enum class Until { kNow, kEnd };
  void tell_recoveries(Until until);
  // Sets a function that improves the cause of a recovery with what else is known of the node that it names.
  void name_causes(std::function<std::string(std::string cause)> name) { name_ = std::move(name); }
  // Adds the bytes and recoveries that were told.
  void add_to(StepRunner::Cost& cost) const;
  // The steps that are known to be done.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  // Whether these nodes have done some of them.
  [[nodiscard]] bool stepping() const { return steps_ > from_.next_step.value; }
  // What is known of the run by now. `cost` is the cost of this training.
  [[nodiscard]] tensors::CheckpointInfo info(const tensors::RunCost& cost) const;
  // The error for a run that was asked to stop, where the newest checkpoint is older than the last step.
  [[nodiscard]] Error not_saved(StepNumber newest) const;
  // Whether members have delivered all of the trained network. With `by`: whether these members have.
  [[nodiscard]] Result<bool> delivered(const std::optional<std::set<NodeId>>& by = std::nullopt);
  // Whether an earlier process has measured what was delivered.
  [[nodiscard]] bool was_measured() const;
  // What was measured of the parts that were found last. It is kept beside them, and other parts go.
  void measured(Result<Measured> measured);
  [[nodiscard]] std::size_t parts() const { return parts_.size(); }
  // The outcome of training, and the network, if that was delivered.
  [[nodiscard]] Result<TrainedNetwork> trained() const;

 private:
  [[nodiscard]] Result<sparse_engine::TrainOutcome> outcome() const;
  [[nodiscard]] Result<std::optional<NetworkInParts>> in_parts() const;

  const run::NodeHost& host_;
  const sparse_engine::TrainInputs& in_;
  const sparse_engine::TrainHooks& hooks_;
  const sparse_engine::FleetShape shape_;
  const std::string run_;
  const std::string parts_at_;
  const sparse::Schedule schedule_;
  StepReportReader reports_;
  RecoveryReportReader recovery_reports_;
  std::vector<engine::FleetRecovery> recoveries_;
  std::function<std::string(std::string)> name_;
  const tensors::CheckpointInfo from_;
  std::uint64_t steps_;
  std::deque<double> losses_;
  std::string not_written_;      // why the last failed checkpoint could not be written
  std::vector<PartFile> parts_;  // parts that cover the trained network
  std::optional<Result<Measured>> measured_;
};

// The network that nodes of an earlier process delivered, if that process ended before it had
// made the model. Nothing if parts are missing or damaged, or come from another number of nodes.
// Then the steps are taken again.
[[nodiscard]] Result<std::optional<TrainedNetwork>> trained_before(FleetProgress& progress);

// Tells that a run goes on from a checkpoint, if it does.
void tell_start(const run::NodeHost& host, const tensors::CheckpointInfo& from,
                const sparse_engine::TrainHooks& hooks);
// Removes what members delivered to the run in that directory. If it cannot be removed, only room is lost.
void remove_delivered(host::Disk& disk, const std::string& run);

}  // namespace gossamer::commands
