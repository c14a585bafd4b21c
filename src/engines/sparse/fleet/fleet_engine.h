// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine: a member's side of a sparse run. A step is made of rounds of computing (fleet_learner.h) and
// of exchanges among all members of the view (cluster/collective). When the view changes the engine comes to
// rest, and reports how far it is and what it holds. It goes on where the coordinator decides
// (fleet_workload.h). Before that, lost pieces have been computed anew and moved pieces have arrived
// (recovery.h).
//
// The loss or silence of a peer is no failure: the view will change. Thread rule: the loop thread. Computing
// is Work (cluster/control/engine.h), one piece after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "base/time.h"
#include "cluster/collective/collectives.h"
#include "cluster/control/engine.h"
#include "cluster/control/member_process.h"
#include "engines/run/recent_steps.h"
#include "engines/sparse/fleet/fleet_evaluation.h"
#include "engines/sparse/fleet/recovery/recovery.h"
#include "engines/sparse/fleet/recovery/recovery_plan.h"
#include "engines/sparse/fleet/recovery/recovery_watch.h"
#include "engines/sparse/fleet/recovery/vault.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/fleet/step/fleet_learner.h"
#include "engines/sparse/fleet/step/fleet_probe.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/fleet/step/step_order.h"
#include "host/api/clock.h"

namespace gossamer::sparse_engine {

// Channels. Recoveries may be large, and go over the bulk lane. Steps are small, or as large as the user
// wants.
inline constexpr std::uint32_t kStepChannel = 3;
inline constexpr std::uint32_t kRecoveryChannel = 4;

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

class FleetEngine final : public cluster::Engine {
 public:
  // Makes the job that the run's configuration describes. Called in Work, on the thread that computes. The
  // job lives as long as the pointer.
  using MakeJob = std::function<Result<std::shared_ptr<const FleetJob>>(const std::string& configuration)>;

  // The process outlives the engine, and so does the clock, if there is one. The clock measures how fast this
  // member is, for the placement. Without a clock members count as fast as they have cores.
  FleetEngine(cluster::MemberProcess& process, MakeJob make_job, const host::Clock* clock = nullptr)
      : process_(process), make_job_(std::move(make_job)), clock_(clock) {}

  void on(const cluster::ProcessEvent& event, Instant now) override;
  void tick(Instant now) override;
  [[nodiscard]] std::optional<Instant> next_wakeup() const override {
    return life_ ? life_->look_again : std::nullopt;
  }
  void drain(const std::string& reason, Instant now) override;
  [[nodiscard]] Work take_work() override;
  void worked(Instant now) override;

  [[nodiscard]] std::optional<Error> failure() const override { return failure_; }
  [[nodiscard]] std::vector<CounterSample> counters() const override { return read(counters_); }
  [[nodiscard]] const FleetCounters& fleet_counters() const { return counters_; }
  // The first step that this life has not applied; nothing before its first layout.
  [[nodiscard]] std::optional<StepNumber> step() const;
  // What this life holds; nothing before its first layout.
  [[nodiscard]] std::optional<sparse::NetworkPart> part() const;
  // The layout that this life has been told of, for observers outside the engine.
  struct TakenUp {
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
  [[nodiscard]] std::optional<TakenUp> taken_up() const;
  // The learner, when all steps are done or the engine is at rest. Null while it computes, and between two
  // lives.
  [[nodiscard]] FleetLearner* learner() const;

 private:
  // The state of the computing thread while there is Work. It outlives the life that wanted the Work.
  struct Bench {
    Result<std::shared_ptr<const FleetJob>> job{nullptr};
    Result<void> delivered;
    std::unique_ptr<FleetLearner> learner;
    std::unique_ptr<Vault> vault;
    std::unique_ptr<Recovery> recovery;
    std::unique_ptr<FleetEvaluation> evaluation;  // for one layout
    std::vector<Slices> got;
    Slices given;
    std::vector<Slices> deltas;  // by rank
    BlockPool snapshot_memory;   // memory for snapshots, from one to the next
    Result<void> taken;          // an error: no member can have given what came
    void give(Result<Slices> what) {
      if (what.ok()) given = *std::move(what);
      if (!what.ok()) taken = what.error();
    }
  };
  // Copies of other members' pieces, all as of one step.
  struct Copies {
    StepNumber step;
    std::vector<Pieces> kept;  // by rank
  };
  // A snapshot on its way: three exchanges, beside the steps.
  struct Snapshot {
    StepNumber step;
    std::vector<Pieces> keeps;         // by rank
    std::vector<std::uint64_t> sizes;  // bytes that this member gives, by rank
    Slices given;
    std::vector<Slices> got;  // by rank
    bool stored = false;      // everything has come
  };
  // State that ends with an incarnation.
  struct Life {
    explicit Life(net::PeerId self)
        : steps({.self = self, .channel = kStepChannel}),
          recovery({.self = self, .channel = kRecoveryChannel}) {}
    std::shared_ptr<Bench> bench = std::make_shared<Bench>();
    std::shared_ptr<const FleetJob> job;
    cluster::Collectives steps;
    cluster::Collectives recovery;
    host::Lane lane = host::Lane::kControl;  // of the steps' messages, in this layout
    Epoch installed;
    std::optional<Layout> layout;  // the layout of `installed`
    RecoveryPlan plan;
    std::size_t rank = 0;
    std::vector<RecoveryStage> stages;
    std::vector<FleetRound> rounds;
    Epoch recovered;                 // the epoch of the layout whose part it holds
    std::size_t next_stage = 0;      // of the recovery, until all stages are done
    std::optional<StepOrder> order;  // once there is a job
    StepOrder::Item computing;       // the round of a step that is in Work
    // The gifts of all members in a round, until the next round is computed.
    std::map<StepOrder::Item, std::vector<Slices>> arrived;
    StepNumber applied;
    std::optional<sparse::NetworkPart> part;  // the part that it holds
    Copies copies;                            // the newest that all members have stored
    std::optional<Snapshot> snapshot;
    bool waits_for_snapshot = false;
    StepWish agreed = StepWish::kNothing;  // when the step before `applied` was done
    std::optional<StepNumber> saved;       // the step of the checkpoint that has the held part
    // The exchange of this layout's evaluation that is computed or waited for; nothing before the first.
    std::optional<std::uint64_t> evaluating;
    std::optional<Instant> look_again = {};  // when to ask again whether the save lasts or others halted
    bool alone = false;                      // leaves as soon as its save lasts
    bool halted = false;                     // has saved its part, and takes no further step
    std::vector<std::function<void(Bench&)>> upkeep;  // to be run before the next Work
    RecoveryWatch watch;
    engine::RecentSteps recent;
    Duration cpu_before = {};  // CPU of the process, when the step before was done
    Instant measured_at;       // when that step was done
    bool working = false;      // not at rest
    bool must_rest = false;    // comes to rest as soon as nothing is computed
  };
  // Numbers of exchanges: rounds of steps, stages of a recovery, exchanges of an evaluation, and three for
  // each snapshot.
  static constexpr std::uint64_t kStages = 1ULL << 62;
  static constexpr std::uint64_t kEvaluation = kStages + (1ULL << 61);
  static constexpr std::uint64_t kSnapshots = 1ULL << 63;
  static constexpr std::uint64_t kHalted = kSnapshots - 1;
  enum SnapshotPart : std::uint64_t { kSizes, kDeltas, kStored, kSnapshotParts };
  enum class Doing {
    kNothing,
    kPreparing,
    kRecovering,
    kSnapshot,
    kStepping,
    kAhead,
    kSaving,
    kDelivering,
    kEvaluating
  };

  void on_one(const cluster::LifeBegun& event, Instant now);
  void on_one(const cluster::LifeEnded& event, Instant now);
  void on_one(const cluster::BeginFailed&, Instant) {}
  void on_one(const cluster::MemberEvent& event, Instant now);
  void on_one(const net::Arrived& event, Instant now);
  void prepare(Instant now);
  void want(Doing doing, Work work);
  void prepared(Instant now);
  void rest(Instant now);
  void report_rest(Instant now);
  void go_on(Instant now);
  void begin_exchanges(Instant now);
  void compute_stage(Instant now);
  void compute_round(const StepOrder::Item& item);
  [[nodiscard]] Work work_ahead(const StepOrder::Item& next, bool waits) const;
  [[nodiscard]] std::optional<StepOrder::Item> needed_by(const StepOrder::Item& item) const;
  void stage_done(Instant now);
  void parts_put_together(Instant now);
  void next_stage(Instant now);
  void round_done(Instant now);
  void measure(Instant now);
  void tell_step(Instant now);
  [[nodiscard]] engine::SentBytes sent() const;
  void deliver();
  void evaluate();
  void evaluation_computed(Instant now);
  void go_on_stepping(Instant now);
  void stop(const std::string& reason, Instant now);
  [[nodiscard]] bool checkpoint_due() const;
  void save_checkpoint();
  [[nodiscard]] bool halts() const;
  [[nodiscard]] bool saved_lasts(Instant now);
  void halt(Instant now);
  void left_alone(Instant now);
  void lost_somebody(Instant now);
  [[nodiscard]] bool between_steps(Instant now);
  [[nodiscard]] bool may_begin() const;
  [[nodiscard]] std::uint64_t step_exchange(const StepOrder::Item& item) const;
  [[nodiscard]] bool snapshot_due() const;
  [[nodiscard]] bool all_kept() const;
  void reach(FleetProbe probe) const { reached(life_->job->probes, probe); }
  void begin_snapshot();
  void give_snapshot(Instant now);
  void snapshot_exchanged(std::uint64_t part, std::vector<Slices> got, Instant now);
  void snapshot_complete(Instant now);
  void keep(Snapshot snapshot);
  void exchange_snapshot(std::uint64_t part, const cluster::Operation& operation, Slices given, Instant now);
  void exchanged(cluster::Completed completed, Instant now);
  void step_done(Instant now);
  void exchange(const cluster::Operation& operation, std::uint64_t id, Instant now);
  void lost(net::PeerId peer, Instant now);
  [[nodiscard]] cluster::Operation operation_of(RecoveryStage stage) const;
  [[nodiscard]] cluster::Operation operation_of(const StepOrder::Item& item) const;
  void carry_out(cluster::CollectiveEvents events, Instant now);
  void fail(Error error, Instant now);

  cluster::MemberProcess& process_;
  const MakeJob make_job_;
  const host::Clock* const clock_;
  std::optional<Life> life_;
  std::shared_ptr<const FleetJob> job_;  // outlives a life
  std::string configuration_;
  Doing doing_ = Doing::kNothing;
  std::shared_ptr<Bench> at_;  // the bench of the Work that is wanted or done at present
  Work wanted_;
  std::optional<std::string> leaving_;
  std::optional<std::string> stopping_;  // the run ends as soon as all members have saved the same step
  std::optional<Error> failure_;
  FleetCounters counters_;
};

}  // namespace gossamer::sparse_engine
