// SPDX-License-Identifier: Apache-2.0
//
// LeadRunner: the steps of a run by members that join from anywhere: this process leads them, gives them the
// data and collects what they have trained, and their checkpoints. Members may come, leave and be killed as
// long as what each holds is somewhere else too; if it is not, or all have left, the run has ended, and when
// it is resumed another one goes on from the newest checkpoint.
//
//   DIR/nodes/coordinator   credentials, tokens, store and events of the lead
//   DIR/nodes/parts         what members have trained and told; removed when it is put together
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
#include "host/posix/signals.h"
#include "node/cluster/coordinator_node.h"
#include "node/fleet/fleet_companion.h"
#include "node/fleet/fleet_progress.h"
#include "node/fleet/member_job.h"
#include "node/node_host.h"
#include "node/train_run.h"

namespace gossamer::node {

// Of the lead of the run in that directory.
[[nodiscard]] std::string lead_directory(const std::string& run);

class LeadRunner final : public StepRunner {
 public:
  struct Options {
    CoordinatorOptions lead;  // without what follows from the run: configuration, tracks, companion
    std::string engine;       // for engine_configuration()
    // It leads: where, and with which token, if the run is new.
    std::function<Result<void>(const CoordinatorNode& lead, const std::string& token)> leads;
  };
  // The host and what it borrows, and the signals, outlive it.
  LeadRunner(const NodeHost& host, const host::PosixSignals& signals, Options options)
      : host_(host), signals_(signals), options_(std::move(options)) {}

  // Those that have delivered.
  [[nodiscard]] std::uint64_t nodes() const override { return nodes_; }
  // On this machine, nothing beyond what putting the model together takes.
  [[nodiscard]] std::uint64_t memory_needed(const engine::TrainConfig&, const engine::Recipe&,
                                            const engine::DataShape&) const override {
    return 0;
  }
  [[nodiscard]] Result<engine::TrainOutcome> train(const RunPaths& paths, const engine::TrainInputs& inputs,
                                                   const engine::TrainHooks& hooks) override;
  [[nodiscard]] Result<std::optional<NetworkInParts>> take_parts() override {
    return std::exchange(parts_, std::nullopt);
  }
  void saved() override;
  // Bytes and recoveries; what else members cost, they alone know.
  [[nodiscard]] Cost cost() const override { return cost_; }

 private:
  void stay_where_it_was();
  [[nodiscard]] Result<bool> lead_on(const FleetLead& lead, bool known, const FleetCompanion::Over& over);
  [[nodiscard]] bool gives_up(const CoordinatorNode& node, const FleetCompanion& companion);
  // By a fleet that has ended since.
  [[nodiscard]] Result<std::optional<engine::TrainOutcome>> trained_by_others(
      const engine::TrainInputs& inputs, const engine::TrainHooks& hooks);
  [[nodiscard]] Result<engine::TrainOutcome> take_outcome(const FleetProgress& progress);

  const NodeHost& host_;
  const host::PosixSignals& signals_;
  Options options_;
  std::uint64_t nodes_ = 0;
  std::string run_;
  std::optional<NetworkInParts> parts_;
  // Since when a run that is to end waits for room on the disk, and for what.
  struct NoRoom {
    Instant since;
    Error last;
  };
  std::optional<NoRoom> no_room_;
  Cost cost_;
};

}  // namespace gossamer::node
