// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/train/model_assembly.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/aligned_array.h"
#include "base/check.h"
#include "engines/sparse/predict/local_scaling.h"
#include "learn/data/unit_length.h"
#include "learn/sparse/hidden_layer.h"
#include "learn/sparse/negatives/negatives.h"

namespace gossamer::sparse_engine {
namespace {

// Sums in float, so that a model of usual numbers stays the same bytes. In double where a float lacks range.
double length_of(std::span<const float> x) {
  float squares = 0;
  for (const float v : x) squares += v * v;
  if (std::isnormal(squares)) return static_cast<double>(std::sqrt(squares));
  double wide = 0;
  for (const float v : x) wide += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(wide);
}

// Leaves the zero vector as it is.
void divide(std::span<float> x, double length) {
  if (length > 0) data::scale_by(x, 1 / length, x.data());
}

// Fills the offsets of each row's features and labels.
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

std::span<float> values_of(Instances& instances, std::size_t row) {
  const std::size_t begin = instances.feature_begin[row];
  return std::span(instances.value).subspan(begin, instances.feature_begin[row + 1] - begin);
}

// (1 - pivot) x mean + pivot x length: in float where that holds it, as in length_of().
double pivoted(double length, double mean, float pivot) {
  const float narrow = (1 - pivot) * static_cast<float>(mean) + pivot * static_cast<float>(length);
  if (std::isnormal(narrow)) return static_cast<double>(narrow);
  return (1 - static_cast<double>(pivot)) * mean + static_cast<double>(pivot) * length;
}

// Divides each row by (1 - pivot) x the mean length of rows that are not zero + pivot x its own length.
void pivot_lengths(Instances& out, float pivot, host::Compute& compute) {
  std::vector<double> length(out.rows());
  compute.run([&](int worker) {
    const host::Range mine = host::worker_range(out.rows(), worker, compute.workers());
    for (std::size_t i = mine.begin; i < mine.end; ++i) length[i] = length_of(values_of(out, i));
  });
  double sum = 0;
  std::size_t rows = 0;
  for (const double l : length) {
    sum += l;
    rows += l > 0 ? 1 : 0;
  }
  const double mean = sum / static_cast<double>(std::max<std::size_t>(rows, 1));
  compute.run([&](int worker) {
    const host::Range mine = host::worker_range(out.rows(), worker, compute.workers());
    for (std::size_t i = mine.begin; i < mine.end; ++i) {
      if (length[i] > 0) divide(values_of(out, i), pivoted(length[i], mean, pivot));
    }
  });
}

FusionOptions fusion_of(const PredictConfig& config) {
  FusionOptions options;
  options.candidates = config.candidates;
  options.neighbours = config.neighbours;
  const auto given = config.given_weights();
  for (std::size_t term = 0; term < given.size(); ++term) {
    if (given[term]) options.weights[static_cast<FusionTerm>(term)] = static_cast<float>(*given[term]);
  }
  options.input_vote_power = static_cast<float>(config.input_vote_power);
  options.sharp_vote_power = static_cast<float>(config.sharp_vote_power);
  options.hidden_vote_power = static_cast<float>(config.hidden_vote_power);
  options.mixed_vote_power = static_cast<float>(config.mixed_vote_power);
  return options;
}

}  // namespace

Model assemble_model(TrainedParts parts, const kernels::Kernels& kernels, host::Compute& compute) {
  Model model;
  model.network = std::move(parts.network);
  model.network.drop_moments();
  model.activation = parts.config.model.activation;
  model.weighting = parts.weighting;
  model.featurizer = std::move(parts.featurizer);
  model.line = parts.line;
  model.task = std::move(parts.task);
  if (parts.schema.has_label_names()) {
    for (std::uint32_t l = 0; l < parts.schema.labels(); ++l)
      model.label_names.add(parts.schema.label_name(l));
  }
  // A featurizer keeps the names of its features itself.
  if (parts.schema.has_feature_names() && !model.featurizer.has_value()) {
    for (std::uint32_t f = 0; f < parts.schema.features(); ++f)
      model.feature_names.add(parts.schema.feature_name(f));
  }
  model.fusion = fusion_of(parts.config.predict);
  if (parts.config.predict.instances) {
    model.neighbours = parts.config.predict.weighting == ComparisonKind::kOwn
                           ? text::neighbour_weighting(model.weighting)
                           : text::NeighbourWeighting{.counts = model.weighting.counts};
    model.neighbours.local_scaling = static_cast<float>(parts.config.predict.local_scaling);
    model.instances.emplace();
  }
  if (parts.records != nullptr) {
    replace_records(model, *parts.records, kernels, compute);
  } else {
    CHECK(!model.instances);
    model.label_count = std::move(parts.label_count);
    model.training_rows = parts.training_rows;
  }
  return model;
}

void replace_records(Model& model, const data::Dataset& dataset, const kernels::Kernels& kernels,
                     host::Compute& compute) {
  model.label_count = sparse::count_labels(dataset).count;
  model.training_rows = dataset.size();
  if (!model.instances) return;
  model.instances.reset();  // so that both are not in memory
  model.instances = build_instances({.dataset = dataset,
                                     .weighting = model.weighting,
                                     .neighbours = model.neighbours,
                                     .network = model.network,
                                     .activation = model.activation},
                                    kernels, compute);
}

Instances build_instances(const InstanceSource& source, const kernels::Kernels& kernels,
                          host::Compute& compute) {
  const data::Dataset& dataset = source.dataset;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  CHECK(dataset.feature_entries() <= kMost, dataset.feature_entries());
  CHECK(dataset.label_entries() <= kMost, dataset.label_entries());

  Instances out;
  lay_out(dataset, out);
  const std::size_t width = source.network.shape.last_hidden();
  out.hidden = AlignedArray<kernels::Bf16>(dataset.size() * width);
  text::FeatureWeighting compared = text::comparison_weighting(source.weighting, source.neighbours);
  compared.l2 = false;
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
      compared.apply(record.features, value);
      divide(hidden.span(), length_of(hidden.span()));
      kernels.to_bf16(hidden.data(), rounded.data(), layer.stride());
      std::copy_n(rounded.data(), width, out.hidden.data() + i * width);
    }
  });
  pivot_lengths(out, source.neighbours.pivot, compute);
  scale_locally(out, source.network.shape.features, source.neighbours.local_scaling, kernels, compute);
  return out;
}

}  // namespace gossamer::sparse_engine
