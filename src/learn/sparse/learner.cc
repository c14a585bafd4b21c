// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/learner.h"

#include <utility>

#include "base/check.h"

namespace gossamer::sparse {
namespace {

// Ranges of samples start at multiples of this, so that each packing block and each cache line has one
// writer.
constexpr std::size_t kSampleBlock = kernels::kLanes;

std::vector<LayerColumns> layer_columns(const Network& network) {
  std::vector<LayerColumns> columns = {
      {.stride = row_stride(network.shape.hidden), .own = network.part.columns}};
  for (std::size_t i = 0; i < network.shape.dense.size(); ++i) {
    columns.push_back({.stride = row_stride(network.shape.dense[i]), .own = network.part.units[i]});
  }
  return columns;
}

HiddenOptions hidden_options(const LearnerOptions& options) {
  return {.activation = options.activation, .dropout = options.dropout, .seed = options.seed};
}

}  // namespace

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
      embedding_({.network = parts.network, .optimizer = optimizer_, .kernels = parts.kernels},
                 {.stride = state_.first().stride, .own = state_.first().own},
                 {.padded = state_.padded, .workers = parts.compute.workers()}),
      rows_({.network = parts.network, .sampler = sampler_, .logq = logq_}, options.seed,
            parts.compute.workers()),
      times_(parts.clock, parts.compute.workers()) {
  CHECK(options.batch_max >= 1, options.batch_max);
  // A sample's own set says nothing about what the other samples may score.
  CHECK(parts.hashed == nullptr || parts.hashed->found().sets == HashSets::kShared ||
        options.logq == LogQ::kNone);
  CHECK(parts.network.embedding.has_moments() && parts.network.output.has_moments());
  CHECK(parts.labels.count.size() == parts.network.shape.labels, parts.labels.count.size(),
        parts.network.shape.labels);
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
    parts_of_hidden_gradient_.push_back(
        {.sums = softmax_->sums(worker), .hidden_gradient = softmax_->hidden_gradient(worker)});
  }
}

host::Range Learner::samples_of(int worker) const {
  const host::Range blocks =
      host::worker_range(state_.padded / kSampleBlock, worker, parts_.compute.workers());
  return {blocks.begin * kSampleBlock, blocks.end * kSampleBlock};
}

template <class Task>
void Learner::run(Task&& task) {
  parts_.compute.run([&](int w) {
    Worker& worker = times_.of(w);
    worker.timer.start();
    task(w, worker);
  });
}

void Learner::select(int number, Worker& worker) {
  rows_.select(number, batch_, step_);
  worker.timer.lap(worker.phases.select);
}

void Learner::begin(const data::Batch& batch, StepNumber step, const StepSchedule& schedule,
                    Company company) {
  CHECK(batch.size() >= 1 && batch.size() <= options_.batch_max, batch.size(), options_.batch_max);
  CHECK(batch.labels.rows() == batch.size(), batch.labels.rows(), batch.size());
  batch_ = batch;
  alone_ = company == Company::kAlone;
  step_ = step;
  bytes_before_ = bytes();
  times_.begin();
  embedded_ = std::exchange(embedded_ahead_, std::nullopt) == step;
  if (embedded_) {
    std::swap(state_.first().y, ahead_->y);
    std::swap(state_.first().h, ahead_->h);
    std::swap(state_.first().kept, ahead_->kept);
  }
  state_.samples = batch.size();
  listed_ = false;
  optimizer_.begin_step(step, schedule.learning_rate);
  const bool asking = parts_.hashed != nullptr && parts_.hashed->begun(step);
  rows_.begin(asking ? &parts_.hashed->found() : nullptr);
  if (asking) parts_.hashed->prepare(step);
  times_.end_upkeep();
}

void Learner::recall(const FoundRows& found) { rows_.recall(found); }

void Learner::embed() {
  logq_.set_batch(batch_.size(), rows_.askers(batch_.size()));
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
  run([&](int w, Worker& worker) {
    // Without output rows there are none to score or to update.
    if (!rows_.asking() && rows_.holds_rows()) select(w, worker);
    // Without columns there is no embedding to update.
    if (state_.first().own.begin < state_.first().own.end) rows_.list_features(w, batch_);
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
    const host::Range asking = host::worker_range(rows_.askers(batch_.size()), w, parts_.compute.workers());
    for (std::size_t sample = asking.begin; sample < asking.end; ++sample) {
      parts_.hashed->find(w, state_, step_, sample);
    }
    worker.timer.lap(worker.phases.find);
  });
}

void Learner::score() {
  list();
  if (rows_.asking()) find_negatives();
  run([&](int w, Worker& worker) {
    if (rows_.asking()) select(w, worker);
    softmax_->pack_hidden(state_, samples_of(w));
    worker.timer.lap(worker.phases.embed);
    samples_.score_positives(batch_, samples_of(w), state_);
    worker.timer.lap(worker.phases.positives);
  });
  SamplePhases::fill_shifts(state_);
  run([&](int w, Worker& worker) {
    softmax_->forward(w, rows_.active(w), state_);
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
  if (alone_ && !embedding_.gathers()) return;
  run([&](int w, Worker& worker) {
    if (!alone_) samples_.through_activation(0, samples_of(w), state_);
    embedding_.gather(state_.first(), samples_of(w));
    worker.timer.lap(worker.phases.reduce);
  });
}

void Learner::update_rows(int number, Worker& worker) {
  softmax_->backward(number, rows_.active(number), state_);
  worker.timer.lap(worker.phases.weights);
  dense_.update(number, state_);
  worker.timer.lap(worker.phases.dense);
}

void Learner::update_embedding(int number, Worker& worker) {
  embedding_.update(number, rows_.features(number), state_.first());
  worker.timer.lap(worker.phases.embedding);
}

StepReport Learner::finish() {
  complete_gradient();
  run([&](int w, Worker& worker) {
    update_rows(w, worker);
    update_embedding(w, worker);
  });
  StepReport result = report();
  times_.add_waiting(result.phases);
  return result;
}

void Learner::finish_columns() {
  complete_gradient();
  run([&](int w, Worker& worker) { update_embedding(w, worker); });
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
  report.active_rows = rows_.active_rows();
  report.unique_features = rows_.unique_features();
  report.phases = times_.phases();
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
      state_.bytes() + embedding_.bytes() + softmax_->bytes() + dense_.bytes() + rows_.bytes();
  for (const RowScores& scores : scores_) total += scores.bytes();
  if (ahead_) total += ahead_->bytes();
  return total;
}

}  // namespace gossamer::sparse
