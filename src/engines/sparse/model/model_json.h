// SPDX-License-Identifier: Apache-2.0
//
// model.json as plain data, as docs/protocols/model.md lists it, before any tensor is read.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engines/sparse/model/fusion_options.h"
#include "kernels/kernels.h"
#include "learn/data/line_bag.h"
#include "learn/text/featurizer.h"
#include "tensors/model_directory.h"

namespace gossamer::sparse_engine {

inline constexpr std::uint64_t kModelFormat = 2;
// Has hidden layers after the first, which a reader of format 2 would leave out.
inline constexpr std::uint64_t kDenseModelFormat = 3;

struct InstanceCounts {
  std::uint64_t rows = 0;
  std::uint64_t feature_entries = 0;
  std::uint64_t label_entries = 0;
  text::NeighbourWeighting weighting;
};

// The part of text::FeaturizerState that is not a tensor.
struct FeaturizerHeader {
  text::FeaturizerOptions options;
  std::uint64_t documents = 0;
  std::uint64_t features = 0;  // at most the model's
};

struct ModelHeader {
  std::string task;
  std::uint64_t features = 0;        // 1..2^32-1
  std::uint64_t labels = 0;          // 1..2^32-1
  std::uint64_t hidden = 0;          // 16..65536, a multiple of 16
  std::vector<std::uint64_t> dense;  // widths of the hidden layers after the first, as `hidden`; at most 64
  kernels::Activation activation = kernels::Activation::kRelu;
  std::uint64_t training_rows = 0;
  text::CountScale counts = text::CountScale::kLinear;
  bool l2 = false;
  bool idf = false;
  bool label_names = false;
  bool feature_names = false;  // never beside a featurizer
  std::optional<FeaturizerHeader> featurizer;
  std::optional<data::LineShape> line;  // only with feature names
  std::optional<InstanceCounts> instances;
  FusionOptions fusion;
  std::vector<tensors::ShardEntry> shards;
  std::uint64_t total_size = 0;
  std::map<std::string, std::string> weight_map;  // for other tools; not read back
};

[[nodiscard]] std::string_view name(kernels::Activation activation);  // "relu", "identity", "tanh"
[[nodiscard]] std::string_view name(text::CountScale counts);         // as in model.json

[[nodiscard]] std::string format_header(const ModelHeader& header);

// Parses the header. `path` is for messages. The error is kBadData naming the field, and kRefused for another
// format number.
[[nodiscard]] Result<ModelHeader> parse_header(const std::string& path, std::string_view text);

}  // namespace gossamer::sparse_engine
