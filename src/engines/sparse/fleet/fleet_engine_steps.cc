// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine while it takes steps, and between two of them: what is due, snapshots, checkpoints.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engines/sparse/fleet/fleet_engine.h"

namespace gossamer::sparse_engine {
namespace {

// Members asked for these things with the step applied last, by rank. Returns one that may not ask.
std::optional<StepWishes::Broken> note_wishes(FleetLife& life, const std::vector<StepWish>& wishes,
                                              Instant now) {
  for (const StepWish wish : wishes) life.agreed = std::max(life.agreed, wish);
  return life.wishes.asked(wishes, {.step = StepNumber(life.applied.value - 1),
                                    .next = life.rounds->order().next_step(),
                                    .every = life.job->checkpoints.every,
                                    .now = now});
}

// Whether others halt before the next step, and this member has saved what it holds. They wait for its word.
bool saved_for_others(const FleetLife& life, FleetEvent due) {
  return life.wishes.end() == life.applied && due != FleetEvent::kCheckpointDue;
}

}  // namespace

bool may_begin(const FleetLife& life) {
  const StepOrder& order = life.rounds->order();
  const std::uint64_t next = order.next_step().value;
  if (next >= life.job->schedule.total_steps) return false;
  if (order.idle()) return true;
  const std::uint64_t every = life.job->checkpoints.every_steps;
  return life.agreed == StepWish::kNothing && next % life.job->snapshot_every != 0 &&
         (every == 0 || next % every != 0);
}

bool checkpoint_due(const FleetLife& life) {
  const FleetJob& job = *life.job;
  const StepNumber step = life.applied;
  if (!job.checkpoints.save || life.saved == step) return false;
  if (step == job.start || step.value >= job.schedule.total_steps) return false;
  const std::uint64_t every = job.checkpoints.every_steps;
  return life.agreed != StepWish::kNothing || (every > 0 && step.value % every == 0);
}

FleetEvent due_between_steps(const FleetLife& life, bool ends) {
  const bool trained = is_trained(life);
  if (checkpoint_due(life)) return FleetEvent::kCheckpointDue;
  if (ends && has_to_deliver(life)) return FleetEvent::kTrained;
  if (ends && halts(life)) return FleetEvent::kHaltDue;
  if (life.snapshots.due(life.applied, *life.layout, *life.job)) return FleetEvent::kSnapshotDue;
  return trained ? FleetEvent::kTrained : FleetEvent::kFree;
}

void FleetEngine::go_on(Instant now) {
  if (!at_work() || life_->state == FleetState::kRecovering || !in_hand_.idle()) return;
  // What it has begun the others do not take: they have halted.
  if (stopping_ && halts(*life_)) life_->rounds->restart(life_->applied);
  if (!life_->rounds->order().idle()) return advance(FleetEvent::kFree, now);
  const FleetEvent due = due_between_steps(*life_, stopping_.has_value());
  if (!stopping_ && saved_for_others(*life_, due)) tell_halted(now);
  if (life_ != nullptr) advance(due, now);
}

void FleetEngine::compute_round() {
  FleetRounds& rounds = *life_->rounds;
  const auto item = rounds.order().next(may_begin(*life_));
  if (!item) return;
  // A member that is alone waits for nobody.
  if (life_->layout->members.size() > 1) {
    if (Work ahead = work_ahead(life_->bench, rounds, *item))
      return want(FleetTask::kAhead, std::move(ahead));
  }
  if (rounds.waits(*item)) return;
  if (!FleetRounds::needs_gifts(*item) && rounds.order().idle()) life_->agreed = StepWish::kNothing;
  want_round(*item);
}

void FleetEngine::want_round(const FleetRounds::Item& item) {
  life_->bench->got = life_->rounds->begin(item);
  want(FleetTask::kStepping,
       round_work(life_->bench, {.item = item,
                                 .round = life_->rounds->round(item),
                                 .wish = stopping_ ? StepWish::kHalt : StepWish::kNothing,
                                 .epoch = life_->installed,
                                 .sent = life_->reporter.sent()}));
}

void FleetEngine::round_done(Instant now) {
  const FleetRounds::Item item = life_->rounds->computed();
  const FleetRound round = life_->rounds->round(item);
  FleetLearner& learner = *life_->bench->learner;
  life_->bench->got.clear();
  if (!life_->rounds->is_last(item)) {
    if (at_work())
      exchange({.kind = ExchangeName::Kind::kRound, .step = item.step, .round = item.round},
               round_operation(learner, item.step, round, life_->rank), std::move(life_->bench->given), now);
    if (life_ != nullptr) go_on(now);
    return;
  }
  ++counters_.steps;
  using Beside = FleetReporter::Beside;
  life_->reporter.measure(learner, *life_->part,
                          life_->snapshots.under_way() ? Beside::kSnapshot : Beside::kNothing, now);
  life_->applied = learner.applied();
  const auto liar = note_wishes(*life_, learner.wishes(), now);
  note_step(*life_, now);
  const auto recovery = life_->reporter.stepped(item.step, learner.loss(), now);
  if (recovery && life_->job->recovered) {
    life_->upkeep.emplace_back(
        [job = life_->job, recovery = *recovery](FleetWorkbench&) { job->recovered(recovery); });
  }
  if (liar) blame(liar->rank, liar->error, now);
  tell_applied(now);
}

// A second snapshot at the same time would be larger than the first.
void FleetEngine::snapshot() {
  if (life_->snapshots.under_way()) return reach(FleetProbe::kWaitedForSnapshot);
  begin_snapshot();
}

// A new member has applied nothing until it holds something.
void FleetEngine::begin_snapshot() {
  const bool recovering = life_->bench->recovery != nullptr;
  const FleetShape& shape = life_->job->shape;
  life_->snapshots.begin(recovering ? life_->layout->resume : life_->applied,
                         recovering ? snapshot_before_moves(*life_->layout, life_->plan, shape)
                                    : snapshot_of(*life_->layout, shape),
                         life_->rank);
  want(FleetTask::kSnapshot, delta_work(life_->bench, life_->snapshots));
}

// Steps go on beside a snapshot. A recovery does not, as its pieces are about to move.
void FleetEngine::give_snapshot(Instant now) {
  auto giving = life_->snapshots.cut(std::exchange(life_->bench->deltas, {}));
  exchange(giving.name, giving.operation, std::move(giving.given), now);
  if (life_ != nullptr && life_->bench->recovery == nullptr) go_on(now);
}

// A member says that it has a snapshot only when it has looked. Otherwise copies would count that it cannot
// take.
void FleetEngine::snapshot_exchanged(std::uint64_t part, std::vector<Slices> got, Instant now) {
  FleetSnapshots& snapshots = life_->snapshots;
  if (part == FleetSnapshots::kStored) return snapshot_stored(now);
  if (part == FleetSnapshots::kDeltas) {
    life_->look = look_work(snapshots.take(std::move(got)));
    if (in_hand_.idle()) want(FleetTask::kLooking, [] {});
    return;
  }
  auto next = snapshots.sized(got, *life_->job, life_->rank);
  if (const auto* const wrong = std::get_if<FleetSnapshots::WrongGift>(&next))
    return blame(wrong->rank, wrong->error, now);
  auto& deltas = std::get<FleetSnapshots::Giving>(next);
  exchange(deltas.name, deltas.operation, std::move(deltas.given), now);
}

// It also counts if the view begins to change meanwhile.
void FleetEngine::store_snapshot(Instant now) {
  auto stored = life_->snapshots.store();
  if (!at_work()) return;
  if (!life_->job->guarded(FleetDefect::kEarlyForget)) return snapshot_stored(now);
  exchange(stored.name, stored.operation, std::move(stored.given), now);
}

void FleetEngine::snapshot_stored(Instant now) {
  ++counters_.snapshots;
  life_->upkeep.push_back(keep_work(life_->snapshots.complete()));
  advance(FleetEvent::kSnapshotStored, now);
}

void FleetEngine::save_checkpoint() {
  life_->saved = life_->applied;
  want(FleetTask::kSaving, save_work(life_->bench, life_->applied, life_->agreed == StepWish::kHalt));
}

}  // namespace gossamer::sparse_engine
