// SPDX-License-Identifier: Apache-2.0
//
// FleetProgress: how far the nodes of a run are, from what they tell and deliver into its directory, and at
// the end the network that they have trained. Who starts the nodes or leads them asks it now and then.
//
// Thread rule: the thread that asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "engines/sparse/fleet/layout.h"
#include "engines/sparse/trainer.h"
#include "learn/sparse/schedule.h"
#include "node/fleet/part_file.h"
#include "node/fleet/recovery_reports.h"
#include "node/fleet/step_reports.h"
#include "node/node_host.h"
#include "node/train_run.h"

namespace gossamer::node {

class FleetProgress {
 public:
  // Host, inputs and hooks, and what they borrow, outlive it. Makes the directory for parts. `from`: where
  // the run goes on.
  FleetProgress(const NodeHost& host, const std::string& run, const engine::TrainInputs& inputs,
                const engine::TrainHooks& hooks, engine::FleetShape shape, engine::CheckpointInfo from = {});

  // Hands on the steps that all members have told of since the last call, and which checkpoints failed.
  void tell_steps();
  // And recoveries, once a step after them is known, or at the end.
  enum class Until { kNow, kEnd };
  void tell_recoveries(Until until);
  // What else is known of whom a recovery's cause names.
  void name_causes(std::function<std::string(std::string cause)> name) { name_ = std::move(name); }
  // Bytes and recoveries that were told.
  void add_to(StepRunner::Cost& cost) const;
  // That are known to be done.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  // Some of them by these nodes.
  [[nodiscard]] bool stepping() const { return steps_ > from_.next_step.value; }
  // What is known of the run by now. `cost` is that of this training.
  [[nodiscard]] engine::CheckpointInfo info(const engine::RunCost& cost) const;
  // Of a run that was asked to stop, where the newest checkpoint is an older one than of the last step.
  [[nodiscard]] Error not_saved(StepNumber newest) const;
  // Whether members have delivered all of the trained network, and what they have measured if they do.
  [[nodiscard]] Result<bool> delivered();
  [[nodiscard]] std::size_t parts() const { return parts_.size(); }
  // What training has come to: with the network if it was delivered and is to be in one memory.
  [[nodiscard]] Result<engine::TrainOutcome> outcome() const;
  // Where it is not: the network that was delivered, if it was.
  [[nodiscard]] Result<std::optional<NetworkInParts>> in_parts() const;

 private:
  const NodeHost& host_;
  const engine::TrainInputs& in_;
  const engine::TrainHooks& hooks_;
  const engine::FleetShape shape_;
  const std::string run_;
  const std::string parts_at_;
  const sparse::Schedule schedule_;
  StepReportReader reports_;
  RecoveryReportReader recovery_reports_;
  std::vector<RunRecovery> recoveries_;
  std::function<std::string(std::string)> name_;
  const engine::CheckpointInfo from_;
  std::uint64_t steps_;
  std::deque<double> losses_;
  std::string not_written_;      // why the last checkpoint that failed could not be
  std::vector<PartFile> parts_;  // of the trained network, all of it
  std::optional<Instant> parts_since_;
  // Of the test records, once they are there.
  std::optional<std::vector<std::uint32_t>> ranks_;
  Duration measured_in_;
};

// A trained network: in the outcome's memory, or in parts.
struct TrainedNetwork {
  engine::TrainOutcome outcome;
  std::optional<NetworkInParts> parts;
};
// The network that nodes of an earlier process delivered, if that process ended before it had made the model.
// None: parts are missing or damaged, or come from another number of nodes. Then the steps are taken again.
[[nodiscard]] Result<std::optional<TrainedNetwork>> trained_before(FleetProgress& progress);

// That a run goes on from a checkpoint, if it does.
void tell_start(const NodeHost& host, const engine::CheckpointInfo& from, const engine::TrainHooks& hooks);
// Of the run in that directory what was delivered; only room is lost if it stays.
void remove_delivered(host::Disk& disk, const std::string& run);

}  // namespace gossamer::node
