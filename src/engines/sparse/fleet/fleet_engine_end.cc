// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine at the end of a run: it delivers its part and answers questions about it, or halts after a
// checkpoint and leaves.
#include <string>
#include <utility>

#include "engines/sparse/fleet/fleet_engine.h"

namespace gossamer::sparse_engine {
namespace {

constexpr Duration kLookEvery{100'000'000};
constexpr Duration kOthersTime{10'000'000'000};

}  // namespace

// The run is to end, or all members leave it. Members may be a step apart, so the wish goes with the next
// step.
void FleetEngine::stop(const std::string& reason, Instant now) {
  if (life_ != nullptr && stopping_ && (at_work() || life_->look_again)) return;  // it was said before
  const bool can_save = life_ != nullptr && life_->job != nullptr && life_->job->checkpoints.save &&
                        at_work() && life_->applied.value < life_->job->schedule.total_steps;
  if (!can_save) return leave(FleetEvent::kStopped, reason, now);
  stopping_ = reason;
}

std::string FleetEngine::why_it_ends() const { return stopping_.value_or("the run was stopped"); }

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
  if (life_ == nullptr) return;
  life_->questions.tick(now);
  if (!life_->look_again || *life_->look_again > now) return;
  life_->look_again.reset();
  if (!lives()) return;
  if (life_->halted) return leave(FleetEvent::kOthersSilent, why_it_ends(), now);
  if (!life_->alone) return go_on(now);
  if (saved_lasts(now)) leave(FleetEvent::kSaveLasts, why_it_ends(), now);
}

// Other members may still wait for bytes that this member has given them. They would be lost if it left now.
// It does not wait long for members that are dead.
void FleetEngine::halt(Instant now) {
  if (!saved_lasts(now) || std::exchange(life_->halted, true)) return;
  life_->look_again = now + kOthersTime;
  exchange({.kind = ExchangeName::Kind::kHalted, .step = {}, .round = 0},
           {.kind = cluster::OperationKind::kAllGather,
            .parts = std::vector<std::uint64_t>(life_->layout->members.size(), 1),
            .from = {}},
           {Slice::of(std::string(1, '\0'))}, now);
}

// While a run ends, no member replaces a lost one. This member still waits until its own save lasts.
void FleetEngine::leave_once_saved(Instant now) {
  life_->alone = life_->look_again && !life_->halted;
  if (!life_->alone) member().leave(why_it_ends(), now);
}

void FleetEngine::deliver(Instant now) {
  if (std::exchange(life_->delivered, true)) return;
  if (!life_->job->deliver) return open_to_questions(now);
  want(Doing::kDelivering, delivery_work(life_->bench));
}

void FleetEngine::open_to_questions(Instant now) {
  if (!life_->job->answers || !at_work()) return;
  life_->questions.open(life_->installed, *life_->part, now);
  answer();
}

// The part does not change before a recovery, which forgets what answers need beside it.
void FleetEngine::answer() {
  if (doing_ != Doing::kNothing || !at_work()) return;
  if (auto question = life_->questions.take())
    want(Doing::kAnswering, answer_work(life_->bench, std::move(question)));
}

}  // namespace gossamer::sparse_engine
