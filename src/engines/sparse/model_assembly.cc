// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model_assembly.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/aligned_array.h"
#include "base/check.h"
#include "engines/sparse/trainer.h"
#include "learn/sparse/hidden_layer.h"
#include "learn/sparse/negatives.h"

namespace gossamer::engine {
namespace {

// 1 / length, 0 for the zero vector.
float inverse_length(std::span<const float> x) {
  float squares = 0;
  for (const float v : x) squares += v * v;
  return squares > 0 ? 1 / std::sqrt(squares) : 0;
}

void scale(std::span<float> x, float factor) {
  for (float& v : x) v *= factor;
}

// Where each row's features and labels will lie.
void lay_out(const data::Dataset& dataset, Instances& out) {
  const std::size_t n = dataset.size();
  out.feature_begin.resize(n + 1);
  out.label_begin.resize(n + 1);
  for (std::size_t i = 0; i < n; ++i) {
    const data::Record record = dataset.record(RecordIndex{i});
    out.feature_begin[i + 1] =
        out.feature_begin[i] + static_cast<std::uint32_t>(record.features.index.size());
    out.label_begin[i + 1] = out.label_begin[i] + static_cast<std::uint32_t>(record.labels.size());
  }
  out.feature.resize(out.feature_begin[n]);
  out.value.resize(out.feature_begin[n]);
  out.label.resize(out.label_begin[n]);
}

FusionOptions fusion_of(const PredictConfig& config) {
  FusionOptions options;
  options.candidates = config.candidates;
  options.neighbours = config.neighbours;
  options.net_weight = static_cast<float>(config.net_weight);
  options.centroid_weight = static_cast<float>(config.centroid_weight);
  options.input_vote_weight = static_cast<float>(config.input_vote_weight);
  options.hidden_vote_weight = static_cast<float>(config.hidden_vote_weight);
  options.mixed_vote_weight = static_cast<float>(config.mixed_vote_weight);
  options.input_vote_power = static_cast<float>(config.input_vote_power);
  options.hidden_vote_power = static_cast<float>(config.hidden_vote_power);
  return options;
}

}  // namespace

Model assemble_model(TrainedParts parts, const kernels::Kernels& kernels, host::Compute& compute) {
  Model model;
  model.network = std::move(parts.network);
  model.network.drop_moments();
  model.activation = activation_of(parts.config.model.activation);
  model.weighting = parts.weighting;
  model.featurizer = std::move(parts.featurizer);
  model.sessions = parts.sessions;
  if (model.sessions) model.task = "next-item";
  if (parts.dataset.has_label_names()) {
    for (std::uint32_t l = 0; l < parts.dataset.labels(); ++l)
      model.label_names.add(parts.dataset.label_name(l));
  }
  // A featurizer keeps the names of its features itself.
  if (parts.dataset.has_feature_names() && !model.featurizer.has_value()) {
    for (std::uint32_t f = 0; f < parts.dataset.features(); ++f)
      model.feature_names.add(parts.dataset.feature_name(f));
  }
  model.label_count = sparse::count_labels(parts.dataset).count;
  model.training_rows = parts.dataset.size();
  if (parts.config.predict.instances) {
    model.instances = build_instances({.dataset = parts.dataset,
                                       .weighting = model.weighting,
                                       .network = model.network,
                                       .activation = model.activation},
                                      kernels, compute);
  }
  model.fusion = fusion_of(parts.config.predict);
  return model;
}

Instances build_instances(const InstanceSource& source, const kernels::Kernels& kernels,
                          host::Compute& compute) {
  const data::Dataset& dataset = source.dataset;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  CHECK(dataset.feature_entries() <= kMost, dataset.feature_entries());
  CHECK(dataset.label_entries() <= kMost, dataset.label_entries());

  Instances out;
  lay_out(dataset, out);
  const std::size_t width = source.network.shape.hidden;
  out.hidden = AlignedArray<kernels::Bf16>(dataset.size() * width);
  const sparse::HiddenLayer layer(source.network, source.activation, kernels);
  compute.run([&](int worker) {
    AlignedArray<float> hidden(layer.stride());
    AlignedArray<kernels::Bf16> rounded(layer.stride());
    const host::Range mine = host::worker_range(dataset.size(), worker, compute.workers());
    for (std::size_t i = mine.begin; i < mine.end; ++i) {
      const data::Record record = dataset.record(RecordIndex{i});
      const std::size_t begin = out.feature_begin[i];
      const auto index = std::span(out.feature).subspan(begin, record.features.index.size());
      const auto value = std::span(out.value).subspan(begin, index.size());
      std::copy(record.features.index.begin(), record.features.index.end(), index.begin());
      std::copy(record.labels.begin(), record.labels.end(), out.label.begin() + out.label_begin[i]);
      source.weighting.apply(record.features, value);
      layer.forward(data::SparseRow{index, value}, hidden.data());
      scale(value, inverse_length(value));
      scale(hidden.span(), inverse_length(hidden.span()));
      kernels.to_bf16(hidden.data(), rounded.data(), layer.stride());
      std::copy_n(rounded.data(), width, out.hidden.data() + i * width);
    }
  });
  return out;
}

}  // namespace gossamer::engine
