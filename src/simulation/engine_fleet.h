// SPDX-License-Identifier: Apache-2.0
//
// EngineFleet: a run with a real engine in virtual time, with real coordinators and members over the
// simulated internet and store, and what can go wrong with them. Thread rule: the simulation's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/control/coordinator.h"
#include "cluster/control/workload.h"
#include "cluster/membership/track.h"
#include "host/sim/internet.h"
#include "host/sim/store.h"
#include "host/sim/timeline.h"
#include "simulation/durable.h"
#include "simulation/engine_process.h"
#include "simulation/invariants.h"
#include "simulation/quiet.h"
#include "simulation/sim_coordinator.h"

namespace gossamer::simulation {

class EngineFleet {
 public:
  struct Options {
    cluster::Workload& workload;  // outlives the fleet
    std::string configuration;
    std::vector<cluster::TrackId> tracks;
    std::size_t first_members = 1;
    std::uint64_t seed = 0;
    placement::Options placement = {};
  };
  // Without members.
  explicit EngineFleet(Options options);
  virtual ~EngineFleet() = default;

  // The machine of the new member: m1, m2, ... `options` without machine and seed.
  std::string join(EngineProcess::Options options);
  void kill(const std::string& machine) { members_.erase(machine); }
  void kill_coordinator_for(Duration time);
  void pause_for(const std::string& machine, Duration time);
  // From all others.
  void cut_off_for(const std::string& machine, Duration time);
  void run_for(double seconds);
  void stop(const std::string& reason);

  [[nodiscard]] std::map<std::string, std::unique_ptr<EngineProcess>>& members() { return members_; }
  [[nodiscard]] EngineProcess& member(const std::string& machine) { return *members_.at(machine); }
  [[nodiscard]] cluster::Coordinator* leader();
  [[nodiscard]] host::SimInternet& internet() { return internet_; }
  [[nodiscard]] host::Timeline& timeline() { return timeline_; }
  // The first failure of any member, also of those that are gone, or of the coordinator's judgement.
  [[nodiscard]] std::optional<std::string> failure();
  // What coordinators noted, a line each.
  [[nodiscard]] const std::string& log() const { return log_; }

 protected:
  // What a test found wrong itself.
  void note_failure(const std::string& what);

 private:
  void start_coordinator();
  void look();
  void note_failures();

  const Options options_;
  std::uint64_t lives_ = 0;  // of coordinators
  std::uint64_t machines_ = 0;
  std::string log_;
  host::Timeline timeline_;
  host::SimInternet internet_;
  host::SimStoreMedium medium_;
  Durable durable_;
  Invariants invariants_;
  Traffic traffic_;
  std::optional<std::string> failure_;
  std::unique_ptr<SimCoordinator> coordinator_;
  std::map<std::string, std::unique_ptr<EngineProcess>> members_;
};

}  // namespace gossamer::simulation
