// SPDX-License-Identifier: Apache-2.0
//
// TrainConfig: all settings of a run of the sparse engine, as plain data, and the table of its keys.
//
// An empty optional is the value `auto`: engines/sparse/config/recipe.h derives it from the data and says
// why. Thread rule: plain values; the table is immutable.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "learn/data/record_format.h"
#include "learn/data/text_windows.h"
#include "learn/sparse/negatives/found_rows.h"
#include "learn/sparse/negatives/hash_negatives.h"
#include "learn/sparse/negatives/logq.h"
#include "learn/sparse/negatives/negatives.h"
#include "learn/sparse/network/adam.h"
#include "learn/sparse/network/schedule.h"
#include "net/codec/codec.h"
#include "settings/key_table.h"

namespace gossamer::sparse_engine {

enum class Weighting { kNone, kTfIdf, kL2 };
enum class ComparisonKind { kOwn, kNet };
enum class MomentsKind { kElement, kEmbeddingBlock, kBlock };
enum class ExchangeKind { kShares, kDslide };

struct DataConfig {
  std::string train = {};
  std::string test = {};
  std::optional<data::RecordFormat> format = {};  // one of data::kRecordFormatWords
  std::optional<Weighting> weighting = {};
  std::uint64_t skip_bad = 0;
  bool operator==(const DataConfig&) const = default;
};

struct ModelConfig {
  std::optional<std::uint32_t> hidden = 256;
  std::vector<std::uint32_t> dense = {};  // widths of further hidden layers
  kernels::Activation activation = kernels::Activation::kRelu;
  std::optional<double> dropout = {};
  double embedding_init = 0.05;  // standard deviation
  double output_init = 0.01;     // standard deviation
  bool operator==(const ModelConfig&) const = default;
};

struct TrainingConfig {
  std::optional<double> epochs = {};
  std::uint64_t steps = 0;  // 0: from epochs
  std::uint32_t batch = 256;
  double lr = 0.01;
  double input_dropout = 0;  // chance that a feature of a sample is left out
  std::uint32_t warmup_steps = 50;
  sparse::Decay schedule = sparse::Decay::kLinear;
  sparse::Negatives negatives = sparse::Negatives::kInBatch;
  std::uint32_t sampled = 0;  // further negatives in a step
  double frequency_exponent = 0.75;
  std::uint32_t hard_negatives = 0;  // in a step, found by hash tables
  double hard_after = 0.5;           // fraction of the steps
  std::optional<kernels::Element> precision = {};
  bool operator==(const TrainingConfig&) const = default;
};

// Hash tables over the output rows (learn/sparse/negatives/hash_negatives.h).
struct HashConfig {
  sparse::HashKind family = sparse::HashKind::kSimHash;
  std::optional<std::uint32_t> functions = {};  // K
  std::optional<std::uint32_t> tables = {};     // L
  std::optional<std::uint32_t> key_bits = {};
  std::uint32_t queries = 32;
  sparse::HashSelection select = sparse::HashSelection::kBest;
  sparse::HashSets sets = sparse::HashSets::kShared;
  std::uint32_t bucket = 0;  // rows; 0: all
  double tolerance = 0.1;
  std::uint64_t update_every = 50;  // steps
  double update_growth = 0;
  bool operator==(const HashConfig&) const = default;
};

struct LossConfig {
  sparse::LogQ logq = sparse::LogQ::kExact;
  bool operator==(const LossConfig&) const = default;
};

struct OptimizerConfig {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  sparse::SkippedSteps skipped = sparse::SkippedSteps::kHold;
  MomentsKind moments = MomentsKind::kEmbeddingBlock;
  bool operator==(const OptimizerConfig&) const = default;
};

// What prediction adds to the network's own scores (engines/sparse/predict/fusion.h).
struct PredictConfig {
  bool instances = true;
  std::uint32_t candidates = 100;
  std::uint32_t neighbours = 100;
  // The weighting for comparing records: one of their own (text::neighbour_weighting), or the network's.
  ComparisonKind weighting = ComparisonKind::kOwn;
  double local_scaling = 0.5;  // local_scaling.h
  // Records that training leaves out, to learn on them the weights below, and how likely answers are right. A
  // weight that is given stays.
  std::optional<std::uint32_t> held_out = {};
  std::optional<double> net_weight = {};
  std::optional<double> centroid_weight = {};
  std::optional<double> input_vote_weight = {};
  std::optional<double> sharp_vote_weight = {};
  std::optional<double> hidden_vote_weight = {};
  std::optional<double> mixed_vote_weight = {};
  double input_vote_power = 4;
  double sharp_vote_power = 8;
  double hidden_vote_power = 8;
  double mixed_vote_power = 8;
  bool operator==(const PredictConfig&) const = default;

  // In the order of FusionTerm (engines/sparse/model/fusion_options.h).
  [[nodiscard]] std::array<std::optional<double>, 6> given_weights() const {
    return {net_weight,        centroid_weight,    input_vote_weight,
            sharp_vote_weight, hidden_vote_weight, mixed_vote_weight};
  }
};

// Text to features (learn/text/featurizer.h); used when the records are text. Whole words are always
// features.
struct TextConfig {
  bool stems = true;
  std::uint32_t subword_min = 0;  // characters; 0: no sub-words
  std::uint32_t subword_max = 0;
  std::uint32_t min_df = 2;
  std::uint32_t max_features = 1'000'000;
  double stem_weight = 0.7;
  double subword_weight = 0.3;
  double context_weight = 1;  // weight of a record's "context"; its text has 1
  bool operator==(const TextConfig&) const = default;
};

// Sessions to records (learn/data/line_bag.h); used when the records are sessions.
struct SessionsConfig {
  std::uint32_t last = 10;
  double decay = 0.7;
  bool operator==(const SessionsConfig&) const = default;
};

// Text to windows (learn/data/token_text.h, text_windows.h); used when the data is a plain text.
struct Word2vecConfig {
  data::WindowMode mode = data::WindowMode::kCbow;
  std::uint32_t window = 5;
  bool shrink = true;
  double sample = 1e-3;
  std::uint64_t min_count = 5;
  std::uint32_t max_words = 10'000'000;
  bool operator==(const Word2vecConfig&) const = default;
};

struct CheckpointConfig {
  std::uint64_t every_steps = 0;  // 0: by time alone
  double every_minutes = 5;       // 0: never by time
  std::uint32_t keep = 2;
  bool operator==(const CheckpointConfig&) const = default;
};

// Several nodes that train one model (engines/sparse/fleet). One process ignores them.
struct ClusterConfig {
  net::Codec codec = net::Codec::kBf16;
  ExchangeKind exchange = ExchangeKind::kShares;
  std::uint32_t staleness = 0;                       // steps whose updates a step does without, 0 or 1
  std::optional<std::uint32_t> snapshot_every = {};  // steps
  std::uint32_t copies = 1;                          // of each part, in addition to its holder's
  bool operator==(const ClusterConfig&) const = default;
};

struct TrainConfig {
  std::uint64_t seed = 1;
  DataConfig data;
  ModelConfig model;
  TrainingConfig train;
  HashConfig lsh;
  LossConfig loss;
  OptimizerConfig optimizer;
  PredictConfig predict;
  TextConfig text;
  SessionsConfig sessions;
  Word2vecConfig word2vec;
  CheckpointConfig checkpoint;
  ClusterConfig cluster;
  bool operator==(const TrainConfig&) const = default;
};

// All keys, for the command line, TOML files, `train --keys` and run.toml.
[[nodiscard]] const settings::KeyTable<TrainConfig>& train_keys();

// Checks conditions across keys, such as text.subword_min <= text.subword_max. The error is kUsage.
[[nodiscard]] Result<void> validate(const TrainConfig& config);

}  // namespace gossamer::sparse_engine
