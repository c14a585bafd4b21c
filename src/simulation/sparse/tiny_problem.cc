// SPDX-License-Identifier: Apache-2.0
#include "simulation/sparse/tiny_problem.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "engines/sparse/fleet/step/fleet_learner.h"
#include "engines/sparse/fleet/step/step_order.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/predict/predictor.h"
#include "engines/sparse/train/step_source.h"
#include "host/api/durable_directories.h"
#include "host/sim/compute.h"
#include "learn/data/batch_copy.h"
#include "learn/sparse/learner.h"
#include "learn/sparse/negatives/hash_negatives.h"
#include "learn/sparse/test_random_problem.h"

namespace gossamer::simulation {
namespace {

class RandomSteps final : public sparse_engine::StepSource {
 public:
  RandomSteps(const sparse_engine::FleetShape& shape, const TinyProblem::Options& options)
      : shape_{.network = shape.network,
               .samples = options.samples,
               .features_each = options.features_each,
               .labels_each = options.labels_each,
               .unlabelled = true} {}
  [[nodiscard]] data::Batch read(StepNumber step) override {
    batch_ = sparse::random_batch(shape_, 100 + step.value);
    return batch_.view();
  }

 private:
  const sparse::ProblemShape shape_;
  sparse::OwnedBatch batch_;
};

// Notes what members tell of a step that they have applied. A fenced member may tell it late.
void note_found(const sparse_engine::FleetStep& step, const sparse::RowOrder& order, AppliedFound& found) {
  sparse::FoundRows labels = *step.found;
  for (std::uint32_t& row : labels.rows) row = order.label_of(row);
  const auto [place, first] = found.steps.try_emplace(step.step, step.epoch, labels);
  AppliedFound::Found& known = place->second;
  if (step.epoch == known.epoch && (labels.rows != known.labels.rows || labels.count != known.labels.count))
    found.disputed.insert(step.step);
  if (step.epoch > known.epoch) known = {.epoch = step.epoch, .labels = std::move(labels)};
}

constexpr std::string_view kCheckpoints = "/checkpoints";
constexpr sparse::TableMoments kMoments{.embedding = sparse::Moments::kBlock,
                                        .output = sparse::Moments::kElement};

// How a member keeps checkpoints: it writes at once what it holds.
sparse_engine::FleetCheckpoints checkpoints_of(const TinyProblem::Options& options,
                                               const sparse_engine::CheckpointedRun& run,
                                               const sparse_engine::FleetShape& shape, NodeId node) {
  if (options.disk == nullptr) return {};
  return {.every_steps = options.checkpoint_every,
          .every = options.checkpoint_time,
          .save =
              [disk = options.disk, run, shape, node](StepNumber step, sparse::Network& part) {
                // A disk that fails costs the checkpoint.
                static_cast<void>(
                    sparse_engine::PartCopy(shape, run.moments, part)
                        .write(*disk, std::string(kCheckpoints), node,
                               {.next_step = step, .run_id = "tiny", .config_fingerprint = run.fingerprint}));
              },
          .lasts = options.lasts};
}

// With own sets no correction: one sample's own set says nothing about the rows that others may score.
sparse::LogQ logq_of(const TinyProblem::Options& options) {
  const bool own = options.hashed && options.hashed->sets == sparse::HashSets::kOwn;
  return own ? sparse::LogQ::kNone : sparse::LogQ::kExact;
}

data::InMemoryDataset random_test_records(const sparse_engine::FleetShape& shape, std::size_t records) {
  const auto features = static_cast<std::uint32_t>(shape.network.features);
  const auto labels = static_cast<std::uint32_t>(shape.network.labels);
  data::InMemoryDataset set({.features = features, .labels = labels});
  const sparse::OwnedBatch batch =
      sparse::random_batch({.network = shape.network, .samples = records, .unlabelled = true}, 99);
  const data::Batch view = batch.view();
  for (std::size_t i = 0; i < records; ++i)
    set.add({.features = view.features.row(i), .labels = view.labels.row(i)});
  return set;
}

// A job, with the objects that it borrows.
struct OwnedJob {
  OwnedJob(const sparse_engine::FleetShape& shape, const TinyProblem::Options& options,
           const sparse::LabelCounts& counts, std::uint64_t seed)
      : order(counts.count, shape.shard_shift),
        labels(sparse::by_row(counts, order)),
        samples(shape, options),
        steps(samples, order),
        compute({.workers = 1 + static_cast<int>(seed % 3), .seed = seed}),
        job{.shape = shape,
            .order = order,
            .moments = kMoments,
            .init = {.embedding_stddev = 0.5F, .output_stddev = 0.5F, .seed = 6},
            .learner = {.batch_max = options.samples,
                        .dropout = 0.3,
                        .negatives = {.kind = sparse::Negatives::kUniform, .sampled = options.sampled},
                        .logq = logq_of(options),
                        .element = kernels::Element::kF32},
            .hashed = options.hashed,
            .schedule = {.peak = 0.01, .warmup_steps = 5, .total_steps = options.steps},
            .snapshot_every = options.snapshot_every,
            .codec = options.codec,
            .exchange = options.exchange,
            .staleness = options.staleness,
            .labels = labels,
            .steps = steps,
            .kernels = kernels::kernels_for(options.isa),
            .compute = compute,
            .stepped =
                [this, fresh = options.fresh, found = options.found](const sparse_engine::FleetStep& step) {
                  if (fresh != nullptr && step.fresh) fresh->insert(step.step);
                  if (found != nullptr && step.found != nullptr) note_found(step, order, *found);
                },
            .recovered = options.recovered,
            .answers = options.test_records > 0,
            .defect = options.defect,
            .probes = options.probes} {}

  sparse::RowOrder order;
  sparse::LabelCounts labels;
  RandomSteps samples;
  sparse_engine::RowSteps steps;
  host::SimCompute compute;
  sparse_engine::FleetJob job;
};

}  // namespace

TinyProblem::TinyProblem(Options options)
    : options_(std::move(options)),
      shape_{.network = {.features = options_.features,
                         .labels = options_.labels,
                         .hidden = options_.hidden,
                         .dense = options_.dense},
             .shard_shift = options_.shard_shift},
      labels_(sparse::random_counts(options_.labels, 5)),
      test_records_(random_test_records(shape_, options_.test_records)) {
  if (options_.disk == nullptr) return;
  CHECK(host::make_durable_directories(*options_.disk, std::string(kCheckpoints)).ok());
  const auto nobody = [](std::string_view, EventFields) {};
  const auto newest = sparse_engine::FleetCheckpoint::open_newest(
      *options_.disk, std::string(kCheckpoints), run(), sparse_engine::FleetCheckpoint::Verify::kAll, nobody);
  CHECK(newest.ok(), newest.error().message());
  if (newest->has_value()) start_ = (*newest)->step();
}

sparse_engine::CheckpointedRun TinyProblem::run() const {
  return {.network = shape_.network, .moments = kMoments, .fingerprint = "tiny"};
}

std::shared_ptr<const sparse_engine::FleetJob> TinyProblem::make_job(std::uint64_t seed, NodeId node,
                                                                     Falsify falsify) const {
  auto owned = std::make_shared<OwnedJob>(shape_, options_, labels_, seed);
  sparse_engine::FleetJob* const job = &owned->job;
  job->checkpoints = checkpoints_of(options_, run(), shape_, node);
  job->start = start_;
  if (options_.delivered) {
    job->deliver = [delivered = options_.delivered, node](sparse::Network&) -> Result<void> {
      delivered(node);
      return {};
    };
  }
  job->falsify = std::move(falsify);
  if (start_ > StepNumber()) {
    job->restore = [disk = options_.disk, run = run(), count = labels_.count,
                    step = start_](sparse::Network& part) -> Result<void> {
      const auto nobody = [](std::string_view, EventFields) {};
      const auto from =
          sparse_engine::FleetCheckpoint::open(*disk, std::string(kCheckpoints), run, step, nobody);
      return from.ok() ? from->restore(part, count, nobody) : from.error();
    };
  }
  return {std::move(owned), job};
}

std::vector<std::uint32_t> TinyProblem::ranks_alone(sparse::Network network) const {
  const auto job = make_job();
  sparse_engine::Model model;
  network.drop_moments();
  sparse::order_by_label(network);
  model.network = std::move(network);
  auto predictor = sparse_engine::Predictor::create(model, job->kernels, job->compute,
                                                    {.parts = sparse_engine::kNetAlone});
  CHECK(predictor.ok());
  std::vector<std::uint32_t> ranks;
  sparse_engine::PredictionBlock out;
  for (std::uint64_t i = 0; i < test_records_.size(); ++i) {
    const data::Record record = test_records_.record(RecordIndex{i});
    const std::vector<std::uint32_t> begin = {0, static_cast<std::uint32_t>(record.features.index.size())};
    CHECK((*predictor)
              ->predict({begin, record.features.index, record.features.value},
                        sparse_engine::kEvaluationDepth, out)
              .ok());
    for (const std::uint32_t label : record.labels) {
      const auto at = std::ranges::find(out.row(0), label, &sparse_engine::Scored::id);
      ranks.push_back(at == out.row(0).end() ? 0 : static_cast<std::uint32_t>(at - out.row(0).begin()) + 1);
    }
  }
  return ranks;
}

namespace {

// A step in flight of one process that holds everything.
struct Alone {
  std::unique_ptr<sparse::Learner> learner;
  data::BatchCopy batch = {};
  sparse::FoundRows found = {};
};

void recall(const sparse_engine::FleetJob& job, const AppliedFound* found, StepNumber step, Alone& alone) {
  if (found == nullptr || !found->steps.contains(step)) return;
  alone.found = found->steps.at(step).labels;
  for (std::uint32_t& row : alone.found.rows) row = job.order.row_of(row);
  alone.learner->recall(alone.found);
}

void compute_alone(const sparse_engine::FleetJob& job, Alone& alone,
                   const sparse_engine::StepOrder::Item& item, const AppliedFound* found) {
  sparse::Learner& learner = *alone.learner;
  using Kind = sparse_engine::FleetRound::Kind;
  const sparse_engine::FleetRound round = sparse_engine::step_rounds(job.shape.layers())[item.round];
  switch (round.kind) {
    case Kind::kHidden:
      if (round.layer > 0) return learner.deepen(round.layer - 1);
      alone.batch.take(job.steps.read(item.step));
      learner.others_changed();
      learner.begin(alone.batch.view(), item.step, {.learning_rate = job.schedule.learning_rate(item.step)});
      recall(job, found, item.step, alone);
      return learner.embed();
    case Kind::kShares: return learner.score();
    case Kind::kGradient:
      if (round.layer + 1 < job.shape.layers()) return learner.descend(round.layer);
      return learner.normalise(learner.state().shares.span());
    case Kind::kFinish: (void)learner.finish(); return;
  }
}

constexpr float kNudge = 3e-7F;

void nudge_weights(sparse::RowTable& rows, Rng& rng) {
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    for (float& weight : std::span(rows.weights(row), rows.width()))
      weight *= 1 + kNudge * (2 * rng.uniform() - 1);
  }
}

}  // namespace

sparse::Network TinyProblem::train_alone(const std::set<StepNumber>& fresh, const AppliedFound* found,
                                         std::optional<std::uint64_t> nudge) const {
  const auto job = make_job();
  auto network = sparse_engine::initial_network(*job, sparse::whole(shape_.network));
  if (nudge) {
    Rng rng(*nudge, Purpose::kTest);
    nudge_weights(network->embedding, rng);
    for (sparse::DenseLayer& layer : network->dense) nudge_weights(layer.weights, rng);
    nudge_weights(network->output, rng);
  }
  std::optional<sparse::HashNegatives> hashed;
  if (job->hashed && found == nullptr) {
    hashed.emplace(
        sparse::HashNegatives::Parts{.network = *network, .kernels = job->kernels, .compute = job->compute},
        *job->hashed);
  }
  std::vector<Alone> steps;
  for (std::size_t i = 0; i <= job->staleness; ++i) {
    steps.push_back({.learner = std::make_unique<sparse::Learner>(
                         sparse::Learner::Parts{.network = *network,
                                                .labels = job->labels,
                                                .kernels = job->kernels,
                                                .compute = job->compute,
                                                .hashed = hashed ? &*hashed : nullptr},
                         job->learner)});
  }
  sparse_engine::StepOrder order(sparse_engine::step_rounds(shape_.layers()).size(), job->staleness);
  while (true) {
    const StepNumber next = order.next_step();
    const bool waits = next.value % options_.snapshot_every == 0 || fresh.contains(next);
    const auto item = order.next(next.value < options_.steps && (!waits || order.idle()));
    if (!item) return std::move(*network);
    compute_alone(*job, steps[item->step.value % steps.size()], *item, found);
    order.computed(*item);
  }
}

}  // namespace gossamer::simulation
