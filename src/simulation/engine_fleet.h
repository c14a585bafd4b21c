// SPDX-License-Identifier: Apache-2.0
//
// EngineFleet: a run with a real engine in virtual time, with real coordinators and members over the
// simulated internet and store, and what can go wrong with them (faulty_fleet.h). Thread rule: the
// simulation's.
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
    // What arrives at the leader on channels that are not the coordinator's.
    std::function<void(const net::Arrived&)> others = {};
    // Those that faults begin and replace_done() puts in others' places, without machine and seed.
    std::function<EngineProcess::Options()> new_member = {};
  };
  // Without members.
  explicit EngineFleet(Options options);
  ~EngineFleet() override;

  // The machine of the new member: m1, m2, ... `options` without machine and seed.
  std::string join(EngineProcess::Options options);
  void kill(const std::string& machine) { remove(machine); }
  void kill_coordinator_for(Duration time);
  // Takes away those that are done, and starts others in their place.
  void replace_done();
  void run_for(double seconds);
  void stop(const std::string& reason);

  [[nodiscard]] std::map<std::string, std::unique_ptr<EngineProcess>>& members() { return members_; }
  [[nodiscard]] EngineProcess& member(const std::string& machine) { return *members_.at(machine); }
  [[nodiscard]] cluster::Coordinator* leader();
  // From the leader; lost while nobody leads.
  void send(net::PeerId to, host::Lane lane, net::Message message);
  [[nodiscard]] const Durable& durable() const { return durable_; }
  [[nodiscard]] Invariants& invariants() { return invariants_; }
  // Of members.
  [[nodiscard]] std::uint64_t lives() const;
  // The first failure of any member, also of those that are gone, or of the coordinator's judgement.
  [[nodiscard]] std::optional<std::string> failure();
  // What coordinators noted, a line each.
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
  // The store has applied it.
  void stored(std::span<const host::Change> changes);
  void watch(EngineProcess& process);
  void look();
  void note_failure(const std::string& what);
  void note_failures();

  // What a member has shown so far.
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
