// SPDX-License-Identifier: Apache-2.0
//
// Fleet: a run in virtual time, with any engine. Real coordinators and members run over the simulated
// internet and store. Faults strike them, and invariants are watched from outside. Thread rule: the
// simulation's.
#pragma once

#include <cstddef>
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
#include "cluster/control/coordinator.h"
#include "cluster/control/defect.h"
#include "cluster/control/workload.h"
#include "cluster/membership/track.h"
#include "host/sim/internet.h"
#include "host/sim/store.h"
#include "host/sim/timeline.h"
#include "simulation/access_lines.h"
#include "simulation/contact_watch.h"
#include "simulation/fault.h"
#include "simulation/quiet.h"
#include "simulation/sim_coordinator.h"
#include "simulation/sim_member.h"
#include "simulation/watch/claim_watch.h"
#include "simulation/watch/durable.h"
#include "simulation/watch/invariants.h"
#include "simulation/watch/marked_lives.h"

namespace gossamer::simulation {

// kFile: one coordinator, which comes back to its file. kCluster: a second one stands by (etcd).
enum class StoreKind { kFile, kCluster };
// kCertified: nodes have certificates and keep their numbers from life to life. kNumbered: they get new ones.
enum class Identity { kCertified, kNumbered };

// Called with events and the simulated time in seconds. May be empty.
using TimedTrace = std::function<void(double, const std::string& who, const std::string& what)>;

// So long after they died members are fenced at the latest. There may be several leads.
inline constexpr Duration kSurelyGivenUp = from_seconds(760);

class Fleet final {
 public:
  // A member has it without a coordinator, and the coordinator with silent members that others need.
  static constexpr Duration kPatience = from_seconds(600);
  // A dead member is fenced sooner unless the leader waits for it.
  static constexpr Duration kSurelyFenced = from_seconds(15);
  // What may wait at a process because of one node: for it, and from it (LinkStatistics::held_bytes).
  static constexpr std::uint64_t kMostHeld = 50'000'000;

  struct Options {
    cluster::Workload& workload;  // outlives the fleet
    std::string configuration = {};
    std::vector<cluster::TrackId> tracks = {};
    std::uint64_t batch = 1;  // samples of a step
    std::size_t first_members = 1;
    cluster::ViewChange view_change = cluster::ViewChange::kFrozen;
    std::uint64_t seed = 0;
    placement::Options placement = {};
    StoreKind store = StoreKind::kFile;
    Identity identity = Identity::kNumbered;
    host::PathQuality path = {};  // between any two machines
    Duration scatter = {};        // and each machine's line adds up to so much (access_lines.h)
    bool machines_again = false;  // a member that begins may get the machine of one that has ended
    // Offsets are drawn, and rates from 1 - this to 1 + this. Nothing: all clocks are right.
    std::optional<double> clock_error = std::nullopt;
    Duration freeze_time = from_seconds(30);
    cluster::Defect defect = cluster::Defect::kNone;
    TimedTrace trace = {};
    ProbeCounts<cluster::ControlProbe>* probes = nullptr;
    ProbeCounts<net::LinkProbe>* link_probes = nullptr;
    // Gets messages that arrive at the leader on channels other than the coordinator's.
    std::function<void(const net::Arrived&)> others = {};
    // Members that faults begin or that replace_done() puts in others' places.
    std::function<SimMember::Options()> new_member = {};
    // Carries out the faults that only some fleets know: kHostile and kLie.
    std::function<void(SimMember&, const Fault&)> misbehave = {};
    // The step at which a decision of the workload goes on, to be compared with steps taken.
    std::function<std::optional<StepNumber>(const std::string& decision)> resume_of = {};
  };
  // A fleet without members.
  explicit Fleet(Options options);

  // Starts a member and returns its machine: m1, m2, ...
  std::string join(SimMember::Options options);
  void start_new_member() { join(options_.new_member()); }
  // Ends the member's process at once. The name is a copy, as callers have it from members(), which loses it.
  void kill(std::string machine);
  // Likewise, and the same node begins again after a while.
  void kill_for(const std::string& machine, Duration time);
  // Ends a coordinator for good. kSilent: with its machine, unless members run there.
  enum class Machine { kStays, kSilent };
  void lose_coordinator(const std::string& machine, Machine what);
  // Whether another coordinator runs beside the one that leads.
  [[nodiscard]] bool has_standby() const { return coordinators_.size() > 1; }
  // Ends a coordinator. `back` is called when it has begun again.
  void kill_coordinator_for(
      const std::string& machine, Duration time, std::function<void(SimCoordinator&)> back = [](auto&) {});
  void pause_for(const std::string& machine, Duration lasts);
  // Cuts a machine off from another, or from all others.
  void cut_for(const std::string& one, const std::string& other, Duration lasts);
  void cut_off_for(const std::string& machine, Duration lasts);
  // Carries out a fault (fault_injection.h).
  void inject(const Fault& fault);
  // A fault strikes the member's present life, if it has one.
  void note_struck(SimMember& member, Struck how);
  [[nodiscard]] MarkedLives& marked() { return marked_; }
  // MarkedLives::taken_and_fenced() of this fleet.
  [[nodiscard]] std::uint64_t taken_and_fenced() { return marked_.taken_and_fenced(durable_, leader()); }
  // The path between two machines while no fault changes it.
  [[nodiscard]] host::PathQuality usual_path(const std::string& from, const std::string& to) const {
    return lines_.path(from, to);
  }
  // Removes members that are done, and starts others in their place.
  void replace_done();
  void run_for(double seconds);
  void stop(const std::string& reason);

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] host::Timeline& timeline() { return timeline_; }
  [[nodiscard]] host::SimInternet& internet() { return internet_; }
  [[nodiscard]] std::map<std::string, std::unique_ptr<SimMember>>& members() { return members_; }
  [[nodiscard]] SimMember& member(const std::string& machine) { return *members_.at(machine); }
  // Null: the member is gone.
  [[nodiscard]] SimMember* find(const std::string& machine);
  // The machines of all present members, in their order.
  [[nodiscard]] std::vector<std::string> member_machines() const;
  // The machines of all coordinators, present or not.
  [[nodiscard]] std::vector<std::string> coordinator_machines() const;
  [[nodiscard]] SimCoordinator* find_coordinator(const std::string& machine);
  // The machine of the internet on which a member or coordinator runs.
  [[nodiscard]] std::string where(const std::string& machine);
  // Null: nobody leads, or the leader is paused.
  [[nodiscard]] SimCoordinator* leading();
  [[nodiscard]] cluster::Coordinator* leader();
  // Sends from the leader. The message is lost while nobody leads.
  void send(net::PeerId to, host::Lane lane, net::Message message);
  [[nodiscard]] const Durable& durable() const { return durable_; }
  [[nodiscard]] Invariants& invariants() { return invariants_; }
  // Why not all members work together at this moment; nothing: they do.
  [[nodiscard]] std::optional<std::string> unsettled();
  // No process is left of those that serve and hold something. Others take over within kSurelyGivenUp.
  [[nodiscard]] bool abandoned();
  // Two members of the view have had no process for longer than a fence takes: the leader cannot know that
  // they are dead. Or one has, and the others lack what it holds. They are fenced within kSurelyGivenUp.
  [[nodiscard]] bool waits_for_dead();
  // A member does not serve yet. If its lives were short, it waits for LifeBudget::kShortLife at most.
  [[nodiscard]] bool somebody_comes() const;
  // Counts so far, for disturbance().
  [[nodiscard]] Calm calm();
  // Lives that members have begun.
  [[nodiscard]] std::uint64_t lives() const;
  [[nodiscard]] std::uint64_t faults_injected() const { return injected_; }
  // The first failure of any member, a removed one too, or of the coordinator's judgement.
  [[nodiscard]] std::optional<std::string> failure();
  // The notes of coordinators, a line each.
  [[nodiscard]] const std::string& log() const { return log_; }
  // Empty where nobody listens.
  [[nodiscard]] Trace trace();

 private:
  [[nodiscard]] bool has_process(const membership::MemberRecord& record) const;
  void start_coordinator(const std::string& machine);
  [[nodiscard]] cluster::CoordinatorProcess::Options coordinator_options(const std::string& machine);
  std::string start_member(SimMember::Options options, NodeId node);
  // A new machine, or one whose member has ended: with the same name and address.
  [[nodiscard]] std::string draw_machine();
  [[nodiscard]] std::string certificate(NodeId node) const;
  [[nodiscard]] ClockError draw_clock();
  // Called when the store has applied the changes.
  void stored(std::span<const host::Change> changes);
  void watch(SimMember& process);
  // Traces what a member's engine is told.
  void told(SimMember& process, const cluster::ProcessEvent& event);
  void heard(const std::string& machine, const net::Arrived& arrived);
  void look();
  void look_at_memory();
  void judge_memory(const std::string& machine, const net::Links& links);
  void note_failure(const std::string& what);
  void note_failures();

  // How far a member has come, as seen so far.
  struct Seen {
    Epoch view;
    Epoch installed;
  };

  const Options options_;
  host::Timeline timeline_;
  host::SimInternet internet_;
  AccessLines lines_;
  Rng rng_;
  std::uint64_t coordinator_lives_ = 0;
  std::uint64_t nodes_ = 0;
  std::uint64_t machines_ = 0;
  std::uint64_t past_lives_ = 0;
  std::uint64_t injected_ = 0;
  std::string log_;
  host::SimStoreMedium medium_;
  Durable durable_;
  ClaimWatch claim_watch_;
  Invariants invariants_;
  Traffic traffic_;
  MarkedLives marked_;
  std::vector<std::string> free_machines_;  // their members have ended
  std::optional<std::string> failure_;
  std::uint64_t looks_ = 0;
  ContactWatch contact_watch_;
  std::map<Incarnation, Instant> dead_since_;  // members of the view without a process, as last seen
  std::map<std::string, Seen> seen_;
  std::map<std::string, std::unique_ptr<SimCoordinator>> coordinators_;
  std::map<std::string, std::unique_ptr<SimMember>> members_;
};

}  // namespace gossamer::simulation
