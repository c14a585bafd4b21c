// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/learner.h"

#include <algorithm>

#include "base/check.h"
#include "learn/sparse/phase_timer.h"

namespace gossamer::sparse {
namespace {

// Ranges of samples start at multiples of this, so that packing blocks and cache lines have one writer.
constexpr std::size_t kSampleBlock = kernels::kLanes;
// How many rows ahead of the update the next ones are fetched.
constexpr std::size_t kUpdateAhead = 4;

std::vector<std::size_t> layer_strides(const Network& network) {
  std::vector<std::size_t> strides = {network.embedding.stride()};
  for (const std::size_t units : network.shape.dense) strides.push_back(row_stride(units));
  return strides;
}

HiddenOptions hidden_options(const LearnerOptions& options) {
  return {.activation = options.activation, .dropout = options.dropout, .seed = options.seed};
}

}  // namespace

// One worker's share of a step.
struct alignas(64) Learner::Worker {
  Worker(Ownership ownership, std::size_t stride, const host::Clock* clock)
      : active(ownership), features(ownership), gradient(stride), timer(clock) {}

  ActiveSet active;
  InvertedLists features;
  AlignedArray<float> gradient;  // of one embedding row
  PhaseTimer timer;
  LearnerPhases phases;
};

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

Learner::Learner(const Parts& parts, const LearnerOptions& options)
    : parts_(parts),
      options_(options),
      sampler_(options.negatives, parts.labels),
      logq_(options.logq, sampler_, parts.labels.records),
      optimizer_(options.optimizer),
      state_(kernels::padded_to_panel(options.batch_max), layer_strides(parts.network)),
      samples_({.network = parts.network, .labels = parts.labels, .logq = logq_, .kernels = parts.kernels},
               hidden_options(options)),
      dense_({.network = parts.network, .optimizer = optimizer_, .kernels = parts.kernels},
             hidden_options(options), {.padded = state_.padded, .workers = parts.compute.workers()}) {
  CHECK(options.batch_max >= 1, options.batch_max);
  // One sample's own set says nothing about what others may score.
  CHECK(parts.hashed == nullptr || parts.hashed->sets() == HashSets::kShared || options.logq == LogQ::kNone);
  CHECK(parts.network.embedding.has_moments() && parts.network.output.has_moments());
  CHECK(parts.labels.count.size() == parts.network.shape.labels, parts.labels.count.size(),
        parts.network.shape.labels);
  const int workers = parts.compute.workers();
  softmax_ =
      make_panel_softmax({.network = parts.network,
                          .labels = parts.labels,
                          .logq = logq_,
                          .optimizer = optimizer_,
                          .hashed = parts.hashed},
                         {.element = options.element.value_or(kernels::preferred_element(parts.kernels.isa)),
                          .shape = {.hidden = state_.last().stride, .batch = state_.padded},
                          .workers = workers},
                         parts.kernels);
  for (int worker = 0; worker < workers; ++worker) {
    workers_.emplace_back(Ownership{.worker = static_cast<std::uint32_t>(worker),
                                    .workers = static_cast<std::uint32_t>(workers)},
                          state_.first().stride, parts.clock);
    parts_of_hidden_gradient_.push_back(
        {.sums = softmax_->sums(worker), .hidden_gradient = softmax_->hidden_gradient(worker)});
  }
}

Learner::~Learner() = default;

host::Range Learner::samples_of(int worker) const {
  const host::Range blocks =
      host::worker_range(state_.padded / kSampleBlock, worker, parts_.compute.workers());
  return {blocks.begin * kSampleBlock, blocks.end * kSampleBlock};
}

void Learner::select(Worker& worker, const data::Batch& batch, StepNumber step) const {
  worker.active.build(batch.labels);
  Rng rng(options_.seed, Purpose::kNegatives, step.value);
  sampler_.draw_all(rng, [&](std::uint32_t label) { worker.active.add(label); });
  if (finding_) add_found(worker, batch);
  worker.features.build(batch.features);
}

void Learner::add_found(Worker& worker, const data::Batch& batch) const {
  const HashNegatives& hashed = *parts_.hashed;
  const std::size_t asking = hashed.asking(batch.size());
  for (std::size_t sample = 0; sample < asking; ++sample) {
    if (hashed.sets() == HashSets::kOwn) {
      for (const std::uint32_t label : hashed.found(sample)) {
        worker.active.add_finder(label, static_cast<std::uint32_t>(sample));
      }
      continue;
    }
    for (const std::uint32_t label : hashed.found(sample)) worker.active.add_certain(label);
    if (!logq_.own_labels_certain()) continue;
    for (const std::uint32_t label : batch.labels.row(sample)) worker.active.add_certain(label);
  }
  if (hashed.sets() == HashSets::kOwn) worker.active.end_finders();
}

// Every hidden layer of some samples.
void Learner::embed(Worker& worker, const data::Batch& batch, StepNumber step, host::Range samples) {
  samples_.embed(batch, step, samples, state_);
  worker.timer.lap(worker.phases.embed);
  dense_.forward(step, samples, state_);
  worker.timer.lap(worker.phases.dense);
}

// h of all samples, then the labels that the first ones find by it.
void Learner::find_negatives(const data::Batch& batch, StepNumber step) {
  host::Compute& compute = parts_.compute;
  compute.run([&](int w) {
    Worker& worker = workers_[static_cast<std::size_t>(w)];
    worker.timer.start();
    embed(worker, batch, step, samples_of(w));
  });
  compute.run([&](int w) {
    Worker& worker = workers_[static_cast<std::size_t>(w)];
    worker.timer.start();
    const host::Range asking = host::worker_range(parts_.hashed->asking(batch.size()), w, compute.workers());
    for (std::size_t sample = asking.begin; sample < asking.end; ++sample) {
      parts_.hashed->find(w, state_, step, sample);
    }
    worker.timer.lap(worker.phases.find);
  });
}

void Learner::update_embedding(Worker& worker) const {
  RowTable& table = parts_.network.embedding;
  const LayerState& layer = state_.first();
  const std::span<const std::uint32_t> features = worker.features.ids();
  for (std::size_t slot = 0; slot < features.size(); ++slot) {
    if (slot + kUpdateAhead < features.size()) prefetch_row(table, features[slot + kUpdateAhead]);
    const auto samples = worker.features.samples(slot);
    parts_.kernels.weighted_sum({.out = worker.gradient.data(),
                                 .table = layer.dh.data(),
                                 .stride = layer.stride,
                                 .indices = samples.data(),
                                 .values = worker.features.values(slot).data(),
                                 .count = samples.size(),
                                 .width = layer.stride});
    optimizer_.update(parts_.kernels, table, features[slot], worker.gradient.data());
  }
}

void Learner::run_phases(const data::Batch& batch, StepNumber step) {
  host::Compute& compute = parts_.compute;
  const auto worker_of = [this](int w) -> Worker& { return workers_[static_cast<std::size_t>(w)]; };
  for (Worker& worker : workers_) worker.phases = {};
  if (finding_) find_negatives(batch, step);
  compute.run([&](int w) {
    Worker& worker = worker_of(w);
    worker.timer.start();
    select(worker, batch, step);
    worker.timer.lap(worker.phases.select);
    if (!finding_) embed(worker, batch, step, samples_of(w));
    softmax_->pack_hidden(state_, samples_of(w));
    worker.timer.lap(worker.phases.embed);
    samples_.score_positives(batch, samples_of(w), state_);
    worker.timer.lap(worker.phases.positives);
  });
  compute.run([&](int w) {
    Worker& worker = worker_of(w);
    worker.timer.start();
    softmax_->forward(w, worker.active, state_);
    worker.timer.lap(worker.phases.forward);
  });
  compute.run([&](int w) {
    Worker& worker = worker_of(w);
    worker.timer.start();
    samples_.reduce(parts_of_hidden_gradient_, samples_of(w), state_);
    softmax_->pack_scaled_hidden(state_, samples_of(w));
    worker.timer.lap(worker.phases.reduce);
    dense_.backward(samples_of(w), state_);
    worker.timer.lap(worker.phases.dense);
  });
  compute.run([&](int w) {
    Worker& worker = worker_of(w);
    worker.timer.start();
    softmax_->backward(w, worker.active, state_);
    worker.timer.lap(worker.phases.weights);
    dense_.update(w, state_);
    worker.timer.lap(worker.phases.dense);
    update_embedding(worker);
    worker.timer.lap(worker.phases.embedding);
  });
}

StepReport Learner::report() const {
  StepReport report;
  for (std::size_t sample = 0; sample < state_.samples; ++sample) {
    report.loss += state_.loss[sample];
    report.labelled_samples += state_.target[sample] > 0 ? 1 : 0;
  }
  report.loss /= static_cast<double>(state_.samples);
  for (const Worker& worker : workers_) {
    report.active_rows += worker.active.size();
    report.unique_features += worker.features.size();
    report.phases += worker.phases;
  }
  return report;
}

StepReport Learner::step(const data::Batch& batch, StepNumber step, const StepSchedule& schedule) {
  CHECK(batch.size() >= 1 && batch.size() <= options_.batch_max, batch.size(), options_.batch_max);
  CHECK(batch.labels.rows() == batch.size(), batch.labels.rows(), batch.size());
  const std::uint64_t bytes_before = bytes();
  PhaseTimer timer(parts_.clock);
  timer.start();
  state_.samples = batch.size();
  optimizer_.begin_step(step, schedule.learning_rate);
  finding_ = parts_.hashed != nullptr && parts_.hashed->begun(step);
  logq_.set_batch(batch.size(), finding_ ? parts_.hashed->asking(batch.size()) : 0);
  double upkeep = 0;
  if (finding_) parts_.hashed->prepare(step);
  timer.lap(upkeep);
  run_phases(batch, step);
  StepReport result = report();
  result.grew = bytes() != bytes_before;
  const double workers = static_cast<double>(workers_.size());
  LearnerPhases& p = result.phases;
  for (double* phase : {&p.select, &p.embed, &p.find, &p.positives, &p.forward, &p.reduce, &p.weights,
                        &p.dense, &p.embedding}) {
    *phase /= workers;
  }
  double wall = upkeep;
  timer.lap(wall);
  p.find += upkeep;
  p.waiting = std::max(0.0, wall - p.total());
  return result;
}

std::uint64_t Learner::bytes() const {
  std::uint64_t total = state_.bytes() + softmax_->bytes() + dense_.bytes();
  for (const Worker& worker : workers_) total += worker.active.bytes() + worker.features.bytes();
  return total;
}

}  // namespace gossamer::sparse
