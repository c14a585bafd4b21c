// SPDX-License-Identifier: Apache-2.0
//
// LeadRunner does the steps of a run with members. This process leads them, gives them the data, and collects
// what they have trained and their checkpoints. There are two kinds of members:
//
// Members from anywhere. They may come, leave and be killed, as long as what each holds is somewhere else
// too. If it is not, or all have left, the run has ended. Resumed, another one goes on from the newest
// checkpoint. This process may be killed: members go on, and the next process leads them.
//
// Own members. They are processes of this machine that this process starts. A killed one is not started
// again: the others compute anew what it held. One that fails ends the run. All end with this process.
// Resumed, the run goes on from the newest checkpoint, with new members.
//
//   DIR/nodes/coordinator     credentials, tokens, store and events of the lead, and its lead.toml
//   DIR/nodes/1 ...           directories of own members; *.log beside them what they say
//   DIR/nodes/parts           what members have trained and told; removed when the run is finished
//   DIR/nodes/ended           there once a run of members from anywhere has ended
//   DIR/checkpoints           what members have kept
//
// Thread rule: one thread, which lives as long as own members are to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "commands/train/train_run.h"
#include "commands/train_fleet/fleet_measuring.h"
#include "commands/train_fleet/fleet_progress.h"
#include "commands/train_fleet/fleet_watch.h"
#include "commands/train_fleet/member_job.h"
#include "node/coordinator_node.h"
#include "node/node_processes.h"
#include "node/supply_companion.h"
#include "run/lead_file.h"
#include "run/node_host.h"

namespace gossamer::commands {

// Processes of this machine that do the steps.
struct OwnNodes {
  std::size_t nodes = 1;         // 1..kMostOwnNodes
  std::size_t threads_each = 1;  // threads of a node
  std::string program = {};      // path of the program's file
};
inline constexpr std::size_t kMostOwnNodes = 64;

class LeadRunner final : public StepRunner {
 public:
  struct Options {
    // Options of the lead, without those that follow from the run: configuration, tracks, companion. For own
    // members `program` is enough.
    node::CoordinatorOptions lead;
    std::string engine;  // of its members, as the configuration names it
    // Called when it leads members from anywhere. The lead has the address, and `token` is for a new run
    // (else empty).
    std::function<Result<void>(const node::CoordinatorNode& lead, const std::string& token)> leads = {};
    std::optional<OwnNodes> own = {};  // nothing: members come from anywhere
  };
  // The host and what it borrows outlive it.
  LeadRunner(const run::NodeHost& host, Options options) : host_(host), options_(std::move(options)) {}

  // Own members, or the number of parts that members have delivered.
  [[nodiscard]] std::uint64_t nodes() const override {
    return options_.own ? options_.own->nodes : parts_of_;
  }
  // Steps of members elsewhere take no memory of this machine, beyond what putting the model together takes.
  [[nodiscard]] std::uint64_t memory_needed(const sparse_engine::TrainConfig& config,
                                            const sparse_engine::Recipe& recipe,
                                            const sparse_engine::DataShape& shape) const override;
  [[nodiscard]] Result<sparse_engine::TrainOutcome> train(const run::RunPaths& paths,
                                                          const sparse_engine::TrainInputs& inputs,
                                                          const sparse_engine::TrainHooks& hooks) override;
  [[nodiscard]] Result<std::optional<NetworkInParts>> take_parts() override {
    return std::exchange(parts_, std::nullopt);
  }
  void measure_by(Measure measure) override { measure_ = std::move(measure); }
  void saved() override;
  // Costs of own members, and the bytes and recoveries that all members told.
  [[nodiscard]] Cost cost() const override { return cost_; }

 private:
  // The fleet that was in the run's directory before.
  struct Before {
    run::LeadFile file;
    StepNumber start;
    bool goes_on = false;  // it can be led on
  };
  [[nodiscard]] Result<Before> fleet_before() const;
  // Makes room for a new fleet.
  [[nodiscard]] Result<void> begin_anew();
  [[nodiscard]] std::size_t members_in_mind() const;
  void stay_where_it_was(node::CoordinatorOptions& lead) const;
  void complete(node::CoordinatorOptions& options, const FleetLead& lead) const;
  [[nodiscard]] Result<bool> lead_on(node::CoordinatorOptions options, const FleetLead& lead,
                                     const sparse_engine::TrainHooks& hooks, FleetWatch& watch,
                                     FleetMeasuring* measuring);
  [[nodiscard]] Result<bool> lead_own(node::CoordinatorNode& node, FleetWatch& watch);
  [[nodiscard]] bool gives_up(const node::CoordinatorNode& node, const node::SupplyCompanion& companion);
  // The outcome of a fleet that trained the network and has ended since.
  [[nodiscard]] Result<std::optional<sparse_engine::TrainOutcome>> trained_by_others(
      const Before& before, const sparse_engine::TrainInputs& inputs, const sparse_engine::TrainHooks& hooks);
  [[nodiscard]] sparse_engine::TrainOutcome take(TrainedNetwork trained, const FleetProgress& progress,
                                                 FleetWatch& watch);

  const run::NodeHost& host_;
  const Options options_;
  Measure measure_;  // empty: nothing is to be measured
  std::string run_;
  std::unique_ptr<node::NodeProcesses> own_;  // null before they are started
  std::uint64_t parts_of_ = 0;                // members that delivered parts
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
