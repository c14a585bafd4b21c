// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine, the part that keeps checkpoints beyond all nodes' lives, and ends a run with one.
#include <string>
#include <utility>

#include "engines/sparse/fleet/fleet_engine.h"

namespace gossamer::engine {
namespace {

constexpr Duration kLookEvery{100'000'000};
constexpr Duration kOthersTime{10'000'000'000};

}  // namespace

// The same at all members that have applied the step before, but for those that did so in a recovery. What
// the run began with is there already, and the trained network is delivered.
bool FleetEngine::checkpoint_due() const {
  const FleetJob& job = *life_->job;
  const StepNumber step = life_->applied;
  if (!job.checkpoints.save || life_->saved == step) return false;
  if (step == job.start || step.value >= job.schedule.total_steps) return false;
  const std::uint64_t every = job.checkpoints.every_steps;
  return life_->agreed != StepWish::kNothing || (every > 0 && step.value % every == 0);
}

void FleetEngine::save_checkpoint() {
  life_->saved = life_->applied;
  const bool last = life_->agreed == StepWish::kHalt;
  const std::shared_ptr<Bench> bench = life_->bench;
  want(Doing::kSaving, [bench, last, step = life_->applied] {
    const FleetCheckpoints& checkpoints = bench->learner->job().checkpoints;
    checkpoints.save(step, bench->learner->network());
    if (last && checkpoints.finish) checkpoints.finish();
  });
}

// The run is to end. Members may be a step apart, so what is asked for goes with the next step.
void FleetEngine::stop(const std::string& reason, Instant now) {
  const bool can_save = life_ && life_->job != nullptr && life_->job->checkpoints.save && life_->working &&
                        life_->applied.value < life_->job->schedule.total_steps;
  if (!can_save) return process_.member()->leave(reason, now);
  stopping_ = reason;
}

// After the last step nobody is asked any more.
bool FleetEngine::halts() const {
  const bool trained = life_->applied.value >= life_->job->schedule.total_steps;
  return life_->agreed == StepWish::kHalt || (stopping_ && trained);
}

// Else it is looked at again.
bool FleetEngine::saved_lasts(Instant now) {
  const auto& lasts = life_->job->checkpoints.lasts;
  if (!lasts || lasts()) return true;
  life_->look_again = now + kLookEvery;
  return false;
}

void FleetEngine::tick(Instant now) {
  if (!life_ || !life_->look_again || *life_->look_again > now) return;
  life_->look_again.reset();
  if (process_.member() == nullptr || failure_) return;
  if (life_->halted || (life_->alone && saved_lasts(now))) return left_alone(now);
  if (!life_->alone) go_on_stepping(now);
}

// While a run ends nobody takes the place of who is lost. What this member has saved it still brings away.
void FleetEngine::lost_somebody(Instant now) {
  life_->working = false;  // until the view has changed
  if (!stopping_ && !life_->halted) return;
  life_->alone = life_->look_again && !life_->halted;
  if (!life_->alone) left_alone(now);
}

// Others may still wait for what this member has given them: who goes now would take it along. For who is
// dead nobody waits long.
void FleetEngine::halt(Instant now) {
  if (std::exchange(life_->halted, true)) return;
  life_->look_again = now + kOthersTime;
  cluster::CollectiveEvents events;
  life_->recovery.begin(cluster::OperationId(kHalted),
                        {.kind = cluster::OperationKind::kAllGather,
                         .parts = std::vector<std::uint64_t>(life_->layout->members.size(), 1),
                         .from = {}},
                        {Slice::of(std::string(1, '\0'))}, events);
  carry_out(std::move(events), now);
}

// All have halted, or there is nobody with whom to take another step.
void FleetEngine::left_alone(Instant now) {
  life_->working = false;
  process_.member()->leave(stopping_.value_or("the run was stopped"), now);
}

}  // namespace gossamer::engine
