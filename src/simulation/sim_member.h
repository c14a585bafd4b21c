// SPDX-License-Identifier: Apache-2.0
//
// SimMember: a member's process on a simulated machine, with a counting engine. Thread rule: the
// simulation's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cluster/control/member_process.h"
#include "simulation/counting_engine.h"
#include "simulation/liar.h"
#include "simulation/sim_process.h"

namespace gossamer::simulation {

class SimMember final : public SimProcess {
 public:
  struct Options {
    std::string machine;
    NodeId node;              // by the fleet's count; in the certificate, too
    std::string certificate;  // empty: the run has none
    ClockError clock;
    bool hidden = false;  // behind NAT
    double slowness = 1;
    std::size_t things = 8;
    cluster::ViewChange view_change = cluster::ViewChange::kFrozen;
    cluster::MemberProcess::Options process;  // without `listening`
  };
  SimMember(host::Timeline& timeline, host::SimInternet& internet, Options options, Invariants& invariants,
            std::function<bool(Incarnation, const cluster::LeaseKeys&)> believes, Trace trace);
  ~SimMember() override;

  void wants_to_leave(const std::string& reason);
  void leave(const std::string& reason);
  void hang(Duration lasts) { engine_->hang(lasts, now()); }
  // Sends nonsense to its coordinator, again and again, until its life ends. 0: it has no life at this
  // moment.
  Incarnation turn_hostile();
  // Lies for so long, in all of its lives. `tells` is called for each of them.
  void lie(Lies lies, Duration lasts, std::function<void(Incarnation)> tells);
  [[nodiscard]] NodeId node() const { return node_; }
  // The member left, or could not go on.
  [[nodiscard]] bool done() const { return engine_->done(); }
  // Null between lives.
  [[nodiscard]] cluster::Member* member() { return process_->member(); }
  [[nodiscard]] net::Links* links() { return process_->links(); }
  [[nodiscard]] const CountingEngine& engine() const { return *engine_; }
  [[nodiscard]] int lives() const { return lives_; }

 private:
  void on_network(host::NetworkEvent event) override;
  void on_timer() override;
  void go_on();
  void tell(const cluster::ProcessEvent& event) const;
  void say_nonsense(Incarnation life);
  void falsify(membership::ToCoordinator& said);
  void say_inventions();

  NodeId node_;
  Trace trace_;
  int lives_ = 0;
  std::uint64_t things_;
  std::optional<Liar> liar_;
  std::function<void(Incarnation)> tells_of_liar_;
  Rng rng_;  // draws its hostile messages
  std::unique_ptr<cluster::MemberProcess> process_;
  std::unique_ptr<CountingEngine> engine_;
};

}  // namespace gossamer::simulation
