// SPDX-License-Identifier: Apache-2.0
//
// StepTimes: on what the time of a step was spent. Without a clock it reads none, and all times are zero.
//
//   times.begin();                                  // of the step
//   times.of(w).timer.start(); work(); times.of(w).timer.lap(times.of(w).phases.embed);
//   LearnerPhases phases = times.phases();
//   times.add_waiting(phases);                      // at its end
//
// Owner: the learner. Thread rule: of() concurrently, each worker its own; the rest alone.
#pragma once

#include <vector>

#include "host/api/clock.h"
#include "learn/sparse/phase_timer.h"

namespace gossamer::sparse {

// Milliseconds, mean over workers; all zero without a clock. `waiting` is the rest of the step's wall time:
// barriers and uneven work.
struct LearnerPhases {
  double select = 0;     // active rows and feature lists
  double embed = 0;      // embedding bag, activation, dropout
  double find = 0;       // upkeep of the hash tables, and questions to them
  double positives = 0;  // scores of the samples' own labels
  double forward = 0;    // pass 1 over the output rows
  double reduce = 0;     // partition sums, loss, gradient through the activation
  double weights = 0;    // pass 2 over the output rows, with their update
  double dense = 0;      // dense layers: forward, backward, update
  double embedding = 0;  // gradients and updates of the embedding rows
  double waiting = 0;

  [[nodiscard]] double total() const {
    return select + embed + find + positives + forward + reduce + weights + dense + embedding + waiting;
  }
  LearnerPhases& operator+=(const LearnerPhases& other);
};

class StepTimes {
 public:
  // One worker's part of a step.
  struct alignas(64) Worker {
    explicit Worker(const host::Clock* clock) : timer(clock) {}
    PhaseTimer timer;
    LearnerPhases phases;
  };

  // The clock may be null. Requires workers >= 1.
  StepTimes(const host::Clock* clock, int workers);

  // Starts the wall time, and forgets the step before.
  void begin();
  // What was done since begin() was upkeep of the hash tables.
  void end_upkeep();
  [[nodiscard]] Worker& of(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  // All but the waiting.
  [[nodiscard]] LearnerPhases phases() const;
  // Sets the waiting: what `phases` leaves of the wall time since begin().
  void add_waiting(LearnerPhases& phases);

 private:
  std::vector<Worker> workers_;
  double upkeep_ms_ = 0;
  PhaseTimer wall_;
};

}  // namespace gossamer::sparse
