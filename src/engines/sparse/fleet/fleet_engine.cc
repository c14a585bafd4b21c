// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "cluster/control/view.h"

namespace gossamer::sparse_engine {

// One batch may hold the end of a life after earlier events. The process tells of these when it has no member
// any more, and they are dropped.
void FleetEngine::on(const cluster::ProcessEvent& event, Instant now) {
  const bool alive = process_.member() != nullptr && !failure_;
  if (alive || std::holds_alternative<cluster::LifeEnded>(event) ||
      std::holds_alternative<cluster::LifeBegun>(event))
    std::visit([&](const auto& one) { on_one(one, now); }, event);
}

void FleetEngine::on_one(const cluster::LifeBegun& event, Instant now) {
  life_.reset();
  if (process_.member() == nullptr) return;
  if (failure_) return process_.member()->leave(failure_->message(), now);
  if (leaving_) return process_.member()->leave(*leaving_, now);
  life_.emplace(event.self);
  configuration_ = event.configuration;
  // The computing thread may still have work of the life before. worked() comes back here.
  if (doing_ == Doing::kNothing) prepare(now);
}

// The configuration never changes in the life of a run, so a job that was made once stays.
void FleetEngine::prepare(Instant now) {
  if (job_ != nullptr) return prepared(now);
  const std::shared_ptr<Bench> bench = life_->bench;
  want(Doing::kPreparing,
       [bench, make = make_job_, configuration = configuration_] { bench->job = make(configuration); });
}

void FleetEngine::prepared(Instant now) {
  life_->job = job_;
  life_->bench->learner = std::make_unique<FleetLearner>(*job_, clock_);
  life_->bench->vault = std::make_unique<Vault>(*job_);
  life_->rounds = step_rounds(job_->shape.layers());
  life_->order.emplace(life_->rounds.size(), job_->staleness);
  process_.member()->ready(now);
}

void FleetEngine::on_one(const cluster::LifeEnded&, Instant) { life_.reset(); }

void FleetEngine::on_one(const cluster::MemberEvent& event, Instant now) {
  if (const auto* const asked = std::get_if<cluster::StopRequested>(&event)) return stop(asked->reason, now);
  if (!life_) return;
  const auto* const view = std::get_if<cluster::ViewChanged>(&event);
  if (view != nullptr && view->freeze) return rest(now);
  if (std::holds_alternative<cluster::ViewInstalled>(event)) return go_on(now);
  if (const auto* const gone = std::get_if<cluster::PeerLost>(&event)) lost(gone->peer, now);
}

void FleetEngine::lost(net::PeerId peer, Instant now) {
  cluster::CollectiveEvents events;
  life_->steps.lost(peer, events);
  life_->recovery.lost(peer, events);
  carry_out(std::move(events), now);
}

void FleetEngine::on_one(const net::Arrived& event, Instant now) {
  process_.links()->consumed(event.receipt, now);
  if (!life_) return;
  const bool of_steps = event.message.channel == kStepChannel;
  if (!of_steps && event.message.channel != kRecoveryChannel) return;
  if (process_.member()->view().fenced().contains(event.from.incarnation)) return;
  cluster::CollectiveEvents events;
  (of_steps ? life_->steps : life_->recovery).on(event.from, event.message, events);
  carry_out(std::move(events), now);
}

void FleetEngine::drain(const std::string& reason, Instant now) {
  leaving_ = reason;
  if (process_.member() != nullptr) process_.member()->drain(reason, now);
}

void FleetEngine::want(Doing doing, Work work) {
  CHECK(doing_ == Doing::kNothing, static_cast<int>(doing_));
  doing_ = doing;
  at_ = life_->bench;
  if (life_->upkeep.empty()) {
    wanted_ = std::move(work);
    return;
  }
  wanted_ = [bench = at_, upkeep = std::exchange(life_->upkeep, {}), work = std::move(work)] {
    for (const auto& task : upkeep) task(*bench);
    work();
  };
}

cluster::Engine::Work FleetEngine::take_work() { return std::exchange(wanted_, {}); }

void FleetEngine::worked(Instant now) {
  const Doing done = std::exchange(doing_, Doing::kNothing);
  const std::shared_ptr<Bench> at = std::exchange(at_, nullptr);
  if (done == Doing::kPreparing && at->job.ok()) job_ = *at->job;
  if (!life_ || process_.member() == nullptr || failure_) return;
  if (life_->bench != at) return prepare(now);
  if (done == Doing::kPreparing) return at->job.ok() ? prepared(now) : fail(at->job.error(), now);
  if (!at->taken.ok()) return fail(at->taken.error(), now);
  if (done == Doing::kRecovering) stage_done(now);
  if (done == Doing::kSnapshot) give_snapshot(now);
  if (done == Doing::kStepping) round_done(now);
  if (done == Doing::kSaving || done == Doing::kAhead) go_on_stepping(now);
  if (!at->delivered.ok()) return fail(at->delivered.error(), now);
  if (done == Doing::kDelivering) evaluate();
  if (done == Doing::kEvaluating) evaluation_computed(now);
  if (life_ && life_->must_rest && doing_ == Doing::kNothing) report_rest(now);
}

void FleetEngine::rest(Instant now) {
  life_->watch.frozen(now);
  life_->working = false;
  life_->must_rest = true;
  // Late messages of the old epoch are dropped. Messages of the next epoch are kept.
  lost(process_.member()->self(), now);
  if (life_ && doing_ == Doing::kNothing) report_rest(now);
}

void FleetEngine::report_rest(Instant now) {
  life_->must_rest = false;
  if (life_->bench->recovery != nullptr) reach(FleetProbe::kCutShort);
  if (life_->snapshot)
    reach(life_->snapshot->stored ? FleetProbe::kSnapshotStored : FleetProbe::kSnapshotUnfinished);
  if (life_->bench->evaluation != nullptr) reach(FleetProbe::kEvaluationCut);
  life_->bench->recovery.reset();
  if (life_->evaluating) life_->upkeep.emplace_back([](Bench& bench) { bench.evaluation.reset(); });
  sparse_fleet::Report report;
  report.set_applied(life_->applied.value);
  if (life_->part) write_part(*life_->part, *report.mutable_part());
  const auto add = [&](StepNumber step, const Pieces& pieces) {
    sparse_fleet::Copies& copies = *report.add_copies();
    copies.set_step(step.value);
    write_pieces(pieces, *copies.mutable_pieces());
  };
  std::vector<std::uint64_t> shards;  // shards with a copy here: best computed anew here
  if (life_->layout) {
    const bool newer = life_->snapshot && life_->snapshot->stored;
    for (const PieceId& piece : (newer ? life_->snapshot->keeps : life_->copies.kept)[life_->rank]) {
      if (piece.layer == life_->job->shape.layers()) shards.push_back(piece.index);
    }
    add(life_->copies.step, life_->copies.kept[life_->rank]);
    if (life_->snapshot && life_->snapshot->stored)
      add(life_->snapshot->step, life_->snapshot->keeps[life_->rank]);
  }
  process_.member()->frozen(report.SerializeAsString(), std::move(shards), now);
}

void FleetEngine::go_on(Instant now) {
  cluster::Member& member = *process_.member();
  if (Epoch(member.installed().epoch()) <= life_->installed || life_->job == nullptr) return;
  auto layout = read_layout(member.installed().decision(), life_->job->shape);
  if (!layout.ok()) return fail(layout.error(), now);
  const auto rank = layout->rank_of(member.self().node);
  if (!rank) return;
  life_->installed = Epoch(member.installed().epoch());
  // A snapshot that this member stored counts if all members have stored it.
  auto snapshot = std::exchange(life_->snapshot, std::nullopt);
  if (snapshot && snapshot->stored && snapshot->step == layout->base) {
    reach(FleetProbe::kSnapshotCounts);
    keep(std::move(*snapshot));
  }
  life_->waits_for_snapshot = false;
  life_->evaluating.reset();
  life_->copies = {.step = layout->base, .kept = {}};
  for (const LayoutMember& one : layout->members) life_->copies.kept.push_back(one.copies_before);
  life_->layout = std::move(*layout);
  life_->plan = plan_recovery(*life_->layout, life_->job->shape);
  if (life_->job->defect == FleetDefect::kNoSnapshotBeforeMoves) life_->plan.snapshot = false;
  life_->rank = *rank;
  std::map<NodeId, RecoveryWatch::Known> known;
  for (const auto& [node, record] : member.view().members())
    known[node] = {.name = record.name(), .drains = record.state() == membership::DRAINING};
  life_->watch.installed(life_->installed, *life_->layout, life_->plan, known, now);
  life_->recent.clear();
  member.tell_steps(std::nullopt);
  life_->stages = recovery_stages(life_->plan, life_->job->shape.layers());
  // If the member's view is newer than the installed one, the next freeze is already under way.
  if (member.view().epoch() == life_->installed) begin_exchanges(now);
}

void FleetEngine::begin_exchanges(Instant now) {
  cluster::Member& member = *process_.member();
  std::vector<net::PeerId> peers;
  for (const LayoutMember& one : life_->layout->members) {
    const auto record = member.view().members().find(one.node);
    if (record != member.view().members().end()) peers.push_back(cluster::peer_of(record->second));
  }
  if (peers.size() != life_->layout->members.size()) return;
  cluster::CollectiveEvents events;
  const cluster::ExchangeView view{.epoch = life_->installed, .members = std::move(peers)};
  life_->steps.install(view, {}, events);
  life_->recovery.install(view, {}, events);
  const bool large = std::ranges::any_of(life_->rounds, [this](const FleetRound& round) {
    return std::ranges::any_of(life_->layout->members, [&](const LayoutMember& one) {
      return FleetLearner::most_round_bytes(*life_->job, round, one.after) > host::kBulkBytes;
    });
  });
  life_->lane = large ? host::Lane::kBulk : host::Lane::kControl;
  life_->working = true;
  life_->next_stage = 0;
  life_->arrived.clear();
  life_->bench->got.clear();
  life_->bench->recovery =
      std::make_unique<Recovery>(*life_->bench->learner, *life_->bench->vault, *life_->layout, life_->rank);
  carry_out(std::move(events), now);
  if (life_ && life_->working) compute_stage(now);
}

void FleetEngine::compute_stage(Instant now) {
  life_->watch.computes(life_->stages[life_->next_stage].kind, now);
  const std::shared_ptr<Bench> bench = life_->bench;
  want(Doing::kRecovering, [bench, stage = life_->stages[life_->next_stage]] {
    bench->give(bench->recovery->stage(stage, bench->got));
    if (!bench->recovery->restored().ok()) bench->taken = bench->recovery->restored();
  });
}

void FleetEngine::compute_round(const StepOrder::Item& item) {
  const std::shared_ptr<Bench> bench = life_->bench;
  const FleetRound round = life_->rounds[item.round];
  life_->computing = item;
  bench->got.clear();
  if (const auto needed = needed_by(item)) {
    auto got = life_->arrived.extract(*needed);
    bench->got = std::move(got.mapped());
  } else if (item.round == 0 && life_->order->idle()) {
    life_->agreed = StepWish::kNothing;
  }
  const StepWish wish = stopping_ ? StepWish::kHalt : StepWish::kNothing;
  want(Doing::kStepping, [bench, round, wish, step = item.step, epoch = life_->installed, sent = sent()] {
    const auto& due = bench->learner->job().checkpoints.due;
    const bool last_to_give = round.kind == FleetRound::Kind::kGradient && round.layer == 0;
    if (last_to_give) bench->learner->wish(due && due() ? std::max(wish, StepWish::kCheckpoint) : wish);
    bench->give(bench->learner->round(step, round, bench->got));
    if (round.kind == FleetRound::Kind::kFinish) bench->learner->tell(epoch, sent);
  });
}

// Work that needs nothing from other members. It is done while they are waited for, at the latest before the
// round that needs it. A member that is alone waits for nobody.
cluster::Engine::Work FleetEngine::work_ahead(const StepOrder::Item& next, bool waits) const {
  if (life_->layout->members.size() == 1) return {};
  const std::shared_ptr<Bench> bench = life_->bench;
  const bool lists = needed_by(next) && !bench->learner->listed(next.step);
  if ((waits || lists) && bench->learner->rows_left()) return [bench] { bench->learner->finish_rows(); };
  if (lists) return [bench, step = next.step] { bench->learner->list(step); };
  if (next.round > 0 && !waits) return {};
  const StepNumber step = next.round == 0 ? next.step : life_->order->next_step();
  if (step.value >= life_->job->schedule.total_steps || bench->learner->has_read(step)) return {};
  return [bench, step] { bench->learner->read(step); };
}

// Takes over the result of a stage. What a recovery has finished lasts, whatever has happened since.
void FleetEngine::stage_done(Instant now) {
  const FleetLearner& learner = *life_->bench->learner;
  if (learner.holds()) life_->applied = learner.applied();
  const RecoveryStage stage = life_->stages[life_->next_stage];
  life_->watch.exchanges(stage.kind, now);
  if (stage.kind == RecoveryStage::Kind::kSnapshot) {
    reach(FleetProbe::kSnapshotBeforeMoves);
    life_->waits_for_snapshot = true;
    if (life_->working) begin_snapshot();
    return;
  }
  if (stage.kind == RecoveryStage::Kind::kFinish) return parts_put_together(now);
  if (life_->working) exchange(operation_of(stage), kStages + life_->next_stage, now);
}

void FleetEngine::parts_put_together(Instant now) {
  cluster::Member& member = *process_.member();
  if (life_->part) {
    for (const std::size_t shard : shards_of(*life_->part)) member.dropped(cluster::TrackId(shard));
  }
  life_->part = life_->layout->members[life_->rank].after;
  life_->recovered = life_->installed;
  life_->saved.reset();
  life_->agreed = StepWish::kNothing;
  next_stage(now);
}

void FleetEngine::next_stage(Instant now) {
  if (++life_->next_stage < life_->stages.size()) {
    if (life_->working) compute_stage(now);
    return;
  }
  life_->watch.recovered(now);
  life_->bench->recovery.reset();
  life_->bench->got.clear();
  ++counters_.recoveries;
  reach(FleetProbe::kRecovered);
  life_->order->restart(life_->applied);
  step_done(now);
}

// The member has applied all steps below `life_->applied`.
void FleetEngine::step_done(Instant now) {
  cluster::Member& member = *process_.member();
  for (const std::size_t shard : shards_of(*life_->part))
    member.applied(cluster::TrackId(shard), life_->applied);
  if (leaving_ && life_->working && holds_nothing(*life_->part)) {
    reach(FleetProbe::kLeftEmpty);
    return member.leave(*leaving_, now);
  }
  go_on_stepping(now);
}

void FleetEngine::go_on_stepping(Instant now) {
  life_->waits_for_snapshot = false;
  if (!life_->working || doing_ != Doing::kNothing) return;
  if (life_->order->idle() && between_steps(now)) return;
  const auto item = life_->order->next(may_begin());
  if (!item) return;
  const auto needed = needed_by(*item);
  const bool waits = needed && !life_->arrived.contains(*needed);
  if (Work ahead = work_ahead(*item, waits)) return want(Doing::kAhead, std::move(ahead));
  if (!waits) compute_round(*item);
}

// The round whose gifts this round begins with. Nothing for the first round of a step.
std::optional<StepOrder::Item> FleetEngine::needed_by(const StepOrder::Item& item) const {
  if (item.round == 0) return std::nullopt;
  return StepOrder::Item{.step = item.step, .round = item.round - 1};
}

// No step is in flight. Returns whether something must be done before the next step.
bool FleetEngine::between_steps(Instant now) {
  if (checkpoint_due()) {
    save_checkpoint();
    return true;
  }
  if (halts()) {
    if (saved_lasts(now)) halt(now);
    return true;
  }
  if (snapshot_due()) {
    // A second snapshot at the same time would be larger than the first.
    life_->waits_for_snapshot = life_->snapshot.has_value();
    if (life_->waits_for_snapshot) reach(FleetProbe::kWaitedForSnapshot);
    if (!life_->snapshot) begin_snapshot();
    return true;
  }
  const bool done = life_->applied.value >= life_->job->schedule.total_steps;
  if (done && !life_->evaluating) deliver();
  return done;
}

// Whether the next step may begin if it is its turn. All members answer the same. Snapshots and checkpoints
// are taken of a state between two steps.
bool FleetEngine::may_begin() const {
  const std::uint64_t next = life_->order->next_step().value;
  if (next >= life_->job->schedule.total_steps) return false;
  if (life_->order->idle()) return true;
  const std::uint64_t every = life_->job->checkpoints.every_steps;
  return life_->agreed == StepWish::kNothing && next % life_->job->snapshot_every != 0 &&
         (every == 0 || next % every != 0);
}

// An exchange of a step has a number made from the step. The numbers of recoveries, evaluations and snapshots
// lie above.
void FleetEngine::exchanged(cluster::Completed completed, Instant now) {
  if (completed.id.value >= kSnapshots) {
    return snapshot_exchanged((completed.id.value - kSnapshots) % kSnapshotParts, std::move(completed.result),
                              now);
  }
  if (completed.id.value == kHalted) return left_alone(now);
  if (completed.id.value >= kEvaluation) {
    life_->bench->got = std::move(completed.result);
    ++*life_->evaluating;
    return evaluate();
  }
  if (completed.id.value >= kStages) {
    life_->bench->got = std::move(completed.result);
    return next_stage(now);
  }
  const std::uint64_t rounds = life_->rounds.size();
  life_->arrived[{.step = StepNumber(completed.id.value / rounds), .round = completed.id.value % rounds}] =
      std::move(completed.result);
  go_on_stepping(now);
}

void FleetEngine::round_done(Instant now) {
  const StepOrder::Item item = life_->computing;
  life_->order->computed(item);
  life_->bench->got.clear();
  if (life_->rounds[item.round].kind != FleetRound::Kind::kFinish) {
    if (life_->working) exchange(operation_of(item), step_exchange(item), now);
    if (life_ && life_->working) go_on_stepping(now);
    return;
  }
  if (item.round + 1 < life_->rounds.size()) return go_on_stepping(now);
  ++counters_.steps;
  measure(now);
  life_->applied = life_->bench->learner->applied();
  life_->agreed = std::max(life_->agreed, life_->bench->learner->agreed());
  tell_step(now);
  step_done(now);
}

cluster::Operation FleetEngine::operation_of(RecoveryStage stage) const {
  cluster::Operation operation{.kind = cluster::OperationKind::kAllToAll, .parts = {}, .from = {}};
  for (std::size_t rank = 0; rank < life_->layout->members.size(); ++rank) {
    operation.parts.push_back(stage_bytes(*life_->job, life_->plan, stage, life_->rank, rank));
    operation.from.push_back(stage_bytes(*life_->job, life_->plan, stage, rank, life_->rank));
  }
  return operation;
}

cluster::Operation FleetEngine::operation_of(const StepOrder::Item& item) const {
  const FleetRound round = life_->rounds[item.round];
  const bool gradient = round.kind == FleetRound::Kind::kGradient;
  cluster::Operation operation{
      .kind = gradient ? cluster::OperationKind::kAllToAll : cluster::OperationKind::kAllGather,
      .parts = life_->bench->learner->round_bytes(item.step, round),
      .from = {}};
  if (gradient) operation.from.assign(operation.parts.size(), operation.parts[life_->rank]);
  return operation;
}

std::uint64_t FleetEngine::step_exchange(const StepOrder::Item& item) const {
  return item.step.value * life_->rounds.size() + item.round;
}

void FleetEngine::exchange(const cluster::Operation& operation, std::uint64_t id, Instant now) {
  cluster::CollectiveEvents events;
  (id >= kStages ? life_->recovery : life_->steps)
      .begin(cluster::OperationId(id), operation, std::move(life_->bench->given), events);
  carry_out(std::move(events), now);
}

void FleetEngine::carry_out(cluster::CollectiveEvents events, Instant now) {
  for (cluster::CollectiveEvent& event : events) {
    if (failure_ || !life_) return;
    if (auto* const send = std::get_if<cluster::Send>(&event)) {
      const bool of_steps = send->message.channel == kStepChannel;
      (of_steps ? counters_.step_bytes : counters_.background_bytes) += net::counted_bytes(send->message);
      // send() returns false for a peer that is no longer a member. Then the view is changing.
      (void)process_.member()->send(send->to, of_steps ? life_->lane : host::Lane::kBulk,
                                    std::move(send->message), now);
    } else if (auto* const completed = std::get_if<cluster::Completed>(&event)) {
      if (life_->working) exchanged(std::move(*completed), now);
    } else if (auto* const broken = std::get_if<cluster::RuleBroken>(&event)) {
      fail(std::move(broken->error), now);
    } else {
      const bool ends = stopping_ || life_->halted;
      lost_somebody(now);
      if (ends) return;
    }
  }
}

void FleetEngine::fail(Error error, Instant now) {
  failure_ = std::move(error);
  if (life_) life_->working = false;
  process_.member()->leave(failure_->message(), now);
}

}  // namespace gossamer::sparse_engine
