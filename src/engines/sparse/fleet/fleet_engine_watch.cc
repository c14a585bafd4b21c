// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine: what observers outside may see of it.
#include "engines/sparse/fleet/fleet_engine.h"

namespace gossamer::sparse_engine {
namespace {

std::optional<FleetTakenUp> taken_up_by(const FleetLife& life) {
  if (!life.layout) return std::nullopt;
  const FleetSnapshots& snapshots = life.snapshots;
  const StepNumber known = snapshots.known().step;
  return FleetTakenUp{.epoch = life.installed,
                      .rank = life.rank,
                      .layout = *life.layout,
                      .plan = life.plan,
                      .recovered = life.recovered == life.installed,
                      .lacks_no_more = life.rounds->has_given_all(life.applied),
                      .known_by_all = known,
                      .stored = snapshots.stored() ? snapshots.under_way()->step : known,
                      .all_kept = known > life.job->start && snapshots.all_kept(*life.layout)};
}

}  // namespace

std::optional<StepNumber> FleetEngine::step() const {
  return life_ != nullptr && life_->part ? std::optional(life_->applied) : std::nullopt;
}

std::optional<sparse::NetworkPart> FleetEngine::part() const {
  return life_ != nullptr ? life_->part : std::nullopt;
}

std::optional<FleetTakenUp> FleetEngine::taken_up() const {
  return life_ != nullptr ? taken_up_by(*life_) : std::nullopt;
}

FleetLearner* FleetEngine::learner() const {
  if (life_ == nullptr || !life_->part || !in_hand_.idle()) return nullptr;
  return life_->bench->learner.get();
}

}  // namespace gossamer::sparse_engine
