// SPDX-License-Identifier: Apache-2.0
//
// SimCoordinator: a coordinator's process on a simulated machine, with a handle of a simulated store, whose
// calls take a while. Thread rule: the simulation's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/ids.h"
#include "base/rng.h"
#include "base/time.h"
#include "cluster/control/coordinator_process.h"
#include "host/sim/store.h"
#include "simulation/quiet.h"
#include "simulation/sim_process.h"
#include "simulation/watch/claim_watch.h"
#include "simulation/watch/durable.h"
#include "simulation/watch/invariants.h"
#include "simulation/watch/lead_watch.h"
#include "simulation/watch/slander.h"

namespace gossamer::simulation {

class SimCoordinator final : public SimProcess, private cluster::Witness {
 public:
  // Objects that the coordinators of a run share, and that watch them.
  struct Run {
    host::SimStoreMedium& medium;
    cluster::Workload& workload;
    const Durable& durable;
    ClaimWatch& claims;
    Invariants& invariants;
    Traffic& traffic;
    std::function<bool(Incarnation)> lies;    // whether the incarnation is a liar's
    std::function<void(Incarnation)> framed;  // liars have cost the incarnation its life
  };
  struct Options {
    std::string machine;
    std::string certificate;  // empty: the run has none
    ClockError clock;
    cluster::CoordinatorProcess::Options process;
  };
  SimCoordinator(host::Timeline& timeline, host::SimInternet& internet, Options options, const Run& run,
                 Trace trace);
  ~SimCoordinator() override;

  // Null while it stands by.
  [[nodiscard]] cluster::Coordinator* leader() { return process_->coordinator(); }
  // In the simulation's time.
  [[nodiscard]] Instant led_since() const { return led_since_; }
  [[nodiscard]] const net::Links* links() const { return process_->links(); }
  // Sends on a channel other than the coordinator's.
  void send(net::PeerId to, host::Lane lane, net::Message message) {
    if (process_->links() == nullptr) return;
    static_cast<void>(process_->links()->send(to, lane, std::move(message), now()));
    go_on();
  }
  void consumed(const net::Receipt& receipt) {
    if (process_->links() != nullptr) process_->links()->consumed(receipt, now());
  }
  [[nodiscard]] host::SimStore& store() { return *store_; }
  [[nodiscard]] const std::optional<Error>& failure() const { return process_->failure(); }
  // Lets `skip` calls of the store succeed and then `count` calls fail. Every second failure, and the last
  // one, comes after the call was carried out.
  void fail_store(int skip, int count) {
    skipped_ = skip;
    failing_ = count;
  }
  // Tells the run to end. Requires that it leads.
  void stop(const std::string& reason) {
    process_->coordinator()->stop(reason, now());
    go_on();
  }
  // The store is out of reach for a while.
  void lose_store(Duration lasts) { away_until_ = timeline().now() + lasts; }

 private:
  void on_network(host::NetworkEvent event) override;
  void on_timer() override;
  void on_resumed() override { lead_watch_.resumed(now()); }
  void go_on();
  void call(cluster::StoreCall call);
  void tell_lead();
  void judge_loss(const cluster::RunEvent& lost);
  void judge_dispute(const cluster::RunEvent& disputed);
  void judge_stay();
  void count(net::PeerId from, const membership::ToCoordinator& said);
  void watch_link(const net::LinkEvent& event);
  // The Witness of the coordinator's messages.
  void heard(net::PeerId from, const membership::ToCoordinator& said) override;
  void said(net::PeerId to, const membership::ToMember& said) override;
  void began(const membership::BeginAnswer& answer) override;

  const Run run_;
  HeldToStore held_to_store_;
  Slander slander_;
  LeadWatch lead_watch_;
  Instant led_since_;
  std::map<Incarnation, Instant> last_heard_;  // in this lead
  const bool has_standby_;
  std::unique_ptr<host::SimStore> store_;
  Rng rng_;
  Trace trace_;
  int skipped_ = 0;
  int failing_ = 0;
  Instant away_until_;
  Generation led_;  // generation of the present lead; 0: none
  std::unique_ptr<cluster::CoordinatorProcess> process_;
};

}  // namespace gossamer::simulation
