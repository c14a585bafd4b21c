// SPDX-License-Identifier: Apache-2.0
//
// CheckFleet, for tests: a fleet check in virtual time, with real coordinators and members over the simulated
// internet and store, and what can go wrong with them. Thread rule: the test's thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cluster/control/member_process.h"
#include "engines/check/check_config.h"
#include "engines/check/check_engine.h"
#include "engines/check/check_workload.h"
#include "host/sim/internet.h"
#include "host/sim/store.h"
#include "host/sim/timeline.h"
#include "simulation/durable.h"
#include "simulation/invariants.h"
#include "simulation/quiet.h"
#include "simulation/sim_coordinator.h"
#include "simulation/sim_process.h"

namespace gossamer::engine {

// How a driver hands over what the network says: each event at once, or all that came in 20 ms together, as
// a busy machine's loop does. Then the member is ahead of what its engine has been told.
enum class Driver { kPrompt, kBatches };

class CheckMember final : public simulation::SimProcess {
 public:
  struct Options {
    std::string machine;
    std::uint64_t seed = 0;
    Driver driver = Driver::kPrompt;
    CheckEngine::Options engine = {};
  };
  CheckMember(host::Timeline& timeline, host::SimInternet& internet, const Options& options);
  ~CheckMember() override;

  void drain();
  // It has left or failed, and its process would end.
  [[nodiscard]] bool done() const { return process_->done(); }
  [[nodiscard]] const CheckEngine& engine() const { return *engine_; }
  [[nodiscard]] cluster::Member* member() { return process_->member(); }
  // A step that came out of order in one life.
  [[nodiscard]] const std::optional<std::string>& broke() const { return broke_; }

 private:
  void on_network(host::NetworkEvent event) override;
  void on_timer() override;
  void go_on();

  const Driver driver_;
  bool batch_begun_ = false;
  std::unique_ptr<cluster::MemberProcess> process_;
  std::unique_ptr<CheckEngine> engine_;
  std::optional<StepNumber> last_step_;
  std::optional<std::string> broke_;
};

class CheckFleet {
 public:
  CheckFleet(const CheckConfig& config, std::size_t first_members, std::uint64_t seed,
             Driver driver = Driver::kPrompt);

  // The machine of the new member: m1, m2, ...
  std::string join(const CheckEngine::Options& options = {});
  void kill(const std::string& machine) { members_.erase(machine); }
  void kill_coordinator_for(Duration time);
  void pause_for(const std::string& machine, Duration time);
  // From all others.
  void cut_off_for(const std::string& machine, Duration time);
  void run_for(double seconds);
  void stop(const std::string& reason);

  [[nodiscard]] std::map<std::string, std::unique_ptr<CheckMember>>& members() { return members_; }
  [[nodiscard]] CheckMember& member(const std::string& machine) { return *members_.at(machine); }
  [[nodiscard]] cluster::Coordinator* leader();
  [[nodiscard]] const CheckWorkload& workload() const { return workload_; }
  [[nodiscard]] host::SimInternet& internet() { return internet_; }
  [[nodiscard]] host::Timeline& timeline() { return timeline_; }
  // The first failure of any member, also of those that are gone, or of the coordinator's judgement.
  [[nodiscard]] std::optional<std::string> failure();
  // What coordinators noted, a line each.
  [[nodiscard]] const std::string& log() const { return log_; }
  // Of the lowest and of the highest serving member that holds things; nothing without one.
  [[nodiscard]] std::optional<std::pair<StepNumber, StepNumber>> steps();

 private:
  void start_coordinator();
  void look();
  void note_failures();

  const CheckConfig config_;
  const std::size_t first_members_;
  const std::uint64_t seed_;
  const Driver driver_;
  std::uint64_t lives_ = 0;  // of coordinators
  std::uint64_t machines_ = 0;
  std::string log_;
  host::Timeline timeline_;
  host::SimInternet internet_;
  host::SimStoreMedium medium_;
  CheckWorkload workload_;
  simulation::Durable durable_;
  simulation::Invariants invariants_;
  simulation::Traffic traffic_;
  std::optional<std::string> failure_;
  std::unique_ptr<simulation::SimCoordinator> coordinator_;
  std::map<std::string, std::unique_ptr<CheckMember>> members_;
};

}  // namespace gossamer::engine
