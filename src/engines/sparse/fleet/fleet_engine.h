// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine: a member's side of a sparse run. A step is made of rounds of computing (fleet_learner.h) and
// of exchanges among all members of the view (cluster/collective). When the view changes the engine comes to
// rest, and reports how far it is and what it holds. It goes on where the coordinator decides
// (fleet_workload.h). Before that, lost pieces have been computed anew and moved pieces have arrived
// (recovery.h). fleet_states.h has the states of a life and all transitions between them.
//
// The loss or silence of a peer is no failure: the view will change. Thread rule: the loop thread. Computing
// is Work (fleet_work.h), one piece after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "base/time.h"
#include "cluster/collective/collectives.h"
#include "cluster/control/member_process.h"
#include "engines/run/member_engine.h"
#include "engines/sparse/fleet/fleet_exchanges.h"
#include "engines/sparse/fleet/fleet_reporter.h"
#include "engines/sparse/fleet/fleet_rounds.h"
#include "engines/sparse/fleet/fleet_snapshots.h"
#include "engines/sparse/fleet/fleet_states.h"
#include "engines/sparse/fleet/fleet_work.h"
#include "engines/sparse/fleet/recovery/recovery.h"
#include "engines/sparse/fleet/recovery/recovery_plan.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/fleet/step/fleet_learner.h"
#include "engines/sparse/fleet/step/fleet_probe.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/fleet/step_wishes.h"
#include "engines/sparse/fleet/work_in_hand.h"
#include "engines/sparse/serve/lead_questions.h"
#include "host/api/clock.h"

namespace gossamer::sparse_engine {

// Counters of this process, over all its lives.
struct FleetCounters {
  std::uint64_t steps = 0;
  std::uint64_t recoveries = 0;
  std::uint64_t snapshots = 0;
  // In net::counted_bytes().
  std::uint64_t step_bytes = 0;
  std::uint64_t background_bytes = 0;
  template <class Visitor>
  void describe(Visitor&& v) const {
    v("gossamer_sparse_steps_total", "steps", "Steps applied.", steps);
    v("gossamer_sparse_recoveries_total", "recoveries", "Layouts that this member went on with.", recoveries);
    v("gossamer_sparse_snapshots_total", "snapshots", "Of which all members have stored their part.",
      snapshots);
    v("gossamer_sparse_step_bytes_total", "bytes", "Handed to links for steps.", step_bytes);
    v("gossamer_sparse_background_bytes_total", "bytes", "Handed to links for snapshots and recoveries.",
      background_bytes);
  }
};

// State of a member that ends with an incarnation.
struct FleetLife {
  FleetState state = FleetState::kPreparing;
  FleetWorkbenchRef bench = std::make_shared<FleetWorkbench>();
  std::vector<std::function<void(FleetWorkbench&)>> upkeep = {};  // to be run before the next Work
  std::function<void(FleetWorkbench&)> look = {};                 // likewise, unless the view changes first
  FleetExchanges exchanges;
  FleetReporter reporter;
  LeadQuestions questions;
  FleetSnapshots snapshots = {};
  std::shared_ptr<const FleetJob> job = {};
  std::optional<FleetRounds> rounds = {};  // once there is a job
  // The layout that it has been told of, and its recovery.
  Epoch installed = {};
  std::optional<Layout> layout = {};
  RecoveryPlan plan = {};
  std::size_t rank = 0;
  std::vector<RecoveryStage> stages = {};
  std::size_t next_stage = 0;
  // What it holds, and how far it is.
  Epoch recovered = {};  // the epoch of the layout whose part it holds
  std::optional<sparse::NetworkPart> part = {};
  StepNumber applied = {};
  bool must_report = false;  // at rest, as soon as nothing is computed
  bool delivered = false;    // the trained part of this layout is delivered, or about to be
  // The end.
  StepWish agreed = StepWish::kNothing;    // when the step before `applied` was done
  StepWishes wishes = {};                  // of all members, in this layout
  std::optional<StepNumber> saved = {};    // the step of the checkpoint that has the held part
  Instant applied_at = {};                 // when the last step was applied
  Duration step_took = {};                 // between the last two
  Instant told_at = {};                    // that it is to end, in this view
  std::optional<Instant> halt_by = {};     // until then it waits for a step after which all halt
  std::optional<Instant> look_again = {};  // when to ask again whether the save lasts or others halted
  bool halted = false;                     // its save lasts, and it leaves once all have halted
  bool told_halted = false;       // has told the others that it needs nothing of this layout any more
  bool others_halted = false;     // all others have told it so
  bool saves_alone = false;       // what it holds, as soon as nothing is left to compute
  bool alone = false;             // leaves as soon as its save lasts
  bool rested = false;            // it has waited for that step at rest or in a recovery, too
  std::uint64_t moved_bytes = 0;  // when it last looked, in a recovery
  std::string leaves_because = {};
};

// Notes that a recovery has ended. The step after it has all of its time.
void note_recovery(FleetLife& life, Instant now);
// Notes that a step was applied: the others are there.
void note_step(FleetLife& life, Instant now);
// Whether the next step may begin if it is its turn. All members answer the same. Snapshots and checkpoints
// are taken of a state between two steps.
[[nodiscard]] bool may_begin(const FleetLife& life);
// Whether it is time for a checkpoint. All members that have applied the step before give the same answer,
// except those that applied it in a recovery. The state at the start is on the disk already, and the trained
// network is delivered.
[[nodiscard]] bool checkpoint_due(const FleetLife& life);
// Whether all steps are applied.
[[nodiscard]] bool is_trained(const FleetLife& life);
// Whether the trained part is still to be delivered.
[[nodiscard]] bool has_to_deliver(const FleetLife& life);
// Whether steps may be lost if it leaves now. At the start of the run and at its end there are other files.
[[nodiscard]] bool has_to_save(const FleetLife& life);
// Whether the saved state outlives this node. If not, the engine asks again later.
[[nodiscard]] bool saved_lasts(FleetLife& life, Instant now);
// Whether a member that is to end halts now. After the last step it does not need the others' agreement.
[[nodiscard]] bool halts(const FleetLife& life);
// The view changes while this member is to stop. `told`: what its coordinator has said of the run's end. If
// all leave by themselves, others have left, and what this member has saved lasts: true, it leaves. In a run
// that ends another one has died. Then the wish to halt goes with a step of the next view.
[[nodiscard]] bool halt_anew(FleetLife& life, const std::optional<membership::StopAsked>& told, Instant now);
// What must be done before the next step, when no step is in flight. `ends`: it is to end.
[[nodiscard]] FleetEvent due_between_steps(const FleetLife& life, bool ends);
// Whether it takes steps, or may.
[[nodiscard]] bool takes_steps(const FleetLife& life);

// The layout that a life has been told of, for observers outside the engine.
struct FleetTakenUp {
  Epoch epoch;
  std::size_t rank;
  const Layout& layout;
  const RecoveryPlan& plan;
  bool recovered;           // this life has its part by the layout
  bool lacks_no_more;       // it lacks nothing but gradients to apply its current step
  StepNumber known_by_all;  // the newest snapshot that it knows all members have stored
  StepNumber stored;        // the newest snapshot that it has stored itself
  bool all_kept;            // all copies are where the layout wants them
};

class FleetEngine final : public engine::MemberEngine {
 public:
  // Makes the job that the run's configuration describes. Called in Work, on the thread that computes. The
  // job lives as long as the pointer.
  using MakeJob = std::function<Result<std::shared_ptr<const FleetJob>>(const std::string& configuration)>;

  // The process outlives the engine, and so does the clock, if there is one. The clock measures how fast this
  // member is, for the placement. Without a clock members count as fast as they have cores.
  FleetEngine(cluster::MemberProcess& process, MakeJob make_job, const host::Clock* clock = nullptr)
      : MemberEngine(process), make_job_(std::move(make_job)), clock_(clock) {}

  void tick(Instant now) override;
  [[nodiscard]] std::optional<Instant> next_wakeup() const override {
    if (life_ == nullptr) return std::nullopt;
    const bool saves = life_->alone && in_hand_.keeps();
    return saves ? life_->halt_by : sooner(life_->halt_by, life_->look_again);
  }
  [[nodiscard]] Work take_work() override;
  void worked(Instant now) override;

  [[nodiscard]] std::optional<cluster::Awaited> awaits() const override {
    return life_ != nullptr ? life_->exchanges.awaits() : std::nullopt;
  }
  [[nodiscard]] std::vector<CounterSample> counters() const override { return read(counters_); }
  [[nodiscard]] const FleetCounters& fleet_counters() const { return counters_; }
  // The first step that this life has not applied; nothing before its first layout.
  [[nodiscard]] std::optional<StepNumber> step() const;
  // What this life holds; nothing before its first layout.
  [[nodiscard]] std::optional<sparse::NetworkPart> part() const;
  [[nodiscard]] std::optional<FleetTakenUp> taken_up() const;
  // The learner, when all steps are done or the engine is at rest. Null while it computes, and between two
  // lives.
  [[nodiscard]] FleetLearner* learner() const;

 private:
  // Lives, Work, and the one way from a state to the next.
  void begin(const cluster::LifeBegun& event, Instant now) override;
  void end() override { life_.reset(); }
  void arrived(const net::Arrived& event, Instant now) override;
  void give_up(const std::string& reason, Instant now) override { leave(FleetEvent::kFailed, reason, now); }
  void prepare(Instant now);
  void prepared(Instant now);
  void want(FleetTask task, Work work);
  void computed(FleetTask done, FleetWorkbench& at, Instant now);
  void advance(FleetEvent event, Instant now);
  void act(FleetAction action, Instant now);
  [[nodiscard]] bool at_work() const;
  void leave(FleetEvent why, std::string reason, Instant now);

  // Exchanges.
  void exchange(const ExchangeName& name, const cluster::Operation& operation, Slices given, Instant now);
  void exchanged(const ExchangeName& name, std::vector<Slices> got, Instant now);
  void carry_out(cluster::CollectiveEvents events, Instant now);

  // Changes of the view.
  void freeze(Instant now) override { advance(FleetEvent::kFrozen, now); }
  void install(Instant now) override;
  void given_in_vain(Instant now);
  void blame(std::size_t rank, const Error& error, Instant now);
  void lost(net::PeerId peer, Instant now) override { carry_out(life_->exchanges.lost(peer), now); }
  void rest(Instant now);
  void report(Instant now);
  void begin_recovery(Instant now);
  void compute_stage(Instant now);
  void take_stage(Instant now);
  void take_part();
  void next_stage(Instant now);
  void tell_applied(Instant now);

  // Steps, and what is due between two of them.
  void go_on(Instant now);
  void compute_round();
  void want_round(const FleetRounds::Item& item);
  void round_done(Instant now);
  void snapshot();
  void begin_snapshot();
  void give_snapshot(Instant now);
  void snapshot_exchanged(std::uint64_t part, std::vector<Slices> got, Instant now);
  void store_snapshot(Instant now);
  void snapshot_stored(Instant now);
  void save_checkpoint();

  // The end of a run.
  void stop(const std::string& reason, Instant now) override;
  [[nodiscard]] std::string why_it_ends() const;
  [[nodiscard]] bool end_last_step();
  [[nodiscard]] bool delivers() const;
  void save_alone();
  void halt_late(Instant now);
  void halt(Instant now);
  void tell_halted(Instant now);
  void leave_once_saved(Instant now);
  void deliver(Instant now);
  void open_to_questions(Instant now);
  void answer();

  void reach(FleetProbe probe) const { reached(life_->job->probes, probe); }

  const MakeJob make_job_;
  const host::Clock* const clock_;
  std::unique_ptr<FleetLife> life_;      // null between two lives
  std::shared_ptr<const FleetJob> job_;  // outlives a life
  std::string configuration_;
  WorkInHand in_hand_;
  std::optional<std::string> stopping_;  // the run ends as soon as all members have saved the same step
  FleetCounters counters_;
};

}  // namespace gossamer::sparse_engine
