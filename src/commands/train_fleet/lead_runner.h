// SPDX-License-Identifier: Apache-2.0
//
// LeadRunner does the steps of a run with members that join from anywhere. This process leads them, gives
// them the data, and collects what they have trained and their checkpoints.
//
// Members may come, leave and be killed, as long as what each holds is somewhere else too. If it is not, or
// all have left, the run has ended. When it is resumed, another one goes on from the newest checkpoint.
//
//   DIR/nodes/coordinator   credentials, tokens, store and events of the lead
//   DIR/nodes/parts         what members have trained and told; removed when the model is saved
//   DIR/nodes/ended         there once the run has ended
//   DIR/checkpoints         what members have kept
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "commands/train/train_run.h"
#include "commands/train_fleet/fleet_progress.h"
#include "commands/train_fleet/member_job.h"
#include "host/posix/signals.h"
#include "node/coordinator_node.h"
#include "node/supply_companion.h"
#include "run/node_host.h"

namespace gossamer::commands {

// The directory of the lead of the run in DIR.
[[nodiscard]] std::string lead_directory(const std::string& run);

class LeadRunner final : public StepRunner {
 public:
  struct Options {
    // Options of the lead, without those that follow from the run: configuration, tracks, companion.
    node::CoordinatorOptions lead;
    std::string engine;  // of its members, as the configuration names it
    // Called when it leads. The lead has the address, and `token` is for a new run (else empty).
    std::function<Result<void>(const node::CoordinatorNode& lead, const std::string& token)> leads;
  };
  // The host and what it borrows, and the signals, outlive it.
  LeadRunner(const run::NodeHost& host, const host::PosixSignals& signals, Options options)
      : host_(host), signals_(signals), options_(std::move(options)) {}

  // The number of parts that members have delivered.
  [[nodiscard]] std::uint64_t nodes() const override { return nodes_; }
  // 0: steps take no memory of this machine, beyond what putting the model together takes.
  [[nodiscard]] std::uint64_t memory_needed(const sparse_engine::TrainConfig&, const sparse_engine::Recipe&,
                                            const sparse_engine::DataShape&) const override {
    return 0;
  }
  [[nodiscard]] Result<sparse_engine::TrainOutcome> train(const run::RunPaths& paths,
                                                          const sparse_engine::TrainInputs& inputs,
                                                          const sparse_engine::TrainHooks& hooks) override;
  [[nodiscard]] Result<std::optional<NetworkInParts>> take_parts() override {
    return std::exchange(parts_, std::nullopt);
  }
  void saved() override;
  // The bytes and recoveries that members told. Only the members know their other costs.
  [[nodiscard]] Cost cost() const override { return cost_; }

 private:
  void stay_where_it_was();
  [[nodiscard]] Result<bool> lead_on(const FleetLead& lead, bool known,
                                     const node::SupplyCompanion::Over& over);
  [[nodiscard]] bool gives_up(const node::CoordinatorNode& node, const node::SupplyCompanion& companion);
  // The outcome of a fleet that trained the network and has ended since.
  [[nodiscard]] Result<std::optional<sparse_engine::TrainOutcome>> trained_by_others(
      const sparse_engine::TrainInputs& inputs, const sparse_engine::TrainHooks& hooks);
  [[nodiscard]] Result<sparse_engine::TrainOutcome> take_outcome(const FleetProgress& progress);

  const run::NodeHost& host_;
  const host::PosixSignals& signals_;
  Options options_;
  std::uint64_t nodes_ = 0;
  std::string run_;
  std::optional<NetworkInParts> parts_;
  // Since when a run that is to end waits for room on the disk, and the error that it waits for.
  struct NoRoom {
    Instant since;
    Error last;
  };
  std::optional<NoRoom> no_room_;
  Cost cost_;
};

}  // namespace gossamer::commands
