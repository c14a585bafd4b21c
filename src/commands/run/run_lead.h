// SPDX-License-Identifier: Apache-2.0
//
// RunLead does the steps of a run with members, for any engine. This process leads them, gives them the data,
// and collects what they have trained and their checkpoints. There are two kinds of members:
//
// Members from anywhere. They may come, leave and be killed. If none is left, this process waits for others,
// or the same. They go on from the newest checkpoint. Members that leave in order write one of their last
// step. This process may be killed: members go on, and the next process leads them. A run that was stopped
// has ended. Resumed, it goes on from the newest checkpoint, and machines of before join with what they have.
//
// Own members. They are processes of this machine that this process starts. A killed one is not started
// again: the others compute anew what it held. One that fails ends the run. All end with this process.
// Resumed, the run goes on from the newest checkpoint, with new members.
//
//   DIR/nodes/coordinator     credentials, tokens, store and events of the lead, its lead.toml, and the
//                             owners by the last views
//   DIR/nodes/1 ...           directories of own members; *.log beside them what they say
//   DIR/nodes/parts           what members have trained, until the run is finished
//   DIR/nodes/reports         what members have told, until then
//   DIR/nodes/ended           there once a fleet of members from anywhere is over, until the next one begins
//   DIR/checkpoints           what members have kept
//
// Thread rule: one thread, which lives as long as own members are to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "commands/engine/run_request.h"
#include "commands/engine/training.h"
#include "commands/run/fleet_progress.h"
#include "commands/run/fleet_watch.h"
#include "commands/run/owner_book.h"
#include "commands/run/return_watch.h"
#include "commands/run/room_patience.h"
#include "engines/run/train_hooks.h"
#include "node/coordinator_node.h"
#include "node/node_processes.h"
#include "node/supply_companion.h"
#include "run/lead_file.h"
#include "run/node_host.h"
#include "run/run_directory.h"

namespace gossamer::commands {

class RunLead {
 public:
  // `engine`: of its members, as the configuration names it. The host and what it borrows outlive it.
  RunLead(const run::NodeHost& host, std::string engine, LeadOptions options)
      : host_(host), engine_(std::move(engine)), options_(std::move(options)) {}

  // Does the steps of the run in that directory, a path from the root. Afterwards the training has the
  // result, if no step is left.
  [[nodiscard]] Result<DoneSteps> train(const run::RunPaths& paths, LedTraining& training,
                                        const engine::TrainHooks& hooks);
  // After train(): costs of own members, and the bytes and recoveries that all members told.
  [[nodiscard]] const StepsCost& cost() const { return cost_; }

 private:
  // The fleet that was in the run's directory before.
  struct Before {
    run::LeadFile file = {};
    StepNumber start;
    bool goes_on = false;        // it can be led on
    bool has_authority = false;  // its certificates and tokens are good for another fleet
  };
  enum class Ending {
    kEnded,        // the run, for all its members
    kInterrupted,  // this process is to stop; members go on
    kGone,         // no member is left, or those that are left lack a part
  };
  [[nodiscard]] Result<Before> fleet_before() const;
  // Makes room for a new fleet.
  [[nodiscard]] Result<void> begin_anew(const Before& before);
  [[nodiscard]] Result<void> begin_from_nothing();
  [[nodiscard]] Result<DoneSteps> take_trained(LedTraining& training, const engine::TrainHooks& hooks);
  [[nodiscard]] Result<DoneSteps> lead_fleets(node::CoordinatorOptions options, StepNumber start,
                                              LedTraining& training, const engine::TrainHooks& hooks);
  [[nodiscard]] std::size_t members_in_mind() const;
  [[nodiscard]] Result<void> look_where_it_listens(node::CoordinatorOptions& lead,
                                                   const Before& before) const;
  [[nodiscard]] Result<std::optional<DoneSteps>> lead_from(const node::CoordinatorOptions& wanted,
                                                           StepNumber start, LedTraining& training,
                                                           const engine::TrainHooks& hooks);
  void complete(node::CoordinatorOptions& options, const Led& led, StepNumber start) const;
  [[nodiscard]] Result<Ending> lead_on(node::CoordinatorOptions options, const Led& led,
                                       const engine::TrainHooks& hooks, FleetWatch& watch,
                                       FleetProgress& progress);
  [[nodiscard]] std::string waits_for(ReturnWatch& returns, const cluster::View& view,
                                      FleetWatch& watch) const;
  [[nodiscard]] static bool is_overtaken(const node::CoordinatorNode& node, FleetWatch& watch, bool& waits);
  [[nodiscard]] Result<void> tell_where(node::CoordinatorNode& node, bool begins);
  [[nodiscard]] Result<void> note_end();
  void forget_end();
  [[nodiscard]] Result<Ending> lead_own(node::CoordinatorNode& node, FleetWatch& watch);
  [[nodiscard]] bool gives_up(const node::CoordinatorNode& node, const node::SupplyCompanion& companion);
  // The steps of a fleet that has delivered the result and has ended since.
  [[nodiscard]] Result<std::optional<DoneSteps>> trained_by_others(const Before& before,
                                                                   LedTraining& training,
                                                                   const engine::TrainHooks& hooks);
  [[nodiscard]] DoneSteps finish(const LedTraining& training, const FleetProgress& progress,
                                 FleetWatch& watch);

  const run::NodeHost& host_;
  const std::string engine_;
  const LeadOptions options_;
  run::RunPaths paths_{""};
  std::unique_ptr<node::NodeProcesses> own_;  // null before they are started
  std::unique_ptr<OwnerBook> owners_;         // null before a fleet is led
  RoomPatience room_;
  // Where the first fleet of this process began.
  struct First {
    Instant at;
    tensors::CheckpointInfo from;
  };
  First first_;
  std::uint64_t told_steps_ = 0;          // done by the last fleet of which no member is left
  std::optional<StepNumber> unfinished_;  // a newer step than its checkpoints, of which it left some files
  bool told_where_ = false;
  bool begun_ = false;                             // no file says that the run has ended
  bool store_says_end_ = false;                    // of the fleet that was led last
  std::vector<engine::FleetRecovery> recoveries_;  // of fleets before the last one
  StepsCost cost_;
};

// Removes what members delivered to the run. If it cannot be removed, only room is lost.
void remove_delivered(host::Disk& disk, const run::RunPaths& paths);

}  // namespace gossamer::commands
