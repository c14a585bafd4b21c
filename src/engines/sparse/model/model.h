// SPDX-License-Identifier: Apache-2.0
//
// Model: everything that prediction needs, and nothing that only training needs. It has weights, the
// weighting of raw features, names and counts of labels, and the training rows for the fused prediction.
// docs/protocols/model.md describes the form on disk; model_file.h reads and writes it.
//
// Owner: the code that trained or loaded it. Moves, never copies. Thread rule: immutable while a Predictor
// looks at it; then any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/aligned_array.h"
#include "engines/sparse/model/fusion_options.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "learn/data/line_bag.h"
#include "learn/data/rows.h"
#include "learn/sparse/network/network.h"
#include "learn/text/featurizer.h"
#include "learn/text/weighting.h"

namespace gossamer::sparse_engine {

// Strings back to back: name i is bytes[begin[i]..begin[i+1]). Empty when there are no names.
struct Names {
  std::string bytes;
  std::vector<std::uint64_t> begin;

  [[nodiscard]] std::size_t size() const { return begin.empty() ? 0 : begin.size() - 1; }
  // Requires i < size().
  [[nodiscard]] std::string_view operator[](std::size_t i) const {
    return std::string_view(bytes).substr(begin[i], begin[i + 1] - begin[i]);
  }
  void add(std::string_view name) {
    if (begin.empty()) begin.push_back(0);
    bytes += name;
    begin.push_back(bytes.size());
  }
};

// The training rows: features, labels, and hidden vectors. Features are weighted for comparison
// (text::comparison_weighting, lengths pivoted). Hidden vectors have length 1 and are bf16. Both are scaled
// locally (local_scaling.h). All three have rows() rows; feature and label indices are below the network's.
// At most 2^32 - 1 entries each.
struct Instances {
  std::vector<std::uint32_t> feature_begin;
  std::vector<std::uint32_t> feature;
  std::vector<float> value;
  std::vector<std::uint32_t> label_begin;
  std::vector<std::uint32_t> label;
  AlignedArray<kernels::Bf16> hidden;  // [rows()][network hidden width], unpadded

  [[nodiscard]] std::size_t rows() const { return feature_begin.empty() ? 0 : feature_begin.size() - 1; }
  [[nodiscard]] data::SparseRows features() const { return {feature_begin, feature, value}; }
  [[nodiscard]] data::LabelSets labels() const { return {label_begin, label}; }
};

struct Model {
  std::string task = "xmc";  // or "next-item" (sessions), "word2vec" (a text)
  sparse::Network network;   // optimizer moments are neither saved nor loaded
  kernels::Activation activation = kernels::Activation::kRelu;
  text::FeatureWeighting weighting;                 // as the net sees records
  text::NeighbourWeighting neighbours;              // for comparing them with each other
  std::optional<text::FeaturizerState> featurizer;  // for a model that reads text: at most network features
  std::optional<data::LineShape> line;              // for sessions and words: then features have names
  Names label_names;                                // empty, or one per label
  // Empty, or one per feature, all different; then the model takes features by name. Empty beside a
  // featurizer.
  Names feature_names;
  std::vector<std::uint32_t> label_count;  // training records that carry the label; one per label
  std::uint64_t training_rows = 0;         // records seen in one epoch
  std::optional<Instances> instances;
  FusionOptions fusion;
};

}  // namespace gossamer::sparse_engine
