// SPDX-License-Identifier: Apache-2.0
//
// For tests: small random batches, label counts and networks, all from one seed.
//
// Thread rule: one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "base/rng.h"
#include "host/sim/compute.h"
#include "learn/data/rows.h"
#include "learn/sparse/negatives/negatives.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse {

// Owns what a data::Batch views.
struct OwnedBatch {
  std::vector<std::uint32_t> feature_begin = {0};
  std::vector<std::uint32_t> feature;
  std::vector<float> value;
  std::vector<std::uint32_t> label_begin = {0};
  std::vector<std::uint32_t> label;

  void add(const std::set<std::uint32_t>& features, const std::set<std::uint32_t>& labels, Rng& rng) {
    for (const std::uint32_t f : features) {
      feature.push_back(f);
      value.push_back(0.2F + rng.uniform());
    }
    label.insert(label.end(), labels.begin(), labels.end());
    feature_begin.push_back(static_cast<std::uint32_t>(feature.size()));
    label_begin.push_back(static_cast<std::uint32_t>(label.size()));
  }
  [[nodiscard]] data::Batch view() const {
    return {.features = {feature_begin, feature, value}, .labels = {label_begin, label}};
  }
};

struct ProblemShape {
  NetworkShape network;
  std::size_t samples = 1;
  std::size_t features_each = 4;  // at most
  std::size_t labels_each = 3;    // at most; some samples get none when `unlabelled`
  bool unlabelled = false;
};

[[nodiscard]] inline std::set<std::uint32_t> random_set(std::size_t at_most, std::size_t below, Rng& rng) {
  std::set<std::uint32_t> ids;
  const std::size_t n = 1 + rng.below(at_most);
  for (std::size_t i = 0; i < n; ++i) ids.insert(static_cast<std::uint32_t>(rng.below(below)));
  return ids;
}

[[nodiscard]] inline OwnedBatch random_batch(const ProblemShape& shape, std::uint64_t seed) {
  Rng rng(seed, Purpose::kTest);
  OwnedBatch batch;
  for (std::size_t i = 0; i < shape.samples; ++i) {
    auto features = random_set(shape.features_each, shape.network.features, rng);
    auto labels = random_set(shape.labels_each, shape.network.labels, rng);
    if (shape.unlabelled && i % 3 == 1) labels.clear();
    if (shape.unlabelled && i % 5 == 2) features.clear();
    batch.add(features, labels, rng);
  }
  return batch;
}

[[nodiscard]] inline LabelCounts random_counts(std::size_t labels, std::uint64_t seed) {
  Rng rng(seed, Purpose::kTest, 1);
  LabelCounts counts{.count = {}, .records = 100};
  for (std::size_t i = 0; i < labels; ++i) {
    counts.count.push_back(1 + static_cast<std::uint32_t>(rng.below(20)));
  }
  return counts;
}

// A network with weights so large that every term of the gradient matters.
[[nodiscard]] inline Network random_network(const NetworkShape& shape, const LabelCounts& counts,
                                            std::uint64_t seed) {
  Network network(shape, Moments::kElement);
  host::SimCompute compute({.workers = 1});
  initialize(network, {.embedding_stddev = 0.5F, .output_stddev = 0.5F, .seed = seed}, counts.count, compute);
  Rng rng(seed, Purpose::kTest, 2);
  for (float& b : network.bias.span()) b = 0.3F * rng.normal();
  for (DenseLayer& layer : network.dense) {
    for (float& b : layer.bias.span().first(layer.weights.rows())) b = 0.3F * rng.normal();
  }
  return network;
}

}  // namespace gossamer::sparse
