// SPDX-License-Identifier: Apache-2.0
//
// Random small models and queries for the tests of prediction and of the model file. Not part of the product.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engines/sparse/model/model.h"
#include "kernels/kernels.h"

namespace gossamer::sparse_engine::testing {

inline const kernels::Kernels& best_kernels() { return kernels::kernels_for(kernels::best_isa()); }

struct RandomModelShape {
  std::uint32_t features = 50;
  std::uint32_t labels = 40;
  std::uint32_t hidden = 48;
  std::vector<std::size_t> dense = {};
  std::uint32_t rows = 70;
  std::uint64_t seed = 1;
  bool text = false;           // with a featurizer
  bool feature_names = false;  // named "feature 0", ...
};

// Rows in CSR form with their memory.
struct OwnedRows {
  std::vector<std::uint32_t> begin = {0};
  std::vector<std::uint32_t> index;
  std::vector<float> value;

  [[nodiscard]] data::SparseRows view() const { return {begin, index, value}; }
};

// Random distinct indices below `bound`, small ones more often, sorted.
inline std::vector<std::uint32_t> random_set(Rng& rng, std::uint32_t bound, std::size_t size) {
  std::set<std::uint32_t> set;
  while (set.size() < std::min<std::size_t>(size, bound)) {
    set.insert(static_cast<std::uint32_t>(rng.below(rng.below(bound) + 1)));
  }
  return {set.begin(), set.end()};
}

// Rows of length 1; the last is empty when there are more than two.
inline OwnedRows random_rows(Rng& rng, std::uint32_t features, std::uint32_t rows) {
  OwnedRows out;
  for (std::uint32_t r = 0; r < rows; ++r) {
    const std::size_t size = r > 1 && r + 1 == rows ? 0 : 1 + rng.below(9);
    double squares = 0;
    const std::size_t first = out.value.size();
    for (const std::uint32_t f : random_set(rng, features, size)) {
      out.index.push_back(f);
      out.value.push_back(0.1F + rng.uniform());
      squares += static_cast<double>(out.value.back()) * static_cast<double>(out.value.back());
    }
    for (std::size_t i = first; i < out.value.size(); ++i)
      out.value[i] /= static_cast<float>(std::sqrt(squares));
    out.begin.push_back(static_cast<std::uint32_t>(out.index.size()));
  }
  return out;
}

inline Instances random_instances(Rng& rng, const RandomModelShape& shape) {
  OwnedRows rows = random_rows(rng, shape.features, shape.rows);
  Instances out;
  out.feature_begin = std::move(rows.begin);
  out.feature = std::move(rows.index);
  out.value = std::move(rows.value);
  out.label_begin = {0};
  const std::size_t width = shape.dense.empty() ? shape.hidden : shape.dense.back();
  out.hidden = AlignedArray<kernels::Bf16>(shape.rows * width);
  const kernels::Kernels& k = kernels::kernels_for(kernels::Isa::kScalar);
  std::vector<float> hidden(width);
  for (std::uint32_t r = 0; r < shape.rows; ++r) {
    for (const std::uint32_t l : random_set(rng, shape.labels, rng.below(4))) out.label.push_back(l);
    out.label_begin.push_back(static_cast<std::uint32_t>(out.label.size()));
    for (float& h : hidden) h = rng.normal() / std::sqrt(static_cast<float>(width));
    k.to_bf16(hidden.data(), out.hidden.data() + r * width, width);
  }
  return out;
}

inline Model random_model(const RandomModelShape& shape) {
  Rng rng(shape.seed, Purpose::kTest);
  Model model;
  model.network = sparse::Network(
      {.features = shape.features, .labels = shape.labels, .hidden = shape.hidden, .dense = shape.dense},
      sparse::Moments::kNone);
  for (std::uint32_t f = 0; f < shape.features; ++f) {
    for (std::uint32_t h = 0; h < shape.hidden; ++h) model.network.embedding.weights(f)[h] = rng.normal();
  }
  for (sparse::DenseLayer& layer : model.network.dense) {
    for (std::size_t unit = 0; unit < layer.weights.rows(); ++unit) {
      for (std::size_t i = 0; i < layer.weights.width(); ++i) {
        layer.weights.weights(unit)[i] = 0.2F * rng.normal();
      }
      layer.bias[unit] = 0.1F * rng.normal();
    }
  }
  for (std::uint32_t l = 0; l < shape.labels; ++l) {
    for (std::size_t h = 0; h < model.network.output.width(); ++h) {
      model.network.output.weights(l)[h] = 0.3F * rng.normal();
    }
    model.network.bias[l] = rng.normal();
    model.label_count.push_back(static_cast<std::uint32_t>(rng.below(9)));
    model.label_names.add("label " + std::to_string(l));
  }
  for (std::uint32_t f = 0; shape.feature_names && f < shape.features; ++f) {
    model.feature_names.add("feature " + std::to_string(f));
  }
  model.weighting.counts = text::CountScale::kLog;
  for (std::uint32_t f = 0; f < shape.features; ++f) model.weighting.idf.push_back(rng.uniform());
  if (shape.rows > 0) model.neighbours = text::neighbour_weighting(model.weighting);
  model.training_rows = shape.rows;
  if (shape.text) {
    model.featurizer =
        text::FeaturizerState{.options = {.subword_min = 3, .subword_max = 5}, .documents = 90};
    for (std::uint32_t f = 0; f < shape.features; ++f) {
      model.featurizer->features.push_back("word" + std::to_string(f));
      model.featurizer->document_frequency.push_back(1 + static_cast<std::uint32_t>(rng.below(90)));
    }
  }
  if (shape.rows > 0) model.instances = random_instances(rng, shape);
  return model;
}

}  // namespace gossamer::sparse_engine::testing
