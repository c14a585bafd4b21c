// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/train/model_assembly.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "engines/sparse/predict/local_scaling.h"
#include "host/sim/compute.h"
#include "learn/data/in_memory_dataset.h"

namespace gossamer::sparse_engine {
namespace {

constexpr std::uint32_t kSeen = 12;  // features
constexpr std::size_t kUnits = 16;   // of the hidden layer
constexpr std::uint32_t kTold = 60;  // records
constexpr std::uint32_t kNames = 5;  // labels

const kernels::Kernels& scalar() { return kernels::kernels_for(kernels::Isa::kScalar); }

// Counts of different records; every tenth record has no feature.
data::InMemoryDataset counts() {
  data::InMemoryDataset set({.features = kSeen, .labels = kNames});
  Rng rng(4, Purpose::kTest);
  for (std::uint32_t i = 0; i < kTold; ++i) {
    std::vector<std::uint32_t> index;
    std::vector<float> value;
    for (std::uint32_t f = 0; f < kSeen && i % 10 != 9; ++f) {
      if (rng.below(3) > 0) continue;
      index.push_back(f);
      value.push_back(static_cast<float>(1 + rng.below(20)));
    }
    set.add(index, value, {i % kNames});
  }
  return set;
}

sparse::Network some_network() {
  sparse::Network network({.features = kSeen, .labels = kNames, .hidden = kUnits}, sparse::Moments::kElement);
  Rng rng(5, Purpose::kTest);
  for (std::size_t f = 0; f < kSeen; ++f) {
    for (std::size_t i = 0; i < kUnits; ++i) network.embedding.weights(f)[i] = rng.normal();
  }
  return network;
}

// As the network sees the counts.
text::FeatureWeighting learnt() {
  text::FeatureWeighting weighting{.counts = text::CountScale::kLog, .l2 = true, .idf = {}};
  for (std::uint32_t f = 0; f < kSeen; ++f) weighting.idf.push_back(0.5F + 0.25F * static_cast<float>(f));
  return weighting;
}

Model assembled(const data::Dataset& records, const TrainConfig& config) {
  host::SimCompute compute({.workers = 2});
  const text::FeatureWeighting weighting = learnt();
  return assemble_model({.network = some_network(),
                         .schema = records,
                         .records = &records,
                         .weighting = weighting,
                         .featurizer = std::nullopt,
                         .line = std::nullopt,
                         .config = config},
                        scalar(), compute);
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kPredictionKeys = {{
    {"predict.candidates", "31"},
    {"predict.neighbours", "32"},
    {"predict.weighting", "net"},
    {"predict.local_scaling", "0.25"},
    {"predict.net_weight", "1.25"},
    {"predict.centroid_weight", "2.25"},
    {"predict.input_vote_weight", "3.25"},
    {"predict.sharp_vote_weight", "4.25"},
    {"predict.hidden_vote_weight", "5.25"},
    {"predict.mixed_vote_weight", "6.25"},
    {"predict.input_vote_power", "11"},
    {"predict.sharp_vote_power", "12"},
    {"predict.hidden_vote_power", "13"},
    {"predict.mixed_vote_power", "14"},
    // They decide what is done, and are no number of the model.
    {"predict.instances", "true"},
    {"predict.held_out", "0"},
}};

// Claim: the model gets each key of prediction, and none stands in another's place. No such key is missing
// here.
TEST(ModelAssembly, TakesTheKeysOfPrediction) {
  TrainConfig config;
  std::set<std::string_view> named;
  for (const auto& [name, text] : kPredictionKeys) {
    ASSERT_TRUE(train_keys().set(config, {.name = std::string(name), .text = std::string(text)}).ok())
        << name;
    named.insert(name);
  }
  for (const settings::Key& key : train_keys().all()) {
    if (key.name.starts_with("predict.")) {
      EXPECT_TRUE(named.contains(key.name)) << key.name;
    }
  }
  const Model model = assembled(counts(), config);
  EXPECT_EQ(model.fusion, (FusionOptions{.candidates = 31,
                                         .neighbours = 32,
                                         .weights = {{1.25F, 2.25F, 3.25F, 4.25F, 5.25F, 6.25F}},
                                         .input_vote_power = 11,
                                         .sharp_vote_power = 12,
                                         .hidden_vote_power = 13,
                                         .mixed_vote_power = 14}));
  EXPECT_EQ(model.neighbours,
            (text::NeighbourWeighting{.counts = text::CountScale::kLog, .local_scaling = 0.25F}));
  EXPECT_FALSE(model.network.embedding.has_moments());
}

// Claim: weights that are not given keep the usual values. Records are compared by a weighting of their own
// then. Without training rows there is nothing to compare.
TEST(ModelAssembly, LeavesWhatIsNotGiven) {
  TrainConfig config;
  config.predict.hidden_vote_weight = 9;
  FusionVector expected = kDefaultFusionWeights;
  expected[FusionTerm::kHidden] = 9;
  const data::InMemoryDataset records = counts();
  const Model model = assembled(records, config);
  EXPECT_EQ(model.fusion.weights, expected);
  text::NeighbourWeighting own = text::neighbour_weighting(learnt());
  own.local_scaling = 0.5F;
  EXPECT_EQ(model.neighbours, own);
  ASSERT_TRUE(model.instances);
  EXPECT_EQ(model.instances->rows(), kTold);
  config.predict.instances = false;
  const Model bare = assembled(records, config);
  EXPECT_FALSE(bare.instances);
  EXPECT_EQ(bare.training_rows, kTold);
  EXPECT_EQ(bare.label_count, (std::vector<std::uint32_t>(kNames, kTold / kNames)));
}

double euclidean(std::span<const float> values) {
  double squares = 0;
  for (const float v : values) squares += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(squares);
}

// Claim: training rows have their features as records are compared. Each row is divided by the pivot of its
// own length and the mean length of rows that have features. The labels are the record's own.
TEST(ModelAssembly, RowsAreComparedByTheFormula) {
  const data::InMemoryDataset records = counts();
  const sparse::Network network = some_network();
  const text::FeatureWeighting weighting = learnt();
  const text::NeighbourWeighting neighbours{
      .counts = text::CountScale::kDoubleLog, .idf_power = 0.5F, .pivot = 0.75F, .local_scaling = 0};
  text::FeatureWeighting compared = text::comparison_weighting(weighting, neighbours);
  compared.l2 = false;
  std::vector<std::vector<float>> values;
  double sum = 0;
  double rows = 0;
  for (std::uint64_t i = 0; i < kTold; ++i) {
    const data::SparseRow features = records.record(RecordIndex{i}).features;
    compared.apply(features, values.emplace_back(features.value.size()));
    sum += euclidean(values.back());
    rows += features.value.empty() ? 0 : 1;
  }
  ASSERT_LT(rows, 0.95 * kTold);
  for (const int workers : {1, 3}) {
    host::SimCompute compute({.workers = workers});
    const Instances built = build_instances({.dataset = records,
                                             .weighting = weighting,
                                             .neighbours = neighbours,
                                             .network = network,
                                             .activation = kernels::Activation::kRelu},
                                            scalar(), compute);
    ASSERT_EQ(built.rows(), kTold);
    for (std::uint32_t i = 0; i < kTold; ++i) {
      const data::Record record = records.record(RecordIndex{i});
      const data::SparseRow row = built.features().row(i);
      ASSERT_TRUE(std::ranges::equal(row.index, record.features.index)) << i;
      ASSERT_TRUE(std::ranges::equal(built.labels().row(i), record.labels)) << i;
      const double divisor = 0.25 * sum / rows + 0.75 * euclidean(values[i]);
      for (std::size_t f = 0; f < row.value.size(); ++f)
        ASSERT_NEAR(static_cast<double>(row.value[f]), static_cast<double>(values[i][f]) / divisor, 1e-5)
            << i;
    }
  }
}

// Claim: rows of the largest and of the smallest values are divided like any other.
TEST(ModelAssembly, ExtremeRowsAreComparedByTheFormula) {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const std::vector<float>& sizes : std::vector<std::vector<float>>{
           {kMost / 4}, {8e18F}, {1e-40F}, {kMost / 4, 1e-40F, 1.0F, 1e20F, 1e-20F}}) {
    data::InMemoryDataset records({.features = kSeen, .labels = kNames});
    for (std::uint32_t i = 0; i < 40; ++i) {
      const float size = sizes[i % sizes.size()];
      records.add({i % 4, 4 + i % 8}, {3 * size, 4 * size}, {i % kNames});
    }
    for (const float pivot : {1.0F, 0.75F}) {
      const text::NeighbourWeighting neighbours{.pivot = pivot, .local_scaling = 0.5F};
      const sparse::Network network = some_network();
      host::SimCompute compute({.workers = 2});
      const Instances built = build_instances({.dataset = records,
                                               .weighting = {},
                                               .neighbours = neighbours,
                                               .network = network,
                                               .activation = kernels::Activation::kRelu},
                                              scalar(), compute);
      for (std::uint32_t i = 0; i < 40; ++i) {
        const data::SparseRow row = built.features().row(i);
        ASSERT_TRUE(std::isfinite(row.value[0]) && std::isfinite(row.value[1])) << sizes[0] << " " << i;
        if (sizes.size() > 1 && pivot < 1) continue;  // the longest rows make the mean
        ASSERT_GT(euclidean(row.value), 0.4) << sizes[0] << " " << i;
        ASSERT_NEAR(row.value[0] / row.value[1], 0.75, 1e-3) << sizes[0] << " " << i;
      }
    }
  }
}

// Claim: hidden vectors whose squares leave the floats have length 1 too.
TEST(ModelAssembly, ExtremeHiddenVectorsHaveLengthOne) {
  data::InMemoryDataset records({.features = kSeen, .labels = kNames});
  for (std::uint32_t i = 0; i < kSeen; ++i) records.add({i}, {1.0F}, {i % kNames});
  const text::FeatureWeighting weighting;
  for (const float size : {1e-30F, 1e30F}) {
    sparse::Network network = some_network();
    for (std::size_t f = 0; f < kSeen; ++f) {
      for (std::size_t u = 0; u < kUnits; ++u) network.embedding.weights(f)[u] *= size;
    }
    host::SimCompute compute({.workers = 2});
    const Instances built = build_instances({.dataset = records,
                                             .weighting = weighting,
                                             .neighbours = {},
                                             .network = network,
                                             .activation = kernels::Activation::kRelu},
                                            scalar(), compute);
    for (std::size_t i = 0; i < kSeen; ++i) {
      std::vector<float> got(kUnits);
      scalar().from_bf16(built.hidden.data() + i * kUnits, got.data(), kUnits);
      EXPECT_NEAR(euclidean(got), 1, 0.01) << size << " " << i;
    }
  }
}

// Claim: the hidden vector of a training row is that of the record as the network sees it, with length 1.
TEST(ModelAssembly, RowsHaveTheirHiddenVectors) {
  const data::InMemoryDataset records = counts();
  const sparse::Network network = some_network();
  const text::FeatureWeighting weighting = learnt();
  const text::NeighbourWeighting neighbours{};
  host::SimCompute compute({.workers = 2});
  const Instances built = build_instances({.dataset = records,
                                           .weighting = weighting,
                                           .neighbours = neighbours,
                                           .network = network,
                                           .activation = kernels::Activation::kTanh},
                                          scalar(), compute);
  for (std::uint32_t i = 0; i < kTold; ++i) {
    const data::SparseRow features = records.record(RecordIndex{i}).features;
    std::vector<float> seen(features.value.size());
    weighting.apply(features, seen);
    std::vector<float> hidden(kUnits, 0);
    for (std::size_t f = 0; f < seen.size(); ++f) {
      for (std::size_t u = 0; u < kUnits; ++u)
        hidden[u] += seen[f] * network.embedding.weights(features.index[f])[u];
    }
    for (float& h : hidden) h = std::tanh(h);
    const double length = std::max(euclidean(hidden), 1e-30);
    std::vector<float> got(kUnits);
    scalar().from_bf16(built.hidden.data() + i * kUnits, got.data(), kUnits);
    for (std::size_t u = 0; u < kUnits; ++u)
      ASSERT_NEAR(static_cast<double>(got[u]), static_cast<double>(hidden[u]) / length, 0.005) << i;
  }
}

// Claim: rows are scaled locally by the power that the weighting has.
TEST(ModelAssembly, RowsAreScaledLocally) {
  const data::InMemoryDataset records = counts();
  const sparse::Network network = some_network();
  const text::FeatureWeighting weighting = learnt();
  host::SimCompute compute({.workers = 2});
  text::NeighbourWeighting neighbours = text::neighbour_weighting(weighting);
  const InstanceSource source{.dataset = records,
                              .weighting = weighting,
                              .neighbours = neighbours,
                              .network = network,
                              .activation = kernels::Activation::kRelu};
  Instances plain = build_instances(source, scalar(), compute);
  neighbours.local_scaling = 0.5F;
  const Instances scaled = build_instances(source, scalar(), compute);
  EXPECT_NE(scaled.value, plain.value);
  scale_locally(plain, kSeen, 0.5F, scalar(), compute);
  EXPECT_EQ(scaled.value, plain.value);
  EXPECT_TRUE(std::ranges::equal(scaled.hidden.span(), plain.hidden.span()));
}

}  // namespace
}  // namespace gossamer::sparse_engine
