// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine after the last step: it delivers its part, and then answers the lead's questions about it.
#include <memory>
#include <utility>

#include "engines/sparse/fleet/fleet_engine.h"

namespace gossamer::sparse_engine {

void FleetEngine::deliver(Instant now) {
  life_->delivered = true;
  if (!life_->job->deliver) return open_to_questions(now);
  const std::shared_ptr<Bench> bench = life_->bench;
  want(Doing::kDelivering,
       [bench, job = life_->job] { bench->delivered = job->deliver(bench->learner->network()); });
}

void FleetEngine::open_to_questions(Instant now) {
  if (!life_->job->answers || !life_->working) return;
  life_->questions.open(life_->installed, *life_->part, now);
  answer();
}

// The part does not change before a recovery, which forgets what answers need beside it.
void FleetEngine::answer() {
  if (doing_ != Doing::kNothing || !life_->working) return;
  auto question = life_->questions.take();
  if (question == nullptr) return;
  const std::shared_ptr<Bench> bench = life_->bench;
  want(Doing::kAnswering, [bench, job = life_->job, question = std::move(question)] {
    if (bench->answers == nullptr) {
      bench->answers =
          std::make_unique<PartAnswers>(PartAnswers::Options{.shape = job->shape,
                                                             .activation = job->learner.activation,
                                                             .kernels = job->kernels,
                                                             .compute = job->compute},
                                        bench->learner->network());
    }
    auto answered = LeadQuestions::answer(*bench->answers, *question);
    if (!answered.ok()) bench->taken = answered.error();
    if (answered.ok()) bench->answer = *std::move(answered);
  });
}

void FleetEngine::answered(Instant now) {
  if (life_->working) life_->questions.give(std::move(life_->bench->answer), now);
}

}  // namespace gossamer::sparse_engine
