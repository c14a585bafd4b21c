// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/step_times.h"

#include <algorithm>

namespace gossamer::sparse {

LearnerPhases& LearnerPhases::operator+=(const LearnerPhases& other) {
  select += other.select;
  embed += other.embed;
  find += other.find;
  positives += other.positives;
  forward += other.forward;
  reduce += other.reduce;
  weights += other.weights;
  dense += other.dense;
  embedding += other.embedding;
  waiting += other.waiting;
  return *this;
}

StepTimes::StepTimes(const host::Clock* clock, int workers) : wall_(clock) {
  for (int worker = 0; worker < workers; ++worker) workers_.emplace_back(clock);
}

void StepTimes::begin() {
  wall_.start();
  for (Worker& worker : workers_) worker.phases = {};
}

void StepTimes::end_upkeep() {
  upkeep_ms_ = 0;
  wall_.lap(upkeep_ms_);
}

LearnerPhases StepTimes::phases() const {
  LearnerPhases p;
  for (const Worker& worker : workers_) p += worker.phases;
  for (double* phase : {&p.select, &p.embed, &p.find, &p.positives, &p.forward, &p.reduce, &p.weights,
                        &p.dense, &p.embedding}) {
    *phase /= static_cast<double>(workers_.size());
  }
  p.find += upkeep_ms_;
  return p;
}

void StepTimes::add_waiting(LearnerPhases& phases) {
  double wall = upkeep_ms_;
  wall_.lap(wall);
  phases.waiting = std::max(0.0, wall - phases.total());
}

}  // namespace gossamer::sparse
