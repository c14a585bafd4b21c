// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine: what observers outside may see of it.
#include "engines/sparse/fleet/fleet_engine.h"

namespace gossamer::sparse_engine {

std::optional<StepNumber> FleetEngine::step() const {
  return life_ != nullptr && life_->part ? std::optional(life_->applied) : std::nullopt;
}

std::optional<sparse::NetworkPart> FleetEngine::part() const {
  return life_ != nullptr ? life_->part : std::nullopt;
}

std::optional<FleetTakenUp> FleetEngine::taken_up() const {
  if (life_ == nullptr || !life_->layout) return std::nullopt;
  const FleetSnapshots& snapshots = life_->snapshots;
  const StepNumber known = snapshots.known().step;
  return FleetTakenUp{.epoch = life_->installed,
                      .rank = life_->rank,
                      .layout = *life_->layout,
                      .plan = life_->plan,
                      .recovered = life_->recovered == life_->installed,
                      .lacks_no_more = life_->rounds->order().rounds_left() == 1,
                      .known_by_all = known,
                      .stored = snapshots.stored() ? snapshots.under_way()->step : known,
                      .all_kept = known > life_->job->start && snapshots.all_kept(*life_->layout)};
}

FleetLearner* FleetEngine::learner() const {
  if (life_ == nullptr || !life_->part || !in_hand_.idle()) return nullptr;
  return life_->bench->learner.get();
}

}  // namespace gossamer::sparse_engine
