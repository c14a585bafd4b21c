// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine: what observers outside may see of it.
#include <algorithm>
#include <utility>

#include "engines/sparse/fleet/fleet_engine.h"

namespace gossamer::sparse_engine {

bool FleetEngine::all_kept() const {
  for (std::size_t rank = 0; rank < life_->copies.kept.size(); ++rank) {
    if (!std::ranges::includes(life_->copies.kept[rank], life_->layout->members[rank].copies_after))
      return false;
  }
  return true;
}

std::optional<StepNumber> FleetEngine::step() const {
  if (!life_ || !life_->part) return std::nullopt;
  return life_->applied;
}

std::optional<sparse::NetworkPart> FleetEngine::part() const {
  if (!life_) return std::nullopt;
  return life_->part;
}

std::optional<FleetEngine::TakenUp> FleetEngine::taken_up() const {
  if (!life_ || !life_->layout) return std::nullopt;
  const bool stored = life_->snapshot && life_->snapshot->stored;
  return TakenUp{.epoch = life_->installed,
                 .rank = life_->rank,
                 .layout = *life_->layout,
                 .plan = life_->plan,
                 .recovered = life_->recovered == life_->installed,
                 .lacks_no_more = life_->order->rounds_left() == 1,
                 .known_by_all = life_->copies.step,
                 .stored = stored ? life_->snapshot->step : life_->copies.step,
                 .all_kept = life_->copies.step > life_->job->start && all_kept()};
}

FleetLearner* FleetEngine::learner() const {
  if (!life_ || !life_->part || doing_ != Doing::kNothing) return nullptr;
  return life_->bench->learner.get();
}

// Measures how fast this member is. Its work is its number of shards, as columns go with them. Steps beside a
// snapshot do not count. A snapshot takes CPU for a while, not the same at all members, and longest over slow
// lines. Parts that moved for that would need another snapshot.
void FleetEngine::measure(Instant now) {
  const ComputeTime part = life_->bench->learner->take_part_time();
  if (clock_ == nullptr || life_->job->one_machine) return;
  const Duration cpu = clock_->process_cpu();
  const Duration all_cpu = cpu - std::exchange(life_->cpu_before, cpu);
  const Duration whole = now - std::exchange(life_->measured_at, now);
  if (life_->snapshot) return;
  const auto shards = static_cast<double>(shards_of(*life_->part).size());
  process_.member()->measured({.work = shards,
                               .took = part.took,
                               .cpu = part.cpu,
                               .process_cpu = part.process_cpu,
                               .all_cpu = all_cpu,
                               .whole = whole},
                              now);
}

engine::SentBytes FleetEngine::sent() const {
  const net::Links& links = *process_.links();
  const std::uint64_t steps = links.sent_bytes(kStepChannel);
  return {.steps = steps, .background = links.sent_bytes() - steps};
}

// Tells the coordinator and the job. The cost of a recovery is known with the step after it.
void FleetEngine::tell_step(Instant now) {
  life_->recent.add(life_->bench->learner->loss(), sent());
  process_.member()->tell_steps(life_->recent.figures());
  const auto recovery = life_->watch.stepped(StepNumber(life_->applied.value - 1), now);
  if (!recovery || !life_->job->recovered) return;
  life_->upkeep.emplace_back([job = life_->job, recovery = *recovery](Bench&) { job->recovered(recovery); });
}

}  // namespace gossamer::sparse_engine
