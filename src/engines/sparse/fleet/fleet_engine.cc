// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "cluster/control/view.h"

namespace gossamer::engine {
namespace {

// Larger exchanges would hold up what is small and urgent.
constexpr std::uint64_t kBulkBytes = 1ULL << 20;

bool holds_nothing(const sparse::NetworkPart& part, std::size_t layers) {
  for (std::size_t layer = 0; layer < layers; ++layer) {
    if (columns_of(part, layer).begin != columns_of(part, layer).end) return false;
  }
  return shards_of(part).empty();
}

}  // namespace

// In the batch of a life's end, events that came before it are told when there is no member any more.
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
  // Of the life before something may still be computed; worked() comes back here.
  if (doing_ == Doing::kNothing) prepare(now);
}

// A configuration is the same for the life of a run.
void FleetEngine::prepare(Instant now) {
  if (job_ != nullptr) return prepared(now);
  const std::shared_ptr<Bench> bench = life_->bench;
  want(Doing::kPreparing,
       [bench, make = make_job_, configuration = configuration_] { bench->job = make(configuration); });
}

void FleetEngine::prepared(Instant now) {
  life_->job = job_;
  life_->bench->learner = std::make_unique<FleetLearner>(*job_);
  life_->bench->vault = std::make_unique<Vault>(*job_);
  life_->rounds = step_rounds(job_->shape.layers());
  process_.member()->ready(now);
}

void FleetEngine::on_one(const cluster::LifeEnded&, Instant) { life_.reset(); }

void FleetEngine::on_one(const cluster::MemberEvent& event, Instant now) {
  if (const auto* const stop = std::get_if<cluster::StopRequested>(&event))
    return process_.member()->leave(stop->reason, now);
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
  if (!at->kept.ok()) return fail(at->kept.error(), now);
  if (done == Doing::kRecovering) stage_done(now);
  if (done == Doing::kSnapshot) give_snapshot(now);
  if (done == Doing::kStepping) round_done(now);
  if (done == Doing::kDelivering && !at->delivered.ok()) return fail(at->delivered.error(), now);
  if (life_ && life_->must_rest && doing_ == Doing::kNothing) report_rest(now);
}

void FleetEngine::rest(Instant now) {
  life_->working = false;
  life_->must_rest = true;
  // What still comes of the old epoch is dropped, and what is of the next is kept.
  lost(process_.member()->self(), now);
  if (doing_ == Doing::kNothing) report_rest(now);
}

void FleetEngine::report_rest(Instant now) {
  life_->must_rest = false;
  if (life_->bench->recovery != nullptr) reach(FleetProbe::kCutShort);
  if (life_->snapshot)
    reach(life_->snapshot->stored ? FleetProbe::kSnapshotStored : FleetProbe::kSnapshotUnfinished);
  life_->bench->recovery.reset();
  sparse_fleet::Report report;
  report.set_applied(life_->applied.value);
  if (life_->part) write_part(*life_->part, *report.mutable_part());
  const auto add = [&](StepNumber step, const Pieces& pieces) {
    sparse_fleet::Copies& copies = *report.add_copies();
    copies.set_step(step.value);
    write_pieces(pieces, *copies.mutable_pieces());
  };
  if (life_->layout) {
    add(life_->copies.step, life_->copies.kept[life_->rank]);
    if (life_->snapshot && life_->snapshot->stored)
      add(life_->snapshot->step, life_->snapshot->keeps[life_->rank]);
  }
  process_.member()->frozen(report.SerializeAsString(), {}, now);
}

void FleetEngine::go_on(Instant now) {
  cluster::Member& member = *process_.member();
  if (Epoch(member.installed().epoch()) <= life_->installed || life_->job == nullptr) return;
  auto layout = read_layout(member.installed().decision(), life_->job->shape);
  if (!layout.ok()) return fail(layout.error(), now);
  const auto rank = layout->rank_of(member.self().node);
  if (!rank) return;
  life_->installed = Epoch(member.installed().epoch());
  // What was stored counts if it did for all.
  auto snapshot = std::exchange(life_->snapshot, std::nullopt);
  if (snapshot && snapshot->stored && snapshot->step == layout->base) {
    reach(FleetProbe::kSnapshotCounts);
    keep(std::move(*snapshot));
  }
  life_->waits_for_snapshot = false;
  life_->copies = {.step = layout->base, .kept = {}};
  for (const LayoutMember& one : layout->members) life_->copies.kept.push_back(one.copies_before);
  life_->layout = std::move(*layout);
  life_->plan = plan_recovery(*life_->layout, life_->job->shape);
  if (life_->job->defect == FleetDefect::kNoSnapshotBeforeMoves) life_->plan.snapshot = false;
  life_->rank = *rank;
  life_->stages = recovery_stages(life_->plan, life_->job->shape.layers());
  // In another view than the installed one the next freeze is under way.
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
      return FleetLearner::round_bytes(*life_->job, round, one.after) > kBulkBytes;
    });
  });
  life_->lane = large ? host::Lane::kBulk : host::Lane::kControl;
  life_->working = true;
  life_->next_stage = 0;
  life_->next_round = 0;
  life_->bench->got.clear();
  life_->bench->recovery =
      std::make_unique<Recovery>(*life_->bench->learner, *life_->bench->vault, *life_->layout, life_->rank);
  carry_out(std::move(events), now);
  if (life_ && life_->working) compute_stage();
}

void FleetEngine::compute_stage() {
  const std::shared_ptr<Bench> bench = life_->bench;
  want(Doing::kRecovering, [bench, stage = life_->stages[life_->next_stage]] {
    bench->given = bench->recovery->stage(stage, bench->got);
  });
}

void FleetEngine::compute_round() {
  const std::shared_ptr<Bench> bench = life_->bench;
  const FleetRound round = life_->rounds[life_->next_round];
  want(Doing::kStepping, [bench, clock = clock_, round, epoch = life_->installed] {
    const Instant before = clock == nullptr ? Instant{} : clock->now();
    bench->given = bench->learner->round(round, bench->got);
    if (clock != nullptr) bench->computed = bench->computed + (clock->now() - before);
    if (round.kind == FleetRound::Kind::kFinish) bench->learner->tell(epoch);
  });
}

// What a recovery has done lasts, whatever has happened since.
void FleetEngine::stage_done(Instant now) {
  const FleetLearner& learner = *life_->bench->learner;
  if (learner.holds()) life_->applied = learner.applied();
  const RecoveryStage stage = life_->stages[life_->next_stage];
  if (stage.kind == RecoveryStage::Kind::kSnapshot) {
    reach(FleetProbe::kSnapshotBeforeMoves);
    life_->waits_for_snapshot = true;
    if (life_->working) begin_snapshot();
    return;
  }
  if (stage.kind == RecoveryStage::Kind::kFinish) return parts_put_together(now);
  if (life_->working) exchange(operation_of(stage), now);
}

void FleetEngine::parts_put_together(Instant now) {
  cluster::Member& member = *process_.member();
  if (life_->part) {
    for (const std::size_t shard : shards_of(*life_->part)) member.dropped(cluster::TrackId(shard));
  }
  life_->part = life_->layout->members[life_->rank].after;
  life_->recovered = life_->installed;
  next_stage(now);
}

void FleetEngine::next_stage(Instant now) {
  if (++life_->next_stage < life_->stages.size()) {
    if (life_->working) compute_stage();
    return;
  }
  life_->bench->recovery.reset();
  life_->bench->got.clear();
  ++counters_.recoveries;
  reach(FleetProbe::kRecovered);
  step_done(now);
}

// The member has applied all steps below.
void FleetEngine::step_done(Instant now) {
  cluster::Member& member = *process_.member();
  for (const std::size_t shard : shards_of(*life_->part))
    member.applied(cluster::TrackId(shard), life_->applied);
  life_->next_round = 0;
  if (leaving_ && life_->working && holds_nothing(*life_->part, life_->job->shape.layers())) {
    reach(FleetProbe::kLeftEmpty);
    return member.leave(*leaving_, now);
  }
  go_on_stepping(now);
}

void FleetEngine::go_on_stepping(Instant) {
  life_->waits_for_snapshot = false;
  if (!life_->working) return;
  if (snapshot_due()) {
    // Of two at once the second would be larger than the first.
    life_->waits_for_snapshot = life_->snapshot.has_value();
    if (life_->waits_for_snapshot) reach(FleetProbe::kWaitedForSnapshot);
    if (!life_->snapshot) begin_snapshot();
  } else if (life_->applied.value < life_->job->schedule.total_steps) {
    compute_round();
  } else if (life_->job->deliver) {
    deliver();
  }
}

// One of steps has the numbers of steps; those of recoveries and snapshots lie above them.
void FleetEngine::exchanged(cluster::Completed completed, Instant now) {
  if (completed.id.value >= kSnapshots) {
    return snapshot_exchanged((completed.id.value - kSnapshots) % kSnapshotParts, std::move(completed.result),
                              now);
  }
  life_->bench->got = std::move(completed.result);
  if (completed.id.value >= kStages) return next_stage(now);
  ++life_->next_round;
  compute_round();
}

// Shards a second: columns go with them.
void FleetEngine::measure() {
  const Duration computed = std::exchange(life_->bench->computed, {});
  const std::size_t shards = shards_of(*life_->part).size();
  if (computed.ns <= 0 || shards == 0) return;
  process_.member()->measured(static_cast<double>(shards) / computed.seconds());
}

void FleetEngine::deliver() {
  const std::shared_ptr<Bench> bench = life_->bench;
  want(Doing::kDelivering,
       [bench, job = life_->job] { bench->delivered = job->deliver(bench->learner->network()); });
}

void FleetEngine::round_done(Instant now) {
  const FleetRound round = life_->rounds[life_->next_round];
  if (round.kind != FleetRound::Kind::kFinish) {
    if (life_->working) exchange(operation_of(round), now);
    return;
  }
  ++counters_.steps;
  measure();
  life_->applied = life_->bench->learner->applied();
  life_->bench->got.clear();
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

cluster::Operation FleetEngine::operation_of(FleetRound round) const {
  const bool gradient = round.kind == FleetRound::Kind::kGradient;
  cluster::Operation operation{
      .kind = gradient ? cluster::OperationKind::kAllToAll : cluster::OperationKind::kAllGather,
      .parts = {},
      .from = {}};
  const auto& members = life_->layout->members;
  for (const LayoutMember& member : members)
    operation.parts.push_back(FleetLearner::round_bytes(*life_->job, round, member.after));
  if (gradient) operation.from.assign(members.size(), operation.parts[life_->rank]);
  return operation;
}

void FleetEngine::exchange(const cluster::Operation& operation, Instant now) {
  const bool recovering = life_->bench->recovery != nullptr;
  const std::uint64_t id = recovering ? kStages + life_->next_stage
                                      : life_->applied.value * life_->rounds.size() + life_->next_round;
  cluster::CollectiveEvents events;
  (recovering ? life_->recovery : life_->steps)
      .begin(cluster::OperationId(id), operation, std::move(life_->bench->given), events);
  carry_out(std::move(events), now);
}

void FleetEngine::carry_out(cluster::CollectiveEvents events, Instant now) {
  for (cluster::CollectiveEvent& event : events) {
    if (failure_ || !life_) return;
    if (auto* const send = std::get_if<cluster::Send>(&event)) {
      const bool of_steps = send->message.channel == kStepChannel;
      (of_steps ? counters_.step_bytes : counters_.background_bytes) += net::counted_bytes(send->message);
      // False for who is no member any more: then the view is changing.
      (void)process_.member()->send(send->to, of_steps ? life_->lane : host::Lane::kBulk,
                                    std::move(send->message), now);
    } else if (auto* const completed = std::get_if<cluster::Completed>(&event)) {
      if (life_->working) exchanged(std::move(*completed), now);
    } else if (auto* const broken = std::get_if<cluster::RuleBroken>(&event)) {
      fail(std::move(broken->error), now);
    } else {
      life_->working = false;  // until the view has changed
    }
  }
}

void FleetEngine::fail(Error error, Instant now) {
  failure_ = std::move(error);
  if (life_) life_->working = false;
  process_.member()->leave(failure_->message(), now);
}

}  // namespace gossamer::engine
