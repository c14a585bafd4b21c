// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine after the last step: it delivers its part, and then measures the network together with the
// others.
#include <memory>
#include <utility>
#include <vector>

#include "engines/sparse/fleet/fleet_engine.h"

namespace gossamer::sparse_engine {

void FleetEngine::deliver() {
  if (!life_->job->deliver) return evaluate();
  const std::shared_ptr<Bench> bench = life_->bench;
  want(Doing::kDelivering,
       [bench, job = life_->job] { bench->delivered = job->deliver(bench->learner->network()); });
}

// Computes for the next exchange. In a new layout all members begin anew. They lose nothing, as the
// evaluation changes no state.
void FleetEngine::evaluate() {
  if (!life_->job->test || !life_->working) return;
  const bool first = !life_->evaluating;
  if (first) life_->evaluating = 0;
  std::vector<sparse::NetworkPart> parts;
  for (const LayoutMember& one : life_->layout->members) parts.push_back(one.after);
  const std::shared_ptr<Bench> bench = life_->bench;
  want(Doing::kEvaluating, [bench, job = life_->job, parts = std::move(parts), rank = life_->rank, first,
                            exchange = *life_->evaluating] {
    if (first) {
      bench->evaluation.reset();  // so that there is one in memory, not two
      bench->evaluation = std::make_unique<FleetEvaluation>(*job, bench->learner->network(), parts, rank);
      bench->got.clear();
    }
    FleetEvaluation& evaluation = *bench->evaluation;
    bench->give(evaluation.round(exchange, bench->got));
    if (!bench->taken.ok() || exchange < evaluation.exchanges()) return;
    if (job->test->tested) bench->delivered = job->test->tested(evaluation.ranks());
    bench->evaluation.reset();
  });
}

void FleetEngine::evaluation_computed(Instant now) {
  const FleetEvaluation* const evaluation = life_->bench->evaluation.get();
  const bool done = evaluation == nullptr;
  if (done || !life_->working) return;
  exchange(evaluation->operation(*life_->evaluating), kEvaluation + *life_->evaluating, now);
}

}  // namespace gossamer::sparse_engine
