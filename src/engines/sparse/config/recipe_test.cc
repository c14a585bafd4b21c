// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/config/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "learn/data/hold_out.h"

namespace gossamer::sparse_engine {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

DataShape shape(std::uint64_t records) {
  return {.records = records,
          .features = 1000,
          .labels = 500,
          .feature_entries = records * 20,
          .label_entries = records * 3};
}

// Every derived value has a reason. Given values are taken as they are, without one.
TEST(Recipe, DerivesOnlyWhatIsAuto) {
  TrainConfig config;
  config.model.hidden.reset();
  const auto derived = derive_recipe(config, shape(25'000));
  ASSERT_TRUE(derived.ok());
  EXPECT_THAT(derived->reasons, SizeIs(4));
  EXPECT_THAT(derived->reasons[2], HasSubstr("predict.held_out = 1250"));
  EXPECT_THAT(derived->reasons[3], HasSubstr("train.epochs = "));

  config.model.hidden = 64;
  config.model.dropout = 0.1;
  config.train.epochs = 2;
  config.predict.held_out = 0;
  const auto given = derive_recipe(config, shape(1000));
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(given->hidden, 64U);
  EXPECT_EQ(given->dropout, 0.1);
  EXPECT_EQ(given->steps, 8U);  // ceil(2 * 1000 / 256)
  EXPECT_THAT(given->reasons, IsEmpty());
}

// Steps count samples: a fraction of an epoch works, tiny sets get at least one step, train.steps wins.
TEST(Recipe, CountsSteps) {
  TrainConfig config;
  config.train.epochs = 0.1;
  EXPECT_EQ(derive_recipe(config, shape(10'000))->steps, 4U);
  EXPECT_EQ(derive_recipe(config, shape(1))->steps, 1U);
  config.train.steps = 77;
  EXPECT_EQ(derive_recipe(config, shape(10'000))->steps, 77U);
}

// Records are held out if a weight is to be learnt and there are enough records. Steps count the others.
TEST(Recipe, HoldsOutWhatTheWeightsNeed) {
  TrainConfig config;
  EXPECT_EQ(derive_recipe(config, shape(1999))->held_out, 0U);
  EXPECT_EQ(derive_recipe(config, shape(4000))->held_out, 200U);
  EXPECT_EQ(derive_recipe(config, shape(10'000'000))->held_out, 2000U);
  config.train.epochs = 256;
  const std::uint64_t kept = data::HoldOut(4000, 200).kept();
  EXPECT_EQ(derive_recipe(config, shape(4000))->steps, kept);
  config.predict.held_out = 3000;
  EXPECT_EQ(derive_recipe(config, shape(4000))->held_out, 2000U);  // never more than half
  config.predict.instances = false;
  EXPECT_EQ(derive_recipe(config, shape(4000))->held_out, 2000U);
  config.predict.held_out = std::nullopt;
  EXPECT_EQ(derive_recipe(config, shape(1999))->held_out, 0U);
  EXPECT_EQ(derive_recipe(config, shape(4000))->held_out, 80U) << "for calibration alone";
  EXPECT_EQ(derive_recipe(config, shape(10'000'000))->held_out, 1000U);

  TrainConfig by_hand;
  PredictConfig& predict = by_hand.predict;
  for (std::optional<double>* weight :
       {&predict.net_weight, &predict.centroid_weight, &predict.input_vote_weight, &predict.sharp_vote_weight,
        &predict.hidden_vote_weight}) {
    *weight = 1;
  }
  EXPECT_EQ(derive_recipe(by_hand, shape(4000))->held_out, 200U);  // one weight is still to be learnt
  predict.mixed_vote_weight = 1;
  EXPECT_EQ(derive_recipe(by_hand, shape(4000))->held_out, 0U);
}

// More records never mean more epochs, and never fewer steps.
TEST(Recipe, EpochsFallWithSize) {
  TrainConfig config;
  config.predict.held_out = 0;
  std::uint64_t steps_before = 0;
  double epochs_before = 1e9;
  for (const std::uint64_t records : {100ULL, 10'000ULL, 100'000ULL, 1'000'000ULL, 10'000'000ULL}) {
    const auto recipe = derive_recipe(config, shape(records));
    const double epochs = static_cast<double>(recipe->steps) * 256.0 / static_cast<double>(records);
    EXPECT_GT(recipe->steps, steps_before);
    EXPECT_LE(epochs, epochs_before * 1.01);
    steps_before = recipe->steps;
    epochs_before = std::max(epochs, 1.0);
  }
}

// A few thousand records get enough passes for a few hundred steps. A handful of records does not get endless
// passes.
TEST(Recipe, SmallSetsGetEnoughSteps) {
  TrainConfig config;
  config.predict.held_out = 0;
  const auto steps = [&config](std::uint64_t records, std::uint32_t batch) {
    config.train.batch = batch;
    return derive_recipe(config, shape(records))->steps;
  };
  EXPECT_EQ(steps(5'000, 64), 547U) << "7 epochs are enough";
  EXPECT_EQ(steps(5'000, 256), 391U) << "20 epochs";
  EXPECT_EQ(steps(5'000, 1024), 245U) << "no more than 50 epochs";
  EXPECT_EQ(steps(100, 256), 20U) << "likewise";
}

// Claim: windows of a text are not held out, however many they are. There is nothing to say of it.
TEST(Recipe, HoldsOutNoWindows) {
  TrainConfig config;
  config.data.format = data::RecordFormat::kText;
  config.predict.instances = false;
  const auto recipe = derive_recipe(config, shape(1'000'000));
  ASSERT_TRUE(recipe.ok());
  EXPECT_EQ(recipe->held_out, 0U);
  EXPECT_THAT(recipe->reasons, Each(Not(HasSubstr("held_out"))));
  EXPECT_THAT(recipe->reasons, Not(IsEmpty()));
}

// Claim: parameters are all weights and biases, those of further hidden layers, too.
TEST(Recipe, CountsParameters) {
  const Recipe recipe{.hidden = 16, .dense = {32, 48}};
  const sparse::NetworkShape deep = network_shape(recipe, 10, 5);
  EXPECT_EQ(parameter_count(deep), 10U * 16 + 32 * (16 + 1) + 48 * (32 + 1) + 5 * (48 + 1));
  EXPECT_EQ(parameter_count(network_shape({.hidden = 16}, 10, 5)), 10U * 16 + 5 * (16 + 1));
}

// Claim: a step has its positives and all that is drawn or found, and never more rows than labels.
TEST(Recipe, CountsActiveRows) {
  TrainConfig config;
  config.train.batch = 20;
  EXPECT_EQ(active_rows(config, shape(1000)), 60U);
  config.train.sampled = 100;
  EXPECT_EQ(active_rows(config, shape(1000)), 160U);
  config.train.hard_negatives = 10;
  EXPECT_EQ(active_rows(config, shape(1000)), 170U);
  config.train.batch = 200;
  EXPECT_EQ(active_rows(config, shape(1000)), 500U);
}

// Data that can train nothing is refused before any work, saying what is missing.
TEST(Recipe, RefusesEmptyData) {
  const TrainConfig config;
  DataShape no_labels = shape(10);
  no_labels.label_entries = 0;
  EXPECT_THAT(derive_recipe(config, no_labels).error().message(), HasSubstr("records without any label"));
  DataShape no_features = shape(10);
  no_features.feature_entries = 0;
  EXPECT_THAT(derive_recipe(config, no_features).error().message(), HasSubstr("records without any feature"));
  EXPECT_EQ(derive_recipe(config, shape(0)).error().kind, ErrorKind::kBadData);
}

// Claim: more steps than a row's clock can tell are refused, by the key that asks for them.
TEST(Recipe, RefusesMoreStepsThanRowsCount) {
  TrainConfig config;
  config.train.steps = 0xFFFF'FFFF;
  EXPECT_TRUE(derive_recipe(config, shape(1000)).ok());
  ++config.train.steps;
  EXPECT_EQ(derive_recipe(config, shape(1000)).error().where, "train.steps");
  config.train.steps = 0;
  config.train.batch = 1;
  config.train.epochs = 100'000;
  EXPECT_EQ(derive_recipe(config, shape(50'000)).error().where, "train.epochs");
}

// Claim: records that a model cannot keep are refused before the first step. A model without them has no such
// limit.
TEST(Recipe, RefusesMoreThanAModelKeeps) {
  constexpr std::uint64_t kMost = 0xFFFF'FFFF;
  for (std::uint64_t DataShape::* const entries : {&DataShape::feature_entries, &DataShape::label_entries}) {
    TrainConfig config;
    DataShape large = shape(100'000'000);
    large.feature_entries = kMost;
    large.label_entries = kMost;
    EXPECT_TRUE(derive_recipe(config, large).ok());
    ++(large.*entries);
    const auto refused = derive_recipe(config, large);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(refused.error().message(), HasSubstr("predict.instances=false"));
    config.predict.instances = false;
    EXPECT_TRUE(derive_recipe(config, large).ok());
  }
}

// The memory estimate holds the weights and moments of each table, the largest part by far.
TEST(Recipe, MemoryCoversTheTables) {
  TrainConfig config;
  constexpr std::uint64_t kFeatures = 135'909;
  constexpr std::uint64_t kLabels = 670'091;
  DataShape amazon{.records = 490'449,
                   .features = 135'909,
                   .labels = 670'091,
                   .feature_entries = 36'783'675,
                   .label_entries = 2'672'947};
  config.model.hidden = 128;
  config.predict.held_out = 0;
  config.predict.instances = false;  // instances would need more memory after training than moments in it
  const auto recipe = derive_recipe(config, amazon);
  const std::vector<std::pair<MomentsKind, std::uint64_t>> tables = {
      {MomentsKind::kElement, (kFeatures + kLabels) * 128 * 12},
      {MomentsKind::kEmbeddingBlock, kFeatures * (128 * 6 + 8 * 4) + kLabels * 128 * 12},
      {MomentsKind::kBlock, (kFeatures + kLabels) * (128 * 6 + 8 * 4)}};
  std::uint64_t beside = 0;
  for (const auto& [kind, bytes] : tables) {
    config.optimizer.moments = kind;
    const std::uint64_t needed = memory_needed(config, *recipe, amazon, {.workers = 2});
    EXPECT_GT(needed, bytes);
    EXPECT_LT(needed, bytes + (std::uint64_t{1} << 30));
    const std::uint64_t others = needed - bytes;
    beside = beside == 0 ? others : beside;
    EXPECT_NEAR(static_cast<double>(others), static_cast<double>(beside), 1e7);
  }
}

// Claim: the memory of a step counts: the scores of drawn labels, the table that they are drawn from, hash
// tables and further hidden layers.
TEST(Recipe, MemoryCoversTheStep) {
  DataShape data = shape(100'000);
  data.labels = 400'000;
  const auto needed = [&data](const TrainConfig& config) {
    return memory_needed(config, *derive_recipe(config, data), data, {.workers = 2});
  };
  TrainConfig config;
  config.predict.instances = false;
  config.predict.held_out = 0;
  config.train.batch = 1024;
  const std::uint64_t before = needed(config);

  TrainConfig draws = config;
  draws.train.negatives = sparse::Negatives::kUniform;
  draws.train.sampled = 100'000;
  EXPECT_EQ(needed(draws) - before, std::uint64_t{100'000} * 1024 * 4 + std::uint64_t{400'000} * 24);

  TrainConfig finds = config;
  finds.train.hard_negatives = 1;
  const std::uint64_t tables = table_memory(*derive_recipe(finds, data)->tables, 400'000, 2);
  EXPECT_EQ(needed(finds) - before, tables + std::uint64_t{1024} * 4);

  // The last layer stays as wide as the first one, so the output rows do. A dense layer has its weights, two
  // moments and two buffers for gradients.
  TrainConfig deep = config;
  deep.model.dense = {2048, 256};
  const std::uint64_t dense = 256 * 2048 + 2048 + 2048 * 256 + 256;
  EXPECT_GE(needed(deep) - before, 5 * dense * 4);
  EXPECT_LT(needed(deep) - before, 5 * dense * 4 + std::uint64_t{8} * 1024 * 8 * 4 * (2048 + 256));
}

// The moments are gone after training, so prediction counts if it takes more than they did with the step. No
// part of training grows with the workers.
TEST(Recipe, MemoryCoversThePrediction) {
  TrainConfig config;
  config.predict.instances = false;
  const DataShape data = shape(1'000'000);
  const auto recipe = derive_recipe(config, data);
  const std::uint64_t training = memory_needed(config, *recipe, data, {.workers = 2});
  EXPECT_EQ(memory_needed(config, *recipe, data, {.workers = 8}), training);
  EXPECT_EQ(memory_needed(config, *recipe, data, {.workers = 2, .prediction_bytes = 1}), training);
  const auto with = [&](std::uint64_t bytes) {
    return memory_needed(config, *recipe, data, {.workers = 2, .prediction_bytes = bytes});
  };
  constexpr std::uint64_t kMany = std::uint64_t{1} << 40;
  EXPECT_GT(with(kMany), kMany);
  EXPECT_EQ(with(2 * kMany) - with(kMany), kMany);
}

}  // namespace
}  // namespace gossamer::sparse_engine
