// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine at the end of a run: it delivers its part and answers questions about it, or halts after a
// checkpoint and leaves.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "engines/sparse/fleet/fleet_engine.h"

namespace gossamer::sparse_engine {
namespace {

constexpr Duration kLookEvery{100'000'000};
constexpr Duration kOthersTime{10'000'000'000};
constexpr Duration kRestTime{60'000'000'000};
// Others may compute, or move bytes, of which this member sees nothing. The coordinator gives all ten minutes
// to leave. What they hold must be saved in these, too.
constexpr Duration kRecoveryTime{420'000'000'000};
// Lines that move fewer bytes in kRestTime count as still.
constexpr std::uint64_t kLeastBytes = 65536;

// Whether the coordinator is heard. It would tell of the end.
bool is_led(cluster::MemberProcess& process, Instant now) {
  const auto heard = process.links()->statistics(process.member()->coordinator().node).last_heard;
  return heard && now - *heard < kOthersTime;
}

// A dead member does not take its part in the step, so the wait for a common one has an end.
Duration halt_time(const FleetLife& life) { return {kOthersTime.ns + 4 * life.step_took.ns}; }

// Whether bytes have come from others, or got to them, since this was asked last.
bool moves_bytes(FleetLife& life, const cluster::Member& member) {
  const std::uint64_t moved = member.moved_bytes();
  return moved >= std::exchange(life.moved_bytes, moved) + kLeastBytes;
}

}  // namespace

void note_recovery(FleetLife& life, Instant now) {
  if (!life.halt_by) return;
  life.rested = false;
  life.halt_by = now + halt_time(life);
}

void note_step(FleetLife& life, Instant now) {
  const Instant before = std::exchange(life.applied_at, now);
  if (before != Instant()) life.step_took = now - before;
  if (life.halt_by) life.halt_by = now + halt_time(life);
}

bool is_trained(const FleetLife& life) { return life.applied.value >= life.job->schedule.total_steps; }

bool has_to_deliver(const FleetLife& life) {
  return life.job != nullptr && life.job->deliver && life.part && is_trained(life) && !life.delivered;
}

bool has_to_save(const FleetLife& life) {
  if (life.job == nullptr || !life.job->checkpoints.save) return false;
  if (is_trained(life)) return false;
  return takes_steps(life) || (life.part && life.applied != life.job->start);
}

bool halts(const FleetLife& life) { return life.wishes.end() == life.applied || is_trained(life); }

bool saved_lasts(FleetLife& life, Instant now) {
  const auto& lasts = life.job->checkpoints.lasts;
  if (!lasts || lasts()) return true;
  life.look_again = now + kLookEvery;
  return false;
}

bool halt_anew(FleetLife& life, const std::optional<membership::StopAsked>& told, Instant now) {
  if (life.state != FleetState::kResting) return false;
  if (std::exchange(life.halted, false) && !told) return true;
  if (life.alone) return false;
  life.look_again.reset();
  life.rested = false;
  life.told_at = now;
  life.halt_by = now + halt_time(life);
  return false;
}

// The run is to end, or all members leave it. Members may be a step apart, so the wish goes with the next
// step.
void FleetEngine::stop(const std::string& reason, Instant now) {
  if (life_ != nullptr && stopping_ && (at_work() || life_->look_again || life_->saves_alone)) return;
  if (life_ == nullptr || !(has_to_save(*life_) || delivers()))
    return leave(FleetEvent::kStopped, reason, now);
  stopping_ = reason;
  if (!at_work()) return save_alone();
  life_->told_at = now;
  life_->halt_by = now + halt_time(*life_);
  if (halts(*life_)) go_on(now);  // another one has halted
}

// Another view may come for a member that rests, so it has more time. A recovery may take long, while a
// coordinator sees to it that nobody waits for the dead. Without one it goes on as long as this member
// computes or bytes move. Either way it ends before the patience of a member that hears no coordinator.
void FleetEngine::halt_late(Instant now) {
  life_->halt_by.reset();
  if (!lives() || life_->alone || (at_work() && life_->wishes.end() == life_->applied)) return;
  const bool recovers = life_->state == FleetState::kRecovering;
  const Instant latest = life_->told_at + kRecoveryTime;
  const bool moves = recovers && (moves_bytes(*life_, member()) || is_led(process(), now));
  if (!in_hand_.idle() || moves) life_->rested = false;
  const bool over = recovers ? now >= latest : at_work();
  if (over || std::exchange(life_->rested, true)) return advance(FleetEvent::kLostAtEnd, now);
  life_->halt_by = recovers ? std::min(latest, now + kRestTime) : now + kRestTime;
}

// Members come to rest a step apart. If all have given what the step under way needs, some have applied it,
// and all others can. If one has not given it, nobody has applied the step. So members that save at rest save
// the same step. True: that is computed now.
bool FleetEngine::end_last_step() {
  const auto item = life_->rounds->last_of(life_->applied);
  if (!item) return false;
  want_round(*item);
  return true;
}

// Whether the trained part is not delivered yet. A run that is trained has a result, also if it is told to
// end.
bool FleetEngine::delivers() const {
  return has_to_deliver(*life_) || in_hand_.task() == FleetTask::kDelivering;
}

// At rest no step is taken with which others could agree to halt. What this member holds may be all that
// there is, so it saves or delivers that and leaves.
void FleetEngine::save_alone() {
  life_->saves_alone = !in_hand_.idle() || end_last_step();
  if (life_->saves_alone) return;  // worked() comes back here
  life_->alone = true;
  life_->look_again = Instant();  // at once, or when it is saved
  if (has_to_deliver(*life_)) return deliver(Instant());
  if (life_->saved == life_->applied || !has_to_save(*life_)) return;
  life_->saved = life_->applied;
  want(FleetTask::kSaving, save_work(life_->bench, life_->applied, true));
}

std::string FleetEngine::why_it_ends() const { return stopping_.value_or("the run was stopped"); }

void FleetEngine::tick(Instant now) {
  if (life_ == nullptr) return;
  life_->questions.tick(now);
  if (!stopping_ && life_->wishes.end() && lives() && at_work()) {
    if (const auto liar = life_->wishes.staying(is_led(process(), now), now))
      return blame(liar->rank, liar->error, now);
  }
  if (life_->halt_by && *life_->halt_by <= now) return halt_late(now);
  if (!life_->look_again || *life_->look_again > now || (life_->alone && in_hand_.keeps())) return;
  life_->look_again.reset();
  if (!lives()) return;
  if (life_->halted) return leave(FleetEvent::kOthersSilent, why_it_ends(), now);
  if (!life_->alone) return go_on(now);
  if (saved_lasts(*life_, now)) leave(FleetEvent::kSaveLasts, why_it_ends(), now);
}

// Other members may still wait for bytes that this member has given them. They would be lost if it left now.
// So all tell each other when they have come so far, also those that save for others and were not told to
// leave. A member does not wait long for members that are dead.
void FleetEngine::halt(Instant now) {
  if (!saved_lasts(*life_, now) || std::exchange(life_->halted, true)) return;
  if (life_->others_halted) return leave(FleetEvent::kAllHalted, why_it_ends(), now);
  life_->look_again = now + halt_time(*life_);  // as long as others may need for the step
  tell_halted(now);
}

void FleetEngine::tell_halted(Instant now) {
  if (std::exchange(life_->told_halted, true)) return;
  exchange({.kind = ExchangeName::Kind::kHalted, .step = {}, .round = 0},
           {.kind = cluster::OperationKind::kAllGather,
            .parts = std::vector<std::uint64_t>(life_->layout->members.size(), 1),
            .from = {}},
           {Slice::of(std::string(1, '\0'))}, now);
}

// While a run ends, no member replaces a lost one. This member still waits until its own save lasts.
void FleetEngine::leave_once_saved(Instant now) {
  const bool saves = !life_->halted && (has_to_save(*life_) || delivers());
  if (!saves) return member().leave(why_it_ends(), now);
  save_alone();
}

void FleetEngine::deliver(Instant now) {
  if (std::exchange(life_->delivered, true)) return;
  if (!life_->job->deliver) return open_to_questions(now);
  want(FleetTask::kDelivering, delivery_work(life_->bench));
}

void FleetEngine::open_to_questions(Instant now) {
  if (!life_->job->answers || !at_work()) return;
  life_->questions.open(life_->installed, *life_->part, now);
  answer();
}

// The part does not change before a recovery, which forgets what answers need beside it.
void FleetEngine::answer() {
  if (!in_hand_.idle() || !at_work()) return;
  if (auto question = life_->questions.take())
    want(FleetTask::kAnswering, answer_work(life_->bench, std::move(question)));
}

}  // namespace gossamer::sparse_engine
