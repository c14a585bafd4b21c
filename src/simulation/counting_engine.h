// SPDX-License-Identifier: Apache-2.0
//
// CountingEngine: stands for a training engine in tests of agreement. A thing's state is the number of its
// steps. In each step all members with things tell each other that they have done their part. A member that
// has heard all of them applies the step. Beside that, members lease keys and claim samples, as a pipeline's
// members would. The engine behaves as engines must: it rests when told to, holds the installed things, and
// reports. All that it does takes time that it draws. One that waits (World::waits) ends the open step before
// it rests for a change that can wait: its part of a step says that it wishes to rest, and all that have
// taken that step rest after it.
//
// Thread rule: the simulation's.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/rng.h"
#include "cluster/control/coordinator.h"
#include "cluster/control/engine.h"
#include "cluster/control/member_process.h"
#include "cluster/control/workload.h"
#include "simulation/watch/durable.h"
#include "simulation/watch/invariants.h"

namespace gossamer::simulation {

inline constexpr std::uint32_t kPartChannel = 2;
inline constexpr std::uint64_t kBatch = 12;
inline constexpr std::uint64_t kLeaseKeys = 4;  // leased one by one, or two together

// The step at which a decision of the workload goes on; none: the run has failed.
[[nodiscard]] std::optional<StepNumber> resume_of(const std::string& decision);

// The coordinator's side: goes on where the furthest member is. It fails if holders contradict each other, as
// all holders take each step.
class CountingWorkload final : public cluster::Workload {
 public:
  enum class Steps { kStop, kEnd };  // kEnd: an open one ends, where a change can wait
  explicit CountingWorkload(std::size_t things, Steps steps = Steps::kStop)
      : things_(things), steps_(steps) {}
  [[nodiscard]] bool ends_open_steps() const override { return steps_ == Steps::kEnd; }
  [[nodiscard]] std::vector<placement::Thing> things() const override;
  [[nodiscard]] std::optional<placement::ThingId> thing_of(cluster::TrackId track) const override {
    return placement::ThingId(track.value);
  }
  [[nodiscard]] bool readable(const std::string& report) const override;
  [[nodiscard]] cluster::Decision decide(const cluster::Rest& rest) override;
  [[nodiscard]] std::vector<cluster::TrackId> tracks() const;

 private:
  std::size_t things_;
  Steps steps_;
};

class CountingEngine final : public cluster::Engine {
 public:
  struct World {
    Invariants& invariants;
    // Whether an incarnation believes at this moment that it has the lease of the keys.
    std::function<bool(Incarnation, const cluster::LeaseKeys&)> believes;
    std::size_t things = 8;
    // kAnnounced: nobody rests, and there are no common steps; steps count by claims.
    cluster::ViewChange view_change = cluster::ViewChange::kFrozen;
    // Called with each step that it has begun and does not end, as it is to rest at once.
    std::function<void(StepNumber)> cut_short = {};
  };

  CountingEngine(World world, cluster::MemberProcess& process, std::uint64_t seed, double slowness);

  void on(const cluster::ProcessEvent& event, Instant now) override;
  void tick(Instant now) override;
  [[nodiscard]] std::optional<Instant> next_wakeup() const override;
  void drain(const std::string& reason, Instant now) override;
  [[nodiscard]] std::optional<Error> failure() const override { return std::nullopt; }
  [[nodiscard]] std::vector<CounterSample> counters() const override { return {}; }

  [[nodiscard]] bool believes(const cluster::LeaseKeys& keys, Instant now) const;
  [[nodiscard]] StepNumber step() const { return step_; }
  // Whether it has come to the open step of any track. A new life learns of one committed step after the
  // other.
  [[nodiscard]] bool claims_open_step(const Durable& durable) const;
  // Other members that are still there, and that speak, have taken steps with it since the last placement.
  [[nodiscard]] bool has_witnesses(FunctionRef<bool(net::PeerId)> speaks) const;
  // This member gets none of its parts from now on; nothing: each does. The one before gets what it lacks.
  void withhold(std::optional<net::PeerId> from, Instant now);
  // How long its oldest request has been without an answer.
  [[nodiscard]] Duration waits(Instant now) const;

 private:
  using Action = std::function<void(Instant)>;

  void on_one(const cluster::LifeBegun& event, Instant now);
  void on_one(const cluster::LifeEnded& event, Instant now);
  void on_one(const cluster::BeginFailed&, Instant) {}
  void on_one(const cluster::MemberEvent& event, Instant now);
  void on_one(const net::Arrived& event, Instant now);
  void on_view(const cluster::ViewChanged& event, Instant now);
  void on_install(Instant now);
  void leave_if_empty(Instant now);
  void on_lease(const cluster::LeaseAnswered& event, Instant now);
  void on_claim(const cluster::ClaimAnswered& event, Instant now);
  void rest(Instant now);
  void rest_soon(Instant now);
  void rest_after_step(Instant now);
  void begin_step(Instant now);
  void send_parts(Instant now);
  void send_part(const net::PeerId& partner, StepNumber step, Instant now);
  void try_step(Instant now);
  void work_on_leases(Instant from);
  void work_on_claims(Instant from);
  // Acts after a drawn time, unless this life has ended by then.
  void later(Instant now, double least_ms, double most_ms, Action action);
  [[nodiscard]] bool lockstep() const { return world_.view_change == cluster::ViewChange::kFrozen; }

  World world_;
  cluster::MemberProcess& process_;
  Rng rng_;
  double slowness_;
  std::optional<std::string> leaving_;
  std::optional<net::PeerId> withheld_from_;

  // The state of this life.
  std::multimap<Instant, Action> timers_;
  bool running_ = false;
  Epoch installed_;
  StepNumber step_;
  StepNumber resumed_;  // where the placement began
  bool part_done_ = false;
  // In steps, or about to begin with them: others would wait for it.
  bool takes_part_ = false;
  bool told_ = false;                              // of a change that waits for the end of the step
  std::set<std::pair<Epoch, StepNumber>> wished_;  // somebody wished to rest after the step
  std::set<std::pair<Epoch, StepNumber>> own_wishes_;
  std::map<std::uint64_t, StepNumber> things_;  // the things held, with their applied steps
  std::set<net::PeerId> partners_;
  std::map<std::pair<Epoch, StepNumber>, std::set<net::PeerId>> parts_;

  std::uint64_t lease_request_ = 0;
  Instant lease_asked_;
  cluster::LeaseKeys lease_keys_;
  cluster::HeldLease lease_;
  std::map<std::uint64_t, StepNumber> claim_steps_;
  struct ClaimRequest {
    std::uint64_t track = 0;
    StepNumber step;
    Instant asked;
  };
  std::map<std::uint64_t, ClaimRequest> claim_requests_;
};

}  // namespace gossamer::simulation
