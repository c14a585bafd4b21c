// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/sparse_fleet.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "engines/sparse/step_source.h"
#include "host/sim/compute.h"
#include "learn/sparse/network_pieces.h"

namespace gossamer::engine {
namespace {

constexpr unsigned kShardShift = 2;

sparse::ProblemShape problem_shape(const FleetShape& shape, std::size_t samples) {
  return {
      .network = shape.network, .samples = samples, .features_each = 6, .labels_each = 4, .unlabelled = true};
}

class RandomSteps final : public StepSource {
 public:
  RandomSteps(const FleetShape& shape, std::size_t samples) : shape_(problem_shape(shape, samples)) {}
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
  OwnedJob(const FleetShape& shape, const ProblemOptions& options, const sparse::LabelCounts& counts,
           std::uint64_t seed)
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
                        .negatives = {.kind = sparse::Negatives::kUniform, .sampled = 10},
                        .logq = sparse::LogQ::kExact,
                        .element = kernels::Element::kF32},
            .schedule = {.peak = 0.01, .warmup_steps = 5, .total_steps = options.steps},
            .snapshot_every = options.snapshot_every,
            .codec = options.codec,
            .labels = labels,
            .steps = steps,
            .kernels = kernels::kernels_for(kernels::best_isa()),
            .compute = compute} {}

  sparse::RowOrder order;
  sparse::LabelCounts labels;
  RandomSteps samples;
  RowSteps steps;
  host::SimCompute compute;
  FleetJob job;
};

void add(const sparse::RowTable& got, std::size_t row, const sparse::RowTable& want, std::size_t of,
         std::size_t column, double& difference, double& length) {
  for (std::size_t i = 0; i < got.width(); ++i) {
    const double w = want.weights(of)[column + i];
    const double d = got.weights(row)[i] - w;
    difference += d * d;
    length += w * w;
  }
}

}  // namespace

TinyProblem::TinyProblem(std::vector<std::size_t> dense, std::uint64_t steps, net::Codec codec)
    : TinyProblem({.dense = std::move(dense), .steps = steps, .codec = codec}) {}

TinyProblem::TinyProblem(const ProblemOptions& options)
    : options_(options),
      shape_{.network = {.features = 60, .labels = 150, .hidden = options.hidden, .dense = options.dense},
             .shard_shift = kShardShift},
      labels_(sparse::random_counts(150, 5)) {}

std::shared_ptr<const FleetJob> TinyProblem::make_job(std::uint64_t seed) const {
  auto owned = std::make_shared<OwnedJob>(shape_, options_, labels_, seed);
  const FleetJob* const job = &owned->job;
  return {std::move(owned), job};
}

sparse::Network TinyProblem::train_alone() const {
  const auto job = make_job();
  auto network = initial_network(*job, sparse::whole(shape_.network));
  sparse::Learner learner(
      {.network = *network, .labels = job->labels, .kernels = job->kernels, .compute = job->compute},
      job->learner);
  for (StepNumber step; step.value < options_.steps; ++step)
    learner.step(job->steps.read(step), step, {.learning_rate = job->schedule.learning_rate(step)});
  return std::move(*network);
}

SparseFleet::SparseFleet(const TinyProblem& problem, const Options& options)
    : problem_(problem),
      options_(options),
      workload_(problem.shape(), {.copies = options.copies}),
      fleet_({.workload = workload_,
              .configuration = "tiny",
              .tracks = workload_.tracks(),
              .first_members = options.first_members,
              .seed = options.seed}) {
  for (std::size_t i = 0; i < options.first_members; ++i) join();
}

std::string SparseFleet::join() {
  const std::uint64_t seed = ++joined_;
  return fleet_.join({.driver = options_.driver,
                      .longest_work = options_.longest_work,
                      .make_engine = [this, seed](cluster::MemberProcess& process) {
                        return std::make_unique<FleetEngine>(
                            process,
                            [this, seed](const std::string&) -> Result<std::shared_ptr<const FleetJob>> {
                              return problem_.make_job(seed);
                            });
                      }});
}

FleetEngine& SparseFleet::engine(const std::string& machine) {
  return static_cast<FleetEngine&>(fleet_.member(machine).engine());
}

bool SparseFleet::holds_nothing(const std::string& machine) {
  const auto part = engine(machine).part();
  return !part || pieces_of(problem_.shape(), *part).empty();
}

std::optional<StepNumber> SparseFleet::step() {
  std::optional<StepNumber> least;
  for (const auto& [machine, member] : fleet_.members()) {
    const auto step = engine(machine).step();
    if (step && (!least || *step < *least)) least = step;
  }
  return least;
}

bool SparseFleet::done() {
  std::set<std::size_t> shards;
  for (const auto& [machine, member] : fleet_.members()) {
    FleetLearner* const learner = engine(machine).learner();
    if (learner == nullptr) continue;
    if (learner->applied().value != problem_.steps()) return false;
    shards.merge(shards_of(learner->network().part));
  }
  return shards.size() == problem_.shape().shards();
}

double SparseFleet::distance_to(const sparse::Network& network) {
  double difference = 0;
  double length = 0;
  std::size_t columns = 0;
  for (const auto& [machine, member] : fleet_.members()) {
    FleetLearner* const learner = engine(machine).learner();
    if (learner == nullptr) continue;
    const sparse::Network& part = learner->network();
    for (std::size_t row = 0; row < part.embedding.rows(); ++row)
      add(part.embedding, row, network.embedding, row, part.part.columns.begin, difference, length);
    columns += part.part.columns.end - part.part.columns.begin;
    for (std::size_t i = 0; i < part.dense.size(); ++i) {
      for (std::size_t unit = 0; unit < part.dense[i].weights.rows(); ++unit)
        add(part.dense[i].weights, unit, network.dense[i].weights, part.part.units[i].begin + unit, 0,
            difference, length);
    }
    for (std::uint32_t row = 0; row < part.output.rows(); ++row) {
      if (part.part.rows.contains(row)) add(part.output, row, network.output, row, 0, difference, length);
    }
  }
  CHECK(columns == problem_.shape().width(0), columns);
  return std::sqrt(difference / length);
}

}  // namespace gossamer::engine
