// SPDX-License-Identifier: Apache-2.0
#include "simulation/sparse/tiny_problem.h"

#include <utility>

#include "engines/sparse/fleet/fleet_learner.h"
#include "engines/sparse/step_source.h"
#include "host/sim/compute.h"
#include "learn/sparse/learner.h"
#include "learn/sparse/random_problem.h"

namespace gossamer::simulation {
namespace {

class RandomSteps final : public engine::StepSource {
 public:
  RandomSteps(const engine::FleetShape& shape, std::size_t samples)
      : shape_{.network = shape.network,
               .samples = samples,
               .features_each = 6,
               .labels_each = 4,
               .unlabelled = true} {}
  [[nodiscard]] data::Batch read(StepNumber step) override {
    batch_ = sparse::random_batch(shape_, 100 + step.value);
    return batch_.view();
  }

 private:
  const sparse::ProblemShape shape_;
  sparse::OwnedBatch batch_;
};

// A job and what it borrows.
struct OwnedJob {
  OwnedJob(const engine::FleetShape& shape, const TinyProblem::Options& options,
           const sparse::LabelCounts& counts, std::uint64_t seed)
      : order(counts.count, shape.shard_shift),
        labels(sparse::by_row(counts, order)),
        samples(shape, options.samples),
        steps(samples, order),
        compute({.workers = 1 + static_cast<int>(seed % 3), .seed = seed}),
        job{.shape = shape,
            .order = order,
            .moments = {.embedding = sparse::Moments::kBlock, .output = sparse::Moments::kElement},
            .init = {.embedding_stddev = 0.5F, .output_stddev = 0.5F, .seed = 6},
            .learner = {.batch_max = options.samples,
                        .dropout = 0.3,
                        .negatives = {.kind = sparse::Negatives::kUniform, .sampled = options.sampled},
                        .logq = sparse::LogQ::kExact,
                        .element = kernels::Element::kF32},
            .schedule = {.peak = 0.01, .warmup_steps = 5, .total_steps = options.steps},
            .snapshot_every = options.snapshot_every,
            .codec = options.codec,
            .labels = labels,
            .steps = steps,
            .kernels = kernels::kernels_for(kernels::best_isa()),
            .compute = compute,
            .defect = options.defect,
            .probes = options.probes} {}

  sparse::RowOrder order;
  sparse::LabelCounts labels;
  RandomSteps samples;
  engine::RowSteps steps;
  host::SimCompute compute;
  engine::FleetJob job;
};

}  // namespace

TinyProblem::TinyProblem(Options options)
    : options_(std::move(options)),
      shape_{.network = {.features = options_.features,
                         .labels = options_.labels,
                         .hidden = options_.hidden,
                         .dense = options_.dense},
             .shard_shift = options_.shard_shift},
      labels_(sparse::random_counts(options_.labels, 5)) {}

std::shared_ptr<const engine::FleetJob> TinyProblem::make_job(std::uint64_t seed) const {
  auto owned = std::make_shared<OwnedJob>(shape_, options_, labels_, seed);
  const engine::FleetJob* const job = &owned->job;
  return {std::move(owned), job};
}

sparse::Network TinyProblem::train_alone() const {
  const auto job = make_job();
  auto network = engine::initial_network(*job, sparse::whole(shape_.network));
  sparse::Learner learner(
      {.network = *network, .labels = job->labels, .kernels = job->kernels, .compute = job->compute},
      job->learner);
  for (StepNumber step; step.value < options_.steps; ++step)
    learner.step(job->steps.read(step), step, {.learning_rate = job->schedule.learning_rate(step)});
  return std::move(*network);
}

}  // namespace gossamer::simulation
