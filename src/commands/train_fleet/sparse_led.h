// SPDX-License-Identifier: Apache-2.0
//
// SparseLed: what the sparse engine does for a run whose steps members do, in the process that leads them
// (commands/run/run_lead.h). It knows what a fleet begins with, what members are given, and which files make
// up the trained network.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "commands/engine/training.h"
#include "commands/train/sparse_training.h"
#include "commands/train_fleet/fleet_measuring.h"
#include "commands/train_fleet/part_file.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/train/trainer.h"
#include "learn/sparse/network/schedule.h"
#include "run/node_host.h"
#include "run/run_directory.h"

namespace gossamer::commands {

class SparseLed final : public LedTraining {
 public:
  // The host and the inputs, and what they borrow, outlive it. `measure` is empty where nothing is measured.
  SparseLed(const run::NodeHost& host, const run::RunPaths& paths, const sparse_engine::TrainInputs& inputs,
            StepRunner::Measure measure);

  [[nodiscard]] Facts led_facts() const override;
  [[nodiscard]] double learning_rate(StepNumber step) const override { return schedule_.learning_rate(step); }
  [[nodiscard]] Result<Start> find_start(EventSink events) override;
  [[nodiscard]] Result<DoneSteps> take_trained(const engine::TrainHooks& hooks) override;
  [[nodiscard]] std::optional<tensors::CheckpointInfo> checkpoint(StepNumber step) const override;
  [[nodiscard]] Result<Led> lead(const FleetWanted& wanted) override;
  [[nodiscard]] std::optional<DeliveredFile> read_delivered(std::string_view name) const override;
  [[nodiscard]] Result<void> check_delivered(const std::string& path, const DeliveredFile& file,
                                             std::span<const Owned> owned) const override;
  [[nodiscard]] Result<bool> delivered(std::size_t members) override;
  [[nodiscard]] std::size_t parts() const override { return parts_.size(); }
  [[nodiscard]] Result<void> take_delivered() override;
  [[nodiscard]] Result<bool> keep_trained(const tensors::CheckpointInfo& info) override;

  // After delivered(): whether these members have delivered all of the trained network. Their parts are the
  // ones that are taken then.
  [[nodiscard]] Result<bool> find_parts(const std::set<NodeId>& by);
  // Keeps what was measured of the parts that were found last. Other parts go.
  void keep_measured(Result<Measured> measured);

  // The result that was taken: in one memory, or in parts.
  [[nodiscard]] std::optional<sparse::Network> take_network();
  [[nodiscard]] std::optional<NetworkInParts> take_parts();

 private:
  [[nodiscard]] Result<bool> find(const std::set<NodeId>* by);
  [[nodiscard]] Result<void> put_parts_together();
  [[nodiscard]] sparse_engine::FleetShape shape(std::size_t members) const;

  const run::NodeHost& host_;
  const run::RunPaths paths_;
  const sparse_engine::TrainInputs& in_;
  const sparse::Schedule schedule_;
  sparse_engine::FleetShape shape_;  // by which the parts were looked for
  sparse_engine::FleetShape led_;    // that members were told, after lead()
  std::vector<PartFile> parts_;      // parts that cover the trained network
  const StepRunner::Measure measure_;
  std::optional<FleetMeasuring> measuring_;  // nothing: this process measures nothing while it leads
  std::optional<Result<Measured>> measured_;
  std::optional<sparse::Network> network_;
  std::optional<NetworkInParts> in_parts_;
};

}  // namespace gossamer::commands
