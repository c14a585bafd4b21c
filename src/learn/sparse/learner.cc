// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/learner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "learn/sparse/phase_timer.h"

namespace gossamer::sparse {
namespace {

// Ranges of samples start at multiples of this, so that each packing block and each cache line has one
// writer.
constexpr std::size_t kSampleBlock = kernels::kLanes;
// The number of rows by which the next ones are fetched ahead of the update.
constexpr std::size_t kUpdateAhead = 4;

std::vector<LayerColumns> layer_columns(const Network& network) {
  std::vector<LayerColumns> columns = {
      {.stride = row_stride(network.shape.hidden), .own = network.part.columns}};
  for (std::size_t i = 0; i < network.shape.dense.size(); ++i) {
    columns.push_back({.stride = row_stride(network.shape.dense[i]), .own = network.part.units[i]});
  }
  return columns;
}

std::uint64_t rows_of(const HeldRows& held) {
  std::uint64_t rows = 0;
  for (std::size_t shard = 0; shard < held.shards(); ++shard) {
    if (held.holds(shard)) rows += held.rows_of(shard).end - held.rows_of(shard).begin;
  }
  return rows;
}

HiddenOptions hidden_options(const LearnerOptions& options) {
  return {.activation = options.activation, .dropout = options.dropout, .seed = options.seed};
}

}  // namespace

// One worker's part of a step.
struct alignas(64) Learner::Worker {
  struct Owned {
    Ownership rows;
    Ownership features;
  };
  Worker(const Owned& owned, std::size_t stride, const host::Clock* clock)
      : active(owned.rows), features(owned.features), gradient(stride), timer(clock) {}

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
      sampler_(options.negatives, parts.labels, parts.network.order),
      logq_(options.logq, sampler_, parts.labels.records),
      optimizer_(options.optimizer),
      state_(kernels::padded_to_panel(options.batch_max), layer_columns(parts.network)),
      samples_({.network = parts.network, .labels = parts.labels, .logq = logq_, .kernels = parts.kernels},
               hidden_options(options)),
      dense_({.network = parts.network, .optimizer = optimizer_, .kernels = parts.kernels},
             hidden_options(options), {.padded = state_.padded, .workers = parts.compute.workers()}),
      holds_rows_(rows_of(parts.network.part.rows) > 0),
      timer_(parts.clock) {
  CHECK(options.batch_max >= 1, options.batch_max);
  // A sample's own set says nothing about what the other samples may score.
  CHECK(parts.hashed == nullptr || parts.hashed->found().sets == HashSets::kShared ||
        options.logq == LogQ::kNone);
  CHECK(parts.network.embedding.has_moments() && parts.network.output.has_moments());
  CHECK(parts.labels.count.size() == parts.network.shape.labels, parts.labels.count.size(),
        parts.network.shape.labels);
  const LayerState& first = state_.first();
  if (const std::size_t width = first.own.end - first.own.begin; width < first.stride) {
    own_gradient_ = AlignedArray<float>(state_.padded * width);
  }
  const int workers = parts.compute.workers();
  if (options.keep_scores) scores_.resize(static_cast<std::size_t>(workers));
  softmax_ =
      make_panel_softmax({.network = parts.network,
                          .labels = parts.labels,
                          .logq = logq_,
                          .optimizer = optimizer_,
                          .hashed = parts.hashed,
                          .scores = options.keep_scores ? &scores_ : nullptr},
                         {.element = options.element.value_or(kernels::preferred_element(parts.kernels.isa)),
                          .shape = {.hidden = state_.last().stride, .batch = state_.padded},
                          .workers = workers},
                         parts.kernels);
  for (int worker = 0; worker < workers; ++worker) {
    const Ownership features = {.worker = static_cast<std::uint32_t>(worker),
                                .workers = static_cast<std::uint32_t>(workers)};
    Ownership rows = features;
    rows.held = &parts.network.part.rows;
    workers_.emplace_back(Worker::Owned{.rows = rows, .features = features}, parts.network.embedding.stride(),
                          parts.clock);
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

template <class Task>
void Learner::run(Task&& task) {
  parts_.compute.run([&](int w) {
    Worker& worker = workers_[static_cast<std::size_t>(w)];
    worker.timer.start();
    task(w, worker);
  });
}

void Learner::select(Worker& worker) const {
  worker.active.build(batch_.labels);
  Rng rng(options_.seed, Purpose::kNegatives, step_.value);
  sampler_.draw_all(rng, [&](std::uint32_t label) { worker.active.add(label); });
  if (found_ != nullptr) add_found(worker);
  worker.timer.lap(worker.phases.select);
}

void Learner::add_found(Worker& worker) const {
  const std::size_t asking = found_->asking(batch_.size());
  for (std::size_t sample = 0; sample < asking; ++sample) {
    if (found_->sets == HashSets::kOwn) {
      for (const std::uint32_t label : found_->of(sample)) {
        worker.active.add_finder(label, static_cast<std::uint32_t>(sample));
      }
      continue;
    }
    for (const std::uint32_t label : found_->of(sample)) worker.active.add_certain(label);
    if (!logq_.own_labels_certain()) continue;
    for (const std::uint32_t label : batch_.labels.row(sample)) worker.active.add_certain(label);
  }
  if (found_->sets == HashSets::kOwn) worker.active.end_finders();
}

void Learner::gather_own_gradient(host::Range samples) {
  const LayerState& layer = state_.first();
  const std::size_t width = layer.own.end - layer.own.begin;
  if (own_gradient_.size() == 0) return;
  for (std::size_t sample = samples.begin; sample < samples.end; ++sample) {
    std::copy_n(layer.dh.data() + sample * layer.stride + layer.own.begin, width,
                own_gradient_.data() + sample * width);
  }
}

void Learner::update_embedding(Worker& worker) const {
  RowTable& table = parts_.network.embedding;
  const LayerState& layer = state_.first();
  const std::size_t width = layer.own.end - layer.own.begin;
  if (width == 0) return;
  const std::span<const float> gradient = own_gradient_.size() > 0 ? own_gradient_.span() : layer.dh.span();
  const std::span<const std::uint32_t> features = worker.features.ids();
  for (std::size_t slot = 0; slot < features.size(); ++slot) {
    if (slot + kUpdateAhead < features.size()) prefetch_row(table, features[slot + kUpdateAhead]);
    const auto samples = worker.features.samples(slot);
    parts_.kernels.weighted_sum({.out = worker.gradient.data(),
                                 .table = gradient.data(),
                                 .stride = width,
                                 .indices = samples.data(),
                                 .values = worker.features.values(slot).data(),
                                 .count = samples.size(),
                                 .width = width});
    optimizer_.update(parts_.kernels, table, features[slot], worker.gradient.data());
  }
}

void Learner::begin(const data::Batch& batch, StepNumber step, const StepSchedule& schedule,
                    Company company) {
  CHECK(batch.size() >= 1 && batch.size() <= options_.batch_max, batch.size(), options_.batch_max);
  CHECK(batch.labels.rows() == batch.size(), batch.labels.rows(), batch.size());
  batch_ = batch;
  alone_ = company == Company::kAlone;
  step_ = step;
  bytes_before_ = bytes();
  timer_.start();
  for (Worker& worker : workers_) worker.phases = {};
  embedded_ = std::exchange(embedded_ahead_, std::nullopt) == step;
  if (embedded_) {
    std::swap(state_.first().y, ahead_->y);
    std::swap(state_.first().h, ahead_->h);
    std::swap(state_.first().kept, ahead_->kept);
  }
  state_.samples = batch.size();
  listed_ = false;
  optimizer_.begin_step(step, schedule.learning_rate);
  asking_ = parts_.hashed != nullptr && parts_.hashed->begun(step);
  found_ = asking_ ? &parts_.hashed->found() : nullptr;
  if (asking_) parts_.hashed->prepare(step);
  upkeep_ms_ = 0;
  timer_.lap(upkeep_ms_);
}

void Learner::recall(const FoundRows& found) {
  asking_ = false;
  found_ = &found;
}

void Learner::embed() {
  logq_.set_batch(batch_.size(), found_ == nullptr ? 0 : found_->asking(batch_.size()));
  run([&](int w, Worker& worker) {
    if (dense_changed_) dense_.read_weights(w);
    if (embedded_)
      samples_.set_targets(batch_, samples_of(w), state_);
    else
      samples_.embed(batch_, step_, samples_of(w), state_);
    worker.timer.lap(worker.phases.embed);
  });
  dense_changed_ = false;
}

void Learner::embed_ahead(const data::Batch& batch, StepNumber step) {
  if (!ahead_)
    ahead_.emplace(state_.padded, LayerColumns{.stride = state_.first().stride, .own = state_.first().own});
  run([&](int w, Worker& worker) {
    samples_.embed(batch, step, samples_of(w), *ahead_);
    worker.timer.lap(worker.phases.embed);
  });
  embedded_ahead_ = step;
}

void Learner::list() {
  if (listed_) return;
  listed_ = true;
  run([&](int, Worker& worker) {
    // Without output rows there are none to score or to update.
    if (!asking_ && holds_rows_) select(worker);
    // Without columns there is no embedding to update.
    if (state_.first().own.begin < state_.first().own.end)
      worker.features.build(batch_.features, parts_.network.shape.features);
    worker.timer.lap(worker.phases.select);
  });
}

void Learner::deepen(std::size_t layer) {
  run([&](int w, Worker& worker) {
    dense_.forward(layer, step_, samples_of(w), state_);
    worker.timer.lap(worker.phases.dense);
  });
}

// The labels that the first samples find by their last h.
void Learner::find_negatives() {
  run([&](int w, Worker& worker) {
    const host::Range asking = host::worker_range(found_->asking(batch_.size()), w, parts_.compute.workers());
    for (std::size_t sample = asking.begin; sample < asking.end; ++sample) {
      parts_.hashed->find(w, state_, step_, sample);
    }
    worker.timer.lap(worker.phases.find);
  });
}

std::uint64_t Learner::most_scores() const {
  std::uint64_t most = 0;
  if (!asking_) {
    for (const Worker& worker : workers_) most += worker.active.size() * batch_.size();
    return most;
  }
  CHECK(found_->sets == HashSets::kOwn, static_cast<int>(found_->sets));
  const HeldRows& held = parts_.network.part.rows;
  const std::uint64_t rows = rows_of(held);
  const std::size_t asking = found_->asking(batch_.size());
  for (std::size_t sample = 0; sample < batch_.size(); ++sample) {
    const auto labels = std::ranges::count_if(batch_.labels.row(sample),
                                              [&](std::uint32_t label) { return held.contains(label); });
    const std::uint64_t found = sample < asking ? found_->limit : 0;
    // A label that is the sample's own and was found too is scored once.
    most += std::min(rows, static_cast<std::uint64_t>(labels) + found);
  }
  return most;
}

void Learner::score() {
  list();
  if (asking_) find_negatives();
  run([&](int w, Worker& worker) {
    if (asking_) select(worker);
    softmax_->pack_hidden(state_, samples_of(w));
    worker.timer.lap(worker.phases.embed);
    samples_.score_positives(batch_, samples_of(w), state_);
    worker.timer.lap(worker.phases.positives);
  });
  SamplePhases::fill_shifts(state_);
  run([&](int w, Worker& worker) {
    softmax_->forward(w, worker.active, state_);
    worker.timer.lap(worker.phases.forward);
  });
  SamplePhases::add_shares(parts_of_hidden_gradient_, state_);
}

void Learner::normalise(std::span<const PartitionShare> sums) {
  run([&](int w, Worker& worker) {
    samples_.normalise(sums, parts_of_hidden_gradient_, samples_of(w), state_);
    softmax_->pack_scaled_hidden(state_, samples_of(w));
    if (alone_) samples_.through_activation(state_.layers.size() - 1, samples_of(w), state_);
    worker.timer.lap(worker.phases.reduce);
  });
}

void Learner::descend(std::size_t layer) {
  run([&](int w, Worker& worker) {
    if (!alone_) samples_.through_activation(layer + 1, samples_of(w), state_);
    dense_.backward(layer, samples_of(w), state_);
    if (alone_) samples_.through_activation(layer, samples_of(w), state_);
    worker.timer.lap(worker.phases.dense);
  });
}

void Learner::complete_gradient() {
  list();
  if (alone_ && own_gradient_.size() == 0) return;
  run([&](int w, Worker& worker) {
    if (!alone_) samples_.through_activation(0, samples_of(w), state_);
    gather_own_gradient(samples_of(w));
    worker.timer.lap(worker.phases.reduce);
  });
}

void Learner::update_rows(int number, Worker& worker) {
  softmax_->backward(number, worker.active, state_);
  worker.timer.lap(worker.phases.weights);
  dense_.update(number, state_);
  worker.timer.lap(worker.phases.dense);
}

StepReport Learner::finish() {
  complete_gradient();
  run([&](int w, Worker& worker) {
    update_rows(w, worker);
    update_embedding(worker);
    worker.timer.lap(worker.phases.embedding);
  });
  StepReport result = report();
  double wall = upkeep_ms_;
  timer_.lap(wall);
  result.phases.waiting = std::max(0.0, wall - result.phases.total());
  return result;
}

void Learner::finish_columns() {
  complete_gradient();
  run([&](int, Worker& worker) {
    update_embedding(worker);
    worker.timer.lap(worker.phases.embedding);
  });
}

void Learner::finish_rows() {
  run([&](int w, Worker& worker) { update_rows(w, worker); });
}

double Learner::loss() const {
  double loss = 0;
  for (std::size_t sample = 0; sample < state_.samples; ++sample) loss += state_.loss[sample];
  return loss / static_cast<double>(state_.samples);
}

StepReport Learner::report() const {
  StepReport report;
  report.loss = loss();
  for (std::size_t sample = 0; sample < state_.samples; ++sample)
    report.labelled_samples += state_.target[sample] > 0 ? 1 : 0;
  report.grew = bytes() != bytes_before_;
  for (const Worker& worker : workers_) {
    report.active_rows += worker.active.size();
    report.unique_features += worker.features.size();
    report.phases += worker.phases;
  }
  LearnerPhases& p = report.phases;
  for (double* phase : {&p.select, &p.embed, &p.find, &p.positives, &p.forward, &p.reduce, &p.weights,
                        &p.dense, &p.embedding}) {
    *phase /= static_cast<double>(workers_.size());
  }
  p.find += upkeep_ms_;
  return report;
}

StepReport Learner::step(const data::Batch& batch, StepNumber step, const StepSchedule& schedule) {
  begin(batch, step, schedule);
  embed();
  const std::size_t deep = parts_.network.dense.size();
  for (std::size_t layer = 0; layer < deep; ++layer) deepen(layer);
  score();
  normalise(state_.shares.span());
  for (std::size_t layer = deep; layer-- > 0;) descend(layer);
  return finish();
}

std::uint64_t Learner::bytes() const {
  std::uint64_t total =
      state_.bytes() + sizeof(float) * own_gradient_.size() + softmax_->bytes() + dense_.bytes();
  for (const Worker& worker : workers_) total += worker.active.bytes() + worker.features.bytes();
  for (const RowScores& scores : scores_) total += scores.bytes();
  if (ahead_) total += ahead_->bytes();
  return total;
}

}  // namespace gossamer::sparse
