// SPDX-License-Identifier: Apache-2.0
//
// EngineFleet: a run with a real engine in virtual time. Real coordinators and members run over the simulated
// internet and store, with faults (faulty_fleet.h). Thread rule: the simulation's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cluster/control/coordinator.h"
#include "cluster/control/defect.h"
#include "cluster/control/workload.h"
#include "cluster/membership/track.h"
#include "host/sim/store.h"
#include "simulation/cluster_chaos.h"
#include "simulation/durable.h"
#include "simulation/engine_process.h"
#include "simulation/faulty_fleet.h"
#include "simulation/invariants.h"
#include "simulation/quiet.h"
#include "simulation/sim_coordinator.h"

namespace gossamer::simulation {

class EngineFleet : public FaultyFleet {
 public:
  struct Options {
    cluster::Workload& workload;  // outlives the fleet
    std::string configuration;
    std::vector<cluster::TrackId> tracks;
    std::size_t first_members = 1;
    std::uint64_t seed = 0;
    placement::Options placement = {};
    StoreKind store = StoreKind::kFile;
    host::PathQuality path = {};
    double clock_error = 0;  // rates are drawn from 1 - this to 1 + this
    Duration freeze_time = from_seconds(30);
    cluster::Defect defect = cluster::Defect::kNone;
    TimedTrace trace = {};
    // Gets messages that arrive at the leader on channels other than the coordinator's.
    std::function<void(const net::Arrived&)> others = {};
    // Options, without machine and seed, of members that faults begin or that replace_done() puts in others'
    // places.
    std::function<EngineProcess::Options()> new_member = {};
  };
  // A fleet without members.
  explicit EngineFleet(Options options);
  ~EngineFleet() override;

  // Starts a member and returns its machine: m1, m2, ... `options` come without machine and seed.
  std::string join(EngineProcess::Options options);
  void kill(const std::string& machine) { remove(machine); }
  void kill_coordinator_for(Duration time);
  // Removes members that are done, and starts others in their place.
  void replace_done();
  void run_for(double seconds);
  void stop(const std::string& reason);

  [[nodiscard]] std::map<std::string, std::unique_ptr<EngineProcess>>& members() { return members_; }
  [[nodiscard]] EngineProcess& member(const std::string& machine) { return *members_.at(machine); }
  [[nodiscard]] cluster::Coordinator* leader();
  // Sends from the leader. The message is lost while nobody leads.
  void send(net::PeerId to, host::Lane lane, net::Message message);
  [[nodiscard]] const Durable& durable() const { return durable_; }
  [[nodiscard]] Invariants& invariants() { return invariants_; }
  // Lives that members have begun.
  [[nodiscard]] std::uint64_t lives() const;
  // The first failure of any member, a removed one too, or of the coordinator's judgement.
  [[nodiscard]] std::optional<std::string> failure();
  // The notes of coordinators, a line each.
  [[nodiscard]] const std::string& log() const { return log_; }

 private:
  [[nodiscard]] std::vector<std::string> coordinator_machines() const override;
  [[nodiscard]] std::unique_ptr<SimCoordinator> make_coordinator(const std::string& machine) override;
  [[nodiscard]] std::vector<std::string> member_machines() const override;
  [[nodiscard]] SimProcess* process_of(const std::string& member) override;
  void start_new_member() override { join(options_.new_member()); }
  void remove(const std::string& member) override;
  void drain(const std::string& member, const std::string& reason) override {
    this->member(member).drain(reason);
  }
  void leave(const std::string& member, const std::string& reason) override {
    this->member(member).leave(reason);
  }
  void hang(const std::string& member, Duration lasts) override { this->member(member).hang(lasts); }
  [[nodiscard]] ClockError draw_clock();
  // Called when the store has applied the changes.
  void stored(std::span<const host::Change> changes);
  void watch(EngineProcess& process);
  void look();
  void note_failure(const std::string& what);
  void note_failures();

  // How far a member has come, as seen so far.
  struct Seen {
    Epoch view;
    Epoch installed;
  };

  const Options options_;
  Rng rng_;
  std::uint64_t coordinator_lives_ = 0;
  std::uint64_t machines_ = 0;
  std::uint64_t past_lives_ = 0;
  std::string log_;
  host::SimStoreMedium medium_;
  Durable durable_;
  Invariants invariants_;
  Traffic traffic_;
  std::optional<std::string> failure_;
  std::map<std::string, Seen> seen_;
  std::map<std::string, std::unique_ptr<EngineProcess>> members_;
};

}  // namespace gossamer::simulation
