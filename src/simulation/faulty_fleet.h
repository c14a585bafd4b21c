// SPDX-License-Identifier: Apache-2.0
//
// FaultyFleet: carries out the faults of fault.h on the processes of a simulated run, and on the paths
// between them, whatever the processes compute. The derived class knows the members. It must destroy its
// coordinators before the objects that they use.
//
// Thread rule: the simulation's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/sim/internet.h"
#include "host/sim/timeline.h"
#include "simulation/fault.h"
#include "simulation/sim_coordinator.h"
#include "simulation/sim_process.h"

namespace gossamer::simulation {

// Called with events and the simulated time in seconds. May be empty.
using TimedTrace = std::function<void(double, const std::string& who, const std::string& what)>;

class FaultyFleet {
 public:
  struct Options {
    std::uint64_t seed = 1;
    host::PathQuality path = {};  // between any two machines
    TimedTrace trace = {};
  };
  virtual ~FaultyFleet() = default;

  void inject(const Fault& fault);
  // Cuts a machine off from all others.
  void cut_off_for(const std::string& machine, Duration lasts);
  void pause_for(const std::string& member, Duration lasts);

  [[nodiscard]] host::Timeline& timeline() { return timeline_; }
  [[nodiscard]] host::SimInternet& internet() { return internet_; }
  [[nodiscard]] std::uint64_t faults_injected() const { return injected_; }

 protected:
  explicit FaultyFleet(const Options& options);

  [[nodiscard]] virtual std::vector<std::string> coordinator_machines() const = 0;
  [[nodiscard]] virtual std::unique_ptr<SimCoordinator> make_coordinator(const std::string& machine) = 0;
  // The machines of all present members, in their order.
  [[nodiscard]] virtual std::vector<std::string> member_machines() const = 0;
  // Null: the member is gone.
  [[nodiscard]] virtual SimProcess* process_of(const std::string& member) = 0;
  virtual void start_new_member() = 0;
  // Ends the member's process at once.
  virtual void remove(const std::string& member) = 0;
  // Ends the member's process at once, and begins it again after a while.
  virtual void remove_for(const std::string& member, Duration after);
  virtual void drain(const std::string& member, const std::string& reason) = 0;
  virtual void leave(const std::string& member, const std::string& reason) = 0;
  virtual void hang(const std::string& member, Duration lasts) = 0;
  // Carries out the faults that only some fleets know: kHostile and kLie.
  virtual void misbehave(const std::string& member, const Fault& fault);

  void start_coordinator(const std::string& machine) { coordinators_[machine] = make_coordinator(machine); }
  // Null: nobody leads, or the leader is paused.
  [[nodiscard]] SimCoordinator* leading();
  [[nodiscard]] Trace trace();

  host::Timeline timeline_;
  host::SimInternet internet_;
  std::map<std::string, std::unique_ptr<SimCoordinator>> coordinators_;

 private:
  void inject_on_member(const Fault& fault, const std::string& member);
  void inject_on_coordinator(const Fault& fault);
  void inject_on_path(const Fault& fault, const std::string& member, const std::string& other);
  void kill_coordinator(const std::string& machine, const Fault& fault);
  void give_notice(const std::string& member, Duration notice);
  void cut_for(const std::string& a, const std::string& b, Duration lasts);
  // Another machine than `but`, of a member or a coordinator.
  [[nodiscard]] std::string pick_machine(std::uint64_t number, const std::string& but) const;

  const Options options_;
  std::uint64_t injected_ = 0;
};

}  // namespace gossamer::simulation
