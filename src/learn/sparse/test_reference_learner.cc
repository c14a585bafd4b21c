// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/test_reference_learner.h"

#include <algorithm>
#include <cmath>

namespace gossamer::sparse {
namespace {

void append_rows(const RowTable& table, std::vector<double>& out) {
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t i = 0; i < table.width(); ++i) out.push_back(static_cast<double>(table.weights(row)[i]));
  }
}

double activate(kernels::Activation activation, double z) {
  switch (activation) {
    case kernels::Activation::kRelu: return std::max(z, 0.0);
    case kernels::Activation::kIdentity: return z;
    case kernels::Activation::kTanh: return std::tanh(z);
  }
  return z;
}

}  // namespace

Parameters parameters_of(Network& network) {
  Parameters p;
  append_rows(network.embedding, p.embedding);
  append_rows(network.output, p.output);
  for (const float b : network.bias.span()) p.bias.push_back(static_cast<double>(b));
  for (const DenseLayer& layer : network.dense) {
    append_rows(layer.weights, p.dense.emplace_back());
    const auto units = layer.bias.span().first(layer.weights.rows());
    p.dense_bias.emplace_back(units.begin(), units.end());
  }
  return p;
}

std::set<std::uint32_t> ReferenceLearner::active_set(const data::Batch& batch, StepNumber step) const {
  std::set<std::uint32_t> active(batch.labels.label.begin(), batch.labels.label.end());
  const NegativeSampler sampler(options_.negatives, counts_);
  Rng rng(options_.seed, Purpose::kNegatives, step.value);
  sampler.draw_all(rng, [&](std::uint32_t label) { active.insert(label); });
  for (const auto& labels : found) active.insert(labels.begin(), labels.end());
  return active;
}

void ReferenceLearner::activate(StepNumber step, HiddenRow row, std::vector<double>& h) const {
  const DropoutMask mask({.dropout = options_.dropout, .seed = options_.seed});
  std::vector<std::uint8_t> kept(row_stride(h.size()), 1);
  if (mask.active()) mask.draw(step, row, 0, kept);
  for (std::size_t i = 0; i < h.size(); ++i) {
    h[i] =
        gossamer::sparse::activate(options_.activation, h[i]) * kept[i] * static_cast<double>(mask.scale());
  }
}

std::vector<double> ReferenceLearner::hidden(const data::Batch& batch, StepNumber step,
                                             std::size_t sample) const {
  std::vector<double> h(shape_.hidden);
  const data::SparseRow row = batch.features.row(sample);
  for (std::size_t k = 0; k < row.index.size(); ++k) {
    for (std::size_t i = 0; i < shape_.hidden; ++i) {
      h[i] += static_cast<double>(row.value[k]) * now.embedding[row.index[k] * shape_.hidden + i];
    }
  }
  activate(step, {.layer = 0, .sample = sample}, h);
  for (std::size_t layer = 0; layer < now.dense.size(); ++layer) {
    std::vector<double> z = now.dense_bias[layer];
    for (std::size_t unit = 0; unit < z.size(); ++unit) {
      for (std::size_t i = 0; i < h.size(); ++i) z[unit] += now.dense[layer][unit * h.size() + i] * h[i];
    }
    activate(step, {.layer = layer + 1, .sample = sample}, z);
    h = std::move(z);
  }
  return h;
}

bool ReferenceLearner::is_found(std::uint32_t label) const {
  return std::ranges::any_of(found,
                             [label](const auto& rows) { return std::ranges::count(rows, label) > 0; });
}

double ReferenceLearner::correction(const data::Batch& batch, std::size_t sample, std::uint32_t label) const {
  const double share =
      std::max(1.0, static_cast<double>(counts_.count[label])) / static_cast<double>(counts_.records);
  const double drawn = NegativeSampler(options_.negatives, counts_).chance(counts_.count[label]);
  const auto b = static_cast<double>(batch.size());
  const auto has = [&](std::size_t other) {
    return other < batch.size() && std::ranges::binary_search(batch.labels.row(other), label);
  };
  if (options_.logq == LogQ::kNone) return 0;
  if (options_.logq == LogQ::kAll) {
    if (is_found(label) && !has(sample)) return 0;
    return -std::log(1 - std::exp(-b * share) * (1 - drawn));
  }
  bool certain = has(sample) || is_found(label);
  for (std::size_t asking = 0; asking < found.size(); ++asking) certain = certain || has(asking);
  if (sample < found.size()) certain = certain || has(found.size());
  const double others = b - 1 - static_cast<double>(found.size());
  return certain ? 0 : -std::log(1 - std::pow(1 - share, others) * (1 - drawn));
}

double ReferenceLearner::score(const std::vector<double>& h, std::uint32_t label) const {
  double score = now.bias[label];
  for (std::size_t i = 0; i < h.size(); ++i) score += h[i] * now.output[label * h.size() + i];
  return score;
}

bool ReferenceLearner::scores(const data::Batch& batch, std::size_t sample, std::uint32_t label) const {
  if (found.empty() || sets == HashSets::kShared) return true;
  return std::ranges::binary_search(batch.labels.row(sample), label) ||
         (sample < found.size() && std::ranges::count(found[sample], label) > 0);
}

double ReferenceLearner::partition(const data::Batch& batch, StepNumber step, std::size_t sample,
                                   const std::set<std::uint32_t>& active) const {
  const std::vector<double> h = hidden(batch, step, sample);
  double z = 0;
  for (const std::uint32_t label : active) {
    if (scores(batch, sample, label)) z += std::exp(score(h, label) + correction(batch, sample, label));
  }
  return z;
}

double ReferenceLearner::loss_over(const data::Batch& batch, StepNumber step,
                                   const std::set<std::uint32_t>& active) const {
  double total = 0;
  for (std::size_t sample = 0; sample < batch.size(); ++sample) {
    const auto own = batch.labels.row(sample);
    if (own.empty()) continue;
    const std::vector<double> h = hidden(batch, step, sample);
    double positives = 0;
    for (const std::uint32_t label : own) positives += score(h, label) + correction(batch, sample, label);
    total += std::log(partition(batch, step, sample, active)) - positives / static_cast<double>(own.size());
  }
  return total / static_cast<double>(batch.size());
}

Parameters ReferenceLearner::gradient(const data::Batch& batch, StepNumber step) {
  constexpr double kStep = 1e-5;
  const std::set<std::uint32_t> active = active_set(batch, step);
  Parameters result = now;
  const auto to = result.all();
  const auto parameters = now.all();
  for (std::size_t tensor = 0; tensor < parameters.size(); ++tensor) {
    for (std::size_t i = 0; i < parameters[tensor]->size(); ++i) {
      double& w = (*parameters[tensor])[i];
      const double before = w;
      w = before + kStep;
      const double above = loss_over(batch, step, active);
      w = before - kStep;
      const double below = loss_over(batch, step, active);
      w = before;
      (*to[tensor])[i] = (above - below) / (2 * kStep);
    }
  }
  return result;
}

void ReferenceLearner::adam(double& w, Moments& moments, double gradient, std::uint64_t skipped) const {
  const OptimizerOptions& o = options_.optimizer;
  const double bias1 = 1 - std::pow(o.beta1, t_);
  const double bias2 = 1 - std::pow(o.beta2, t_);
  const auto move = [&] {
    w -= learning_rate_ * (moments.m / bias1) / (std::sqrt(moments.v / bias2) + o.epsilon);
  };
  for (std::uint64_t i = 0; i < skipped && o.skipped != SkippedSteps::kHold; ++i) {
    moments.m *= o.beta1;
    moments.v *= o.beta2;
    if (o.skipped == SkippedSteps::kDecayAndMove) move();
  }
  moments.m = o.beta1 * moments.m + (1 - o.beta1) * gradient;
  moments.v = o.beta2 * moments.v + (1 - o.beta2) * gradient * gradient;
  move();
}

void ReferenceLearner::update_dense(const Parameters& gradient) {
  const std::size_t layers = now.dense.size();
  dense_moments_.resize(2 * layers);
  const auto update = [this](std::vector<double>& w, const std::vector<double>& g,
                             std::vector<Moments>& moments) {
    moments.resize(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) adam(w[i], moments[i], g[i], 0);
  };
  for (std::size_t i = 0; i < layers; ++i) {
    update(now.dense[i], gradient.dense[i], dense_moments_[i]);
    update(now.dense_bias[i], gradient.dense_bias[i], dense_moments_[layers + i]);
  }
}

void ReferenceLearner::step(const data::Batch& batch, StepNumber step, double learning_rate) {
  Parameters g = gradient(batch, step);
  t_ = static_cast<double>(step.value) + 1;
  learning_rate_ = learning_rate;
  embedding_moments_.resize(now.embedding.size());
  output_moments_.resize(now.output.size());
  bias_moments_.resize(now.bias.size());
  embedding_last_.resize(shape_.features);
  output_last_.resize(shape_.labels);
  const auto skipped = [&](std::uint64_t& last) {
    const std::uint64_t between = last == 0 ? 0 : step.value + 1 - last - 1;
    last = step.value + 1;
    return between;
  };
  update_dense(g);
  const std::size_t last = shape_.last_hidden();
  for (const std::uint32_t label : active_set(batch, step)) {
    const std::uint64_t k = skipped(output_last_[label]);
    for (std::size_t i = label * last; i < (label + 1) * last; ++i) {
      adam(now.output[i], output_moments_[i], g.output[i], k);
    }
    adam(now.bias[label], bias_moments_[label], g.bias[label], k);
  }
  const std::size_t width = shape_.hidden;
  const std::set<std::uint32_t> features(batch.features.index.begin(), batch.features.index.end());
  for (const std::uint32_t feature : features) {
    const std::uint64_t k = skipped(embedding_last_[feature]);
    for (std::size_t i = feature * width; i < (feature + 1) * width; ++i) {
      adam(now.embedding[i], embedding_moments_[i], g.embedding[i], k);
    }
  }
}

}  // namespace gossamer::sparse
