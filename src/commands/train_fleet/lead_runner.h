// SPDX-License-Identifier: Apache-2.0
//
// LeadRunner does the steps of a run of the sparse engine with members: own processes, or members that join
// from anywhere. It is a RunLead (commands/run/run_lead.h) for what SparseLed says.
//
// Thread rule: one thread, which lives as long as own members are to.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/result.h"
#include "commands/engine/run_request.h"
#include "commands/run/run_lead.h"
#include "commands/train/sparse_training.h"
#include "run/node_host.h"

namespace gossamer::commands {

class LeadRunner final : public StepRunner {
 public:
  // The host and what it borrows outlive it.
  LeadRunner(const run::NodeHost& host, LeadOptions options);

  // Own members, or the number of parts that members have delivered.
  [[nodiscard]] std::uint64_t nodes() const override { return own_ > 0 ? own_ : parts_of_; }
  // Steps of members elsewhere take no memory of this machine, beyond what putting the model together takes.
  [[nodiscard]] std::uint64_t memory_needed(const sparse_engine::TrainConfig& config,
                                            const sparse_engine::Recipe& recipe,
                                            const sparse_engine::DataShape& shape) const override;
  [[nodiscard]] Result<sparse_engine::TrainOutcome> train(const run::RunPaths& paths,
                                                          const sparse_engine::TrainInputs& inputs,
                                                          const engine::TrainHooks& hooks) override;
  [[nodiscard]] Result<std::optional<NetworkInParts>> take_parts() override {
    return std::exchange(parts_, std::nullopt);
  }
  void measure_by(const Measure& measure) override { measure_ = measure; }
  void saved() override { remove_delivered(host_.disk, paths_); }
  [[nodiscard]] StepsCost cost() const override { return lead_.cost(); }

 private:
  const run::NodeHost& host_;
  const std::size_t own_;  // processes; 0: members come from anywhere
  RunLead lead_;
  Measure measure_;  // empty: nothing is to be measured
  run::RunPaths paths_{""};
  std::uint64_t parts_of_ = 0;  // members that delivered parts
  std::optional<NetworkInParts> parts_;
};

}  // namespace gossamer::commands
