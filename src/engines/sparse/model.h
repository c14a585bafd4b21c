// SPDX-License-Identifier: Apache-2.0
//
// Model: everything prediction needs and nothing that training needs: weights, how raw features are weighted,
// names of labels, how often each label was seen, and the training rows for the fused prediction. What is on
// disk is docs/protocols/model.md; model_file.h reads and writes it.
//
// Owner: whoever trained or loaded it. Moves, never copies. Thread rule: immutable while a Predictor looks at
// it; then any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/aligned_array.h"
#include "engines/sparse/fusion.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "learn/data/line_bag.h"
#include "learn/data/rows.h"
#include "learn/sparse/network.h"
#include "learn/text/featurizer.h"
#include "learn/text/weighting.h"

namespace gossamer::engine {

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

// The training rows: features as they are compared (text::comparison_weighting, lengths pivoted), their
// labels, and their hidden vectors of length 1 as bf16; features and hidden vectors scaled locally
// (local_scaling.h). All three have rows() rows; feature and label indices are below the network's. At most
// 2^32 - 1 entries each.
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
  std::string task = "xmc";  // "next-item" of sessions, "word2vec" of a text
  sparse::Network network;   // optimizer moments are neither saved nor loaded
  kernels::Activation activation = kernels::Activation::kRelu;
  text::FeatureWeighting weighting;                 // as the net sees records
  text::NeighbourWeighting neighbours;              // as they are compared with each other
  std::optional<text::FeaturizerState> featurizer;  // of a model that reads text: at most network features
  std::optional<data::LineShape> line;              // of sessions and words: then features have names
  Names label_names;                                // empty, or one per label
  // Empty, or one per feature, all different: the model then takes features by name. Empty beside a
  // featurizer.
  Names feature_names;
  std::vector<std::uint32_t> label_count;  // training records that carry the label; one per label
  std::uint64_t training_rows = 0;         // records seen in one epoch
  std::optional<Instances> instances;
  FusionOptions fusion;
};

}  // namespace gossamer::engine
