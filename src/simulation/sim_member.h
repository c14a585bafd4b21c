// SPDX-License-Identifier: Apache-2.0
//
// SimMember: a member's process on a simulated machine, with an engine of any kind. The engine computes at
// once, and its computing takes virtual time. Hooks change what the member says to its coordinator. Thread
// rule: the simulation's.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/rng.h"
#include "cluster/control/defect.h"
#include "cluster/control/engine.h"
#include "cluster/control/member_process.h"
#include "simulation/sim_process.h"

namespace gossamer::simulation {

// How a driver hands over events of the network: each at once, or those of 20 ms together, as a busy
// machine's loop does. With batches the member is ahead of what its engine has been told.
enum class Driver { kPrompt, kBatches };

class SimMember final : public SimProcess {
 public:
  using MakeEngine = std::function<std::unique_ptr<cluster::Engine>(cluster::MemberProcess&)>;
  using Falsify = std::function<void(membership::ToCoordinator&)>;
  struct Options {
    Driver driver = Driver::kPrompt;
    std::uint64_t memory_bytes = 1 << 20;
    bool hidden = false;                           // behind NAT
    bool local = false;                            // on the machine of the first coordinator
    Duration longest_work = from_milliseconds(5);  // the engine's computing takes up to so long
    Duration shortest_work = {};                   // and at least so long
    MakeEngine make_engine = {};
    // Called after each event that the engine was told of.
    std::function<void(SimMember&)> watch = {};
  };
  // Its place in a fleet, which the fleet decides.
  struct Place {
    std::string machine;
    NodeId node;                            // by the fleet's count; in the certificate, too
    std::string certificate = {};           // empty: the run has none
    std::vector<std::string> coordinators;  // machines, each with its port 7000
    ClockError clock = {};
    std::uint64_t seed = 0;
    cluster::Defect defect = cluster::Defect::kNone;
    ProbeCounts<cluster::ControlProbe>* probes = nullptr;
    ProbeCounts<net::LinkProbe>* link_probes = nullptr;
    std::function<void(const net::LinkEvent&)> watch_links = {};  // gets every event before the member
    // Gets every event before the engine. Its member may be gone by then.
    std::function<void(SimMember&, const cluster::ProcessEvent&)> told = {};
  };
  SimMember(host::Timeline& timeline, host::SimInternet& internet, Options options, const Place& place);
  ~SimMember() override;

  void drain(const std::string& reason);
  // Tells its engine to save what it holds and to leave, as a node does that is to go while nobody leads.
  void save_and_leave(const std::string& reason);
  // Leaves at once, whatever its engine holds.
  void leave(const std::string& reason);
  // Stops its engine for a while. The process beats on.
  void hang(Duration lasts);
  // The same, but the engine works meanwhile: it gives signs of life.
  void work_for(Duration lasts);

  // Hears nothing for a while, once. What comes meanwhile is heard afterwards, in its order.
  void deafen(Duration lasts);

  // From now on changes all that its lives say to coordinators; empty: nothing.
  void falsify(Falsify change) { falsify_ = std::move(change); }
  [[nodiscard]] bool falsifies() const { return falsify_ != nullptr; }
  // Sends to its coordinator, beside what the member says. Between two lives it does nothing.
  void say(net::Message message);
  // Sends to another node, whatever the view says. Nothing happens without a link.
  void say_to(NodeId node, host::Lane lane, net::Message message);

  [[nodiscard]] NodeId node() const { return node_; }
  // The member has left or failed, and its process would end.
  [[nodiscard]] bool done() const { return process_->done(); }
  [[nodiscard]] cluster::Engine& engine() { return *engine_; }
  // Null between lives.
  [[nodiscard]] cluster::Member* member() { return process_->member(); }
  [[nodiscard]] net::Links* links() { return process_->links(); }
  [[nodiscard]] std::uint64_t lives() const { return lives_; }
  [[nodiscard]] bool hangs() { return timeline().now() < hung_until_; }
  // The life that its engine has been told of; none between two.
  [[nodiscard]] std::optional<Incarnation> life() const { return life_; }

 private:
  void on_network(host::NetworkEvent event) override;
  void on_timer() override;
  void go_on();
  // A queue of the engine's Work, and how much of it was done.
  struct Queue {
    std::optional<Instant> since = {};  // of the timeline; while the engine works
    Duration before = {};               // before that
  };
  using WorkDone = void (cluster::Engine::*)(Instant);
  void begin(const cluster::Engine::Work& work, Queue& queue, WorkDone tell_done);
  void worked(Queue& queue, WorkDone tell_done);
  [[nodiscard]] Duration time_of(const Queue& queue);
  // No more of it comes from the work under way.
  void stop_counting(Queue& queue);
  void hear();
  [[nodiscard]] Duration work_time() { return time_of(main_) + time_of(side_); }
  void tell(const cluster::ProcessEvent& event);

  const Options options_;
  const std::function<void(SimMember&, const cluster::ProcessEvent&)> told_;
  const NodeId node_;
  Rng rng_;
  bool batch_begun_ = false;
  Instant hung_until_;  // of the timeline
  Instant deaf_until_;  // likewise
  std::vector<host::NetworkEvent> unheard_;
  Queue main_, side_;
  std::uint64_t lives_ = 0;
  std::optional<Incarnation> life_;
  Falsify falsify_;
  std::unique_ptr<cluster::MemberProcess> process_;
  std::unique_ptr<cluster::Engine> engine_;
};

}  // namespace gossamer::simulation
