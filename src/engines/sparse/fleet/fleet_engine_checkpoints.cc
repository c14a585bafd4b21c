// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine: the functions that keep checkpoints, which outlive all nodes, and that end a run with a
// checkpoint.
#include <string>
#include <utility>

#include "engines/sparse/fleet/fleet_engine.h"

namespace gossamer::sparse_engine {
namespace {

constexpr Duration kLookEvery{100'000'000};
constexpr Duration kOthersTime{10'000'000'000};

}  // namespace

// Whether it is time for a checkpoint. All members that have applied the step before give the same answer,
// except those that applied it in a recovery. The state at the start is on the disk already, and the trained
// network is delivered.
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

// The run is to end. Members may be a step apart, so the wish goes with the next step.
void FleetEngine::stop(const std::string& reason, Instant now) {
  const bool can_save = life_ && life_->job != nullptr && life_->job->checkpoints.save && life_->working &&
                        life_->applied.value < life_->job->schedule.total_steps;
  if (!can_save) return process_.member()->leave(reason, now);
  stopping_ = reason;
}

// Whether this member halts now. After the last step it does not need the others' agreement.
bool FleetEngine::halts() const {
  const bool trained = life_->applied.value >= life_->job->schedule.total_steps;
  return life_->agreed == StepWish::kHalt || (stopping_ && trained);
}

// Whether the saved state outlives this node. If not, the engine asks again later.
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

// While a run ends, no member replaces a lost one. This member still waits until its own save lasts.
void FleetEngine::lost_somebody(Instant now) {
  life_->working = false;  // until the view has changed
  if (!stopping_ && !life_->halted) return;
  life_->alone = life_->look_again && !life_->halted;
  if (!life_->alone) left_alone(now);
}

// Other members may still wait for bytes that this member has given them. They would be lost if it left now.
// It does not wait long for members that are dead.
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

// All members have halted, or no other member is left to take another step with.
void FleetEngine::left_alone(Instant now) {
  life_->working = false;
  process_.member()->leave(stopping_.value_or("the run was stopped"), now);
}

}  // namespace gossamer::sparse_engine
