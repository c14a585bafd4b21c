// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine, what others may see of it.
#include <algorithm>

#include "engines/sparse/fleet/fleet_engine.h"

namespace gossamer::engine {

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
  const std::size_t left = life_->order->rounds_left();
  return TakenUp{.epoch = life_->installed,
                 .rank = life_->rank,
                 .layout = *life_->layout,
                 .plan = life_->plan,
                 .recovered = life_->recovered == life_->installed,
                 .lacks_no_more = left > 0 && left <= life_->job->microbatches,
                 .known_by_all = life_->copies.step,
                 .stored = stored ? life_->snapshot->step : life_->copies.step,
                 .all_kept = life_->copies.step > life_->job->start && all_kept()};
}

FleetLearner* FleetEngine::learner() const {
  if (!life_ || !life_->part || doing_ != Doing::kNothing) return nullptr;
  return life_->bench->learner.get();
}

}  // namespace gossamer::engine
