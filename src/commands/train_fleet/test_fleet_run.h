// SPDX-License-Identifier: Apache-2.0
//
// What tests of this folder do instead of a fleet: they prepare its run, and train it in this process. Not
// part of the product. Thread rule: one thread.
#pragma once

#include <utility>

#include "commands/train/sparse_training.h"
#include "commands/train_fleet/member_job.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/fleet/step/fleet_learner.h"
#include "learn/sparse/learner.h"

namespace gossamer::commands::testing {

inline FleetRun fleet_run(const run::RunPaths& paths, const sparse_engine::TrainInputs& inputs) {
  return {.directory = paths.root,
          .id = inputs.run_id,
          .config = inputs.config,
          .recipe = inputs.recipe,
          .features = inputs.schema.features(),
          .labels = inputs.schema.labels()};
}

// All steps of a job, with all parts of the network.
inline sparse::Network train_alone(const sparse_engine::FleetJob& job) {
  auto network = sparse_engine::initial_network(job, sparse::whole(job.shape.network, job.shape.shard_shift));
  sparse::Learner learner(
      {.network = *network, .labels = job.labels, .kernels = job.kernels, .compute = job.compute},
      job.learner);
  for (StepNumber step; step.value < job.schedule.total_steps; ++step)
    learner.step(job.steps.read(step), step, {.learning_rate = job.schedule.learning_rate(step)});
  return std::move(*network);
}

// A runner of nobody's: a test says what it does instead of steps.
class TestRunner : public StepRunner {
 public:
  [[nodiscard]] std::uint64_t nodes() const override { return 1; }
  [[nodiscard]] std::uint64_t memory_needed(const sparse_engine::TrainConfig&, const sparse_engine::Recipe&,
                                            const sparse_engine::DataShape&) const override {
    return 0;
  }
  [[nodiscard]] StepsCost cost() const override { return {}; }
};

}  // namespace gossamer::commands::testing
