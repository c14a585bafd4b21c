// SPDX-License-Identifier: Apache-2.0
//
// Fleet: the coordinators and members of one simulated run on their machines, with their faults. Thread rule:
// the simulation's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "host/sim/store.h"
#include "simulation/cluster_chaos.h"
#include "simulation/counting_engine.h"
#include "simulation/durable.h"
#include "simulation/faulty_fleet.h"
#include "simulation/invariants.h"
#include "simulation/quiet.h"
#include "simulation/shape.h"
#include "simulation/sim_coordinator.h"
#include "simulation/sim_member.h"

namespace gossamer::simulation {

class Fleet final : public FaultyFleet {
 public:
  explicit Fleet(const ChaosOptions& options);
  ~Fleet() override;

  void start();
  // Removes members that are done, and starts others in their place.
  void replace_done();
  // Why not all members work together at this moment; nothing: they do.
  [[nodiscard]] std::optional<std::string> unsettled();
  // A member that has waited longer than this for an answer; nothing: there is none.
  [[nodiscard]] std::optional<std::string> unanswered(Duration longer) const;
  // Traces the state of all members, for people.
  void describe();

  [[nodiscard]] Invariants& invariants() { return invariants_; }
  [[nodiscard]] const Durable& durable() const { return durable_; }
  [[nodiscard]] Calm calm();
  [[nodiscard]] const ChaosProbes& probes() const { return probes_; }
  [[nodiscard]] std::uint64_t lives() const;
  // All members take the same steps at the same time.
  [[nodiscard]] bool lockstep() const { return shape_.view_change == cluster::ViewChange::kFrozen; }
  // Steps that all members have taken together. Without common steps: those that were claimed and committed.
  [[nodiscard]] StepNumber steps() const;
  // A hostile life that is not fenced.
  [[nodiscard]] std::optional<std::string> harboured() const;
  // Why the run has failed, if it has without a lie.
  [[nodiscard]] std::optional<std::string> wronged();
  // A process that is still there though the run was told to end.
  [[nodiscard]] std::optional<std::string> lingering();

 private:
  // Called when the store has applied the changes.
  void stored(std::span<const host::Change> changes);
  [[nodiscard]] std::vector<std::string> coordinator_machines() const override;
  [[nodiscard]] std::unique_ptr<SimCoordinator> make_coordinator(const std::string& machine) override;
  [[nodiscard]] std::vector<std::string> member_machines() const override;
  [[nodiscard]] SimProcess* process_of(const std::string& member) override;
  void start_new_member() override { start_member(NodeId(cluster::kCoordinatorNode.value + ++nodes_)); }
  void remove(const std::string& member) override;
  // Ends a member. The same node begins again, with its certificate if it has one.
  void remove_for(const std::string& member, Duration after) override;
  void drain(const std::string& member, const std::string& reason) override;
  void leave(const std::string& member, const std::string& reason) override;
  void hang(const std::string& member, Duration lasts) override;
  void misbehave(const std::string& member, const Fault& fault) override;
  void turn_hostile(SimMember& member);
  void turn_liar(SimMember& member, const Fault& fault);
  [[nodiscard]] ClockError draw_clock();
  [[nodiscard]] bool believes(Incarnation incarnation, const cluster::LeaseKeys& keys);
  [[nodiscard]] std::string certificate(NodeId node) const;
  void start_member(NodeId node);

  const ChaosOptions& options_;
  Rng rng_;
  const Shape shape_;
  host::SimStoreMedium medium_;
  CountingWorkload workload_;
  Durable durable_;
  Invariants invariants_;
  Traffic traffic_;
  ChaosProbes probes_;
  std::map<std::string, std::unique_ptr<SimMember>> members_;
  std::uint64_t nodes_ = 0;
  std::uint64_t machines_ = 0;
  std::uint64_t past_lives_ = 0;
  std::uint64_t coordinator_lives_ = 0;
  std::vector<Incarnation> hostile_;
  std::set<Incarnation> liars_;
  std::set<Incarnation> pretenders_;  // the liars whose claimed deeds count for nothing
  bool contradicted_ = false;
};

}  // namespace gossamer::simulation
