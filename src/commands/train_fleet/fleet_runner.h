// SPDX-License-Identifier: Apache-2.0
//
// FleetRunner does the steps of a run with several nodes of this machine. They are processes
// `gossamer coordinator` and `gossamer join` of this same program, over loopback. A node that is
// killed is not replaced: the others compute anew what it held and go on. A node that fails ends the
// run. All nodes end with this process.
//
//   DIR/nodes/coordinator, DIR/nodes/1 ...  directories of the processes; *.log beside them what they say
//   DIR/nodes/parts                         what they have trained; removed when the model is saved
//   DIR/checkpoints                         what all of them go on from when the run is resumed
//
// A run that is asked to stop ends when all nodes have written a checkpoint of the same step.
//
// Thread rule: one thread, which lives as long as the nodes are to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "commands/train/train_run.h"
#include "commands/train_fleet/fleet_progress.h"
#include "run/node_host.h"

namespace gossamer::commands {

inline constexpr std::size_t kMostNodes = 64;

class FleetRunner final : public StepRunner {
 public:
  struct Options {
    std::size_t nodes = 1;         // 1..kMostNodes
    std::size_t threads_each = 1;  // threads of a node
    std::string program;           // path of the program's file
  };
  // The host and what it borrows outlive it.
  FleetRunner(const run::NodeHost& host, Options options) : host_(host), options_(std::move(options)) {}

  [[nodiscard]] std::uint64_t nodes() const override { return options_.nodes; }
  [[nodiscard]] std::uint64_t memory_needed(const sparse_engine::TrainConfig& config,
                                            const sparse_engine::Recipe& recipe,
                                            const sparse_engine::DataShape& shape) const override;
  [[nodiscard]] Result<sparse_engine::TrainOutcome> train(const run::RunPaths& paths,
                                                          const sparse_engine::TrainInputs& inputs,
                                                          const sparse_engine::TrainHooks& hooks) override;
  [[nodiscard]] Result<std::optional<NetworkInParts>> take_parts() override {
    return std::exchange(parts_, std::nullopt);
  }
  void saved() override;
  [[nodiscard]] Cost cost() const override { return cost_; }

 private:
  const run::NodeHost& host_;
  const Options options_;
  std::string run_;
  std::optional<NetworkInParts> parts_;
  Cost cost_;
};

}  // namespace gossamer::commands
