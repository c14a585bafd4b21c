// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine while the view changes: it comes to rest, reports, takes up a layout, and gets its part of it.
#include <fmt/format.h>
#include <gossamer/sparse_fleet.pb.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "cluster/control/view.h"
#include "engines/sparse/fleet/fleet_engine.h"
#include "engines/sparse/fleet/step/layout_message.h"

namespace gossamer::sparse_engine {
namespace {

// What the change of the view cuts short.
void note_what_is_cut(const FleetLife& life) {
  const auto reach = [&](FleetProbe probe) { reached(life.job->probes, probe); };
  if (life.bench->recovery != nullptr) reach(FleetProbe::kCutShort);
  if (life.snapshots.under_way())
    reach(life.snapshots.stored() ? FleetProbe::kSnapshotStored : FleetProbe::kSnapshotUnfinished);
  if (life.bench->answers != nullptr) reach(FleetProbe::kEvaluationCut);
}

// Tells the coordinator how far this member is, and what it holds.
void say_frozen(const FleetLife& life, cluster::Member& member, Instant now) {
  sparse_fleet::Report report;
  report.set_applied(life.applied.value);
  if (life.part) write_part(*life.part, *report.mutable_part());
  std::vector<std::uint64_t> shards;  // with a copy here: best computed anew here
  if (life.layout) {
    shards = life.snapshots.shards_kept(life.rank, life.job->shape);
    life.snapshots.report(life.rank, report);
  }
  member.frozen(report.SerializeAsString(), shards, now);
}

// Whether this member can go on as its layout says. Another one is a step ahead only after this one has given
// all to that step.
bool can_catch_up(const FleetLife& life) {
  if (!life.part || life.applied == life.layout->resume) return true;
  return life.applied.value + 1 == life.layout->resume.value && life.rounds->has_given_all(life.applied);
}

Error untrue(StepNumber resume) {
  return {.kind = ErrorKind::kBadData,
          .where = "a report at rest",
          .what = "a member has applied a step, it says, to which this one has not given all",
          .got = fmt::format("{} steps", resume.value),
          .fix = "look whether all nodes run the same version"};
}

// Blames the other members that say that they have applied the last step before `resume`. False: there is
// none.
bool blame_ahead(const FleetLife& life, const cluster::ExchangeView& view, cluster::Member& member,
                 Instant now) {
  bool any = false;
  for (std::size_t rank = 0; rank < view.members.size(); ++rank) {
    const LayoutMember& one = life.layout->members[rank];
    if (rank == life.rank || !one.before || one.applied != life.layout->resume) continue;
    member.blame(view.members[rank], untrue(life.layout->resume), now);
    any = true;
  }
  return any;
}

struct Place {
  Epoch epoch;
  std::size_t rank;
};

// The life knows its layout. It does not have its part of it yet.
void take_up(FleetLife& life, Layout layout, const Place& place, Instant now) {
  life.installed = place.epoch;
  if (auto counts = life.snapshots.take_up(layout)) {
    reached(life.job->probes, FleetProbe::kSnapshotCounts);
    life.upkeep.push_back(keep_work(*std::move(counts)));
  }
  life.delivered = false;
  life.layout = std::move(layout);
  life.rank = place.rank;
  life.wishes.restart(place.rank);
  life.plan = plan_recovery(*life.layout, life.job->shape);
  if (!life.job->guarded(FleetDefect::kNoSnapshotBeforeMoves)) life.plan.snapshot = false;
  life.stages = recovery_stages(life.plan, life.job->shape.layers());
  life.reporter.begin_layout(place.epoch, *life.layout, life.plan, now);
}

}  // namespace

void FleetEngine::rest(Instant now) {
  life_->reporter.watch().frozen(now);
  life_->must_report = true;
  life_->look = {};
  life_->questions.close();
  // What others have given for the step under way still comes: with it end_last_step() may end that step.
  life_->exchanges.rest();
  life_->told_halted = life_->others_halted = false;
  if (stopping_ && halt_anew(*life_, member().stop(), now)) advance(FleetEvent::kLostAtEnd, now);
  if (life_ != nullptr && in_hand_.idle()) report(now);
}

void FleetEngine::report(Instant now) {
  life_->must_report = false;
  note_what_is_cut(*life_);
  life_->bench->recovery.reset();
  if (life_->delivered) life_->upkeep.emplace_back([](FleetWorkbench& its) { its.answers.reset(); });
  say_frozen(*life_, member(), now);
}

void FleetEngine::install(Instant now) {
  const Epoch epoch(member().installed().epoch());
  if (epoch <= life_->installed || life_->job == nullptr) return;
  // worked() comes back here.
  if (life_->saves_alone || (life_->alone && in_hand_.keeps())) return;
  auto layout = read_layout(member().installed().decision(), life_->job->shape);
  if (!layout.ok()) return fail(layout.error(), now);
  const auto rank = layout->rank_of(member().self().node);
  if (!rank) return;
  // It has ended a step since its report, to save the same one as the others, and is about to leave.
  if (life_->part && layout->resume < life_->applied) return;
  take_up(*life_, *std::move(layout), {.epoch = epoch, .rank = *rank}, now);
  // If the member's view is newer than the installed one, the next freeze is already under way.
  if (member().view().epoch() != epoch) return;
  const auto view = exchange_view(member().view(), *life_->layout, epoch);
  if (!view) return;
  if (can_catch_up(*life_)) return advance(FleetEvent::kInstalled, now);
  if (!blame_ahead(*life_, *view, member(), now)) fail(untrue(life_->layout->resume), now);
}

void FleetEngine::begin_recovery(Instant now) {
  life_->next_stage = 0;
  life_->bench->got.clear();
  life_->bench->recovery =
      std::make_unique<Recovery>(*life_->bench->learner, *life_->bench->vault, *life_->layout, life_->rank);
  carry_out(life_->exchanges.install(exchange_view(member().view(), *life_->layout, life_->installed).value(),
                                     lane_of_steps(*life_->job, *life_->layout)),
            now);
  if (life_ != nullptr && at_work()) compute_stage(now);
}

void FleetEngine::compute_stage(Instant now) {
  const RecoveryStage stage = life_->stages[life_->next_stage];
  life_->reporter.computes(stage.kind, now);
  want(FleetTask::kRecovering, stage_work(life_->bench, stage));
}

// What a recovery has finished lasts, whatever has happened since.
void FleetEngine::take_stage(Instant now) {
  const FleetLearner& learner = *life_->bench->learner;
  if (learner.holds()) life_->applied = learner.applied();
  const RecoveryStage stage = life_->stages[life_->next_stage];
  life_->reporter.exchanges(stage.kind, now);
  if (stage.kind == RecoveryStage::Kind::kSnapshot) {
    reach(FleetProbe::kSnapshotBeforeMoves);
    if (at_work()) begin_snapshot();
    return;
  }
  if (stage.kind == RecoveryStage::Kind::kFinish) {
    take_part();
    return next_stage(now);
  }
  if (!at_work()) return;
  exchange({.kind = ExchangeName::Kind::kStage, .step = {}, .round = life_->next_stage},
           stage_operation(*life_->job, life_->plan, stage, life_->rank, life_->layout->members.size()),
           std::move(life_->bench->given), now);
}

// The part of the layout is put together.
void FleetEngine::take_part() {
  if (life_->part) {
    for (const std::size_t shard : shards_of(*life_->part)) member().dropped(cluster::TrackId(shard));
  }
  life_->part = life_->layout->members[life_->rank].after;
  // What others gave for the part of before is nothing for this one.
  life_->rounds->forget();
  life_->rounds->restart(life_->applied);
  life_->recovered = life_->installed;
  life_->saved.reset();
  life_->agreed = StepWish::kNothing;
}

void FleetEngine::next_stage(Instant now) {
  if (++life_->next_stage < life_->stages.size()) {
    if (at_work()) compute_stage(now);
    return;
  }
  life_->reporter.watch().recovered(now);
  life_->bench->recovery.reset();
  life_->bench->got.clear();
  ++counters_.recoveries;
  note_recovery(*life_, now);
  reach(FleetProbe::kRecovered);
  life_->rounds->forget();
  life_->rounds->restart(life_->applied);
  advance(FleetEvent::kRecovered, now);
}

// The member has applied all steps below `life_->applied`.
void FleetEngine::tell_applied(Instant now) {
  for (const std::size_t shard : shards_of(*life_->part))
    member().applied(cluster::TrackId(shard), life_->applied);
  // When the run ends the view does not change for it: the others would wait for it in their next step.
  const bool ends = stopping_ && member().stop();
  if (leaving() && !ends && at_work() && holds_nothing(*life_->part)) {
    reach(FleetProbe::kLeftEmpty);
    return leave(FleetEvent::kEmptied, *leaving(), now);
  }
  go_on(now);
}

}  // namespace gossamer::sparse_engine
