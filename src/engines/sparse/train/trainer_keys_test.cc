// SPDX-License-Identifier: Apache-2.0
//
// Keys of a configuration on their way to what computes a step. Each has a value of its own that is not the
// default, so that none can stand in another's place.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engines/sparse/config/config.h"
#include "engines/sparse/config/negatives_plan.h"
#include "engines/sparse/config/recipe.h"
#include "engines/sparse/train/trainer.h"
#include "learn/data/in_memory_dataset.h"

namespace gossamer::sparse_engine {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 37> kShapingKeys = {{
    {"seed", "7"},
    {"model.hidden", "48"},
    {"model.dense", "64,32"},
    {"model.activation", "tanh"},
    {"model.dropout", "0.25"},
    {"model.embedding_init", "0.5"},
    {"model.output_init", "0.125"},
    {"train.steps", "77"},
    {"train.batch", "24"},
    {"train.lr", "0.75"},
    {"train.warmup_steps", "9"},
    {"train.schedule", "cosine"},
    {"train.negatives", "frequency"},
    {"train.sampled", "40"},
    {"train.frequency_exponent", "0.375"},
    {"train.hard_negatives", "60"},
    {"train.hard_after", "0.2"},
    {"train.precision", "bf16"},
    {"loss.logq", "all"},
    {"optimizer.beta1", "0.8125"},
    {"optimizer.beta2", "0.9375"},
    {"optimizer.epsilon", "0.03125"},
    {"optimizer.skipped", "decay"},
    {"optimizer.moments", "block"},
    {"lsh.family", "winner"},
    {"lsh.functions", "3"},
    {"lsh.tables", "11"},
    {"lsh.key_bits", "6"},
    {"lsh.queries", "8"},
    {"lsh.select", "random"},
    {"lsh.sets", "own"},
    {"lsh.bucket", "13"},
    {"lsh.tolerance", "0.0625"},
    {"lsh.update_every", "17"},
    {"lsh.update_growth", "1.5"},
    // They go elsewhere: recipe.h counts the steps of epochs, batch_reader.h leaves out features.
    {"train.epochs", "3"},
    {"train.input_dropout", "0.875"},
}};

class TrainerKeys : public ::testing::Test {
 protected:
  TrainerKeys() {
    for (const auto& [name, text] : kShapingKeys)
      EXPECT_TRUE(train_keys().set(config_, {.name = std::string(name), .text = std::string(text)}).ok());
    const DataShape shape{
        .records = 500, .features = 300, .labels = 200, .feature_entries = 4000, .label_entries = 900};
    recipe_ = *derive_recipe(config_, shape);
  }

  TrainConfig config_;
  Recipe recipe_;
};

// Claim: no key of these groups is missing here. A new one is missed until it is listed.
TEST_F(TrainerKeys, AreAllOfThem) {
  std::set<std::string_view> named;
  for (const auto& [name, text] : kShapingKeys) {
    EXPECT_TRUE(named.insert(name).second) << name;
    EXPECT_NE(train_keys().get(TrainConfig(), *train_keys().find(name)), text) << name;
  }
  for (const settings::Key& key : train_keys().all()) {
    for (const std::string_view group : {"model.", "train.", "loss.", "optimizer.", "lsh."}) {
      if (key.name.starts_with(group)) {
        EXPECT_TRUE(named.contains(key.name)) << key.name;
      }
    }
  }
}

// Claim: the learner gets each key that is its own.
TEST_F(TrainerKeys, OfTheLearner) {
  const sparse::LearnerOptions learner = learner_options(config_, recipe_);
  EXPECT_EQ(learner.batch_max, 24U);
  EXPECT_EQ(learner.activation, kernels::Activation::kTanh);
  EXPECT_EQ(learner.dropout, 0.25);
  EXPECT_EQ(learner.negatives.kind, sparse::Negatives::kFrequency);
  EXPECT_EQ(learner.negatives.sampled, 40U);
  EXPECT_EQ(learner.negatives.exponent, 0.375);
  EXPECT_EQ(learner.logq, sparse::LogQ::kAll);
  EXPECT_EQ(learner.element, kernels::Element::kBf16);
  EXPECT_EQ(learner.optimizer.kind, sparse::OptimizerKind::kAdam);
  EXPECT_EQ(learner.optimizer.beta1, 0.8125);
  EXPECT_EQ(learner.optimizer.beta2, 0.9375);
  EXPECT_EQ(learner.optimizer.epsilon, 0.03125);
  EXPECT_EQ(learner.optimizer.skipped, sparse::SkippedSteps::kDecay);
  EXPECT_EQ(learner.seed, 7U);
}

// Claim: schedule, network and first weights get each key that is their own.
TEST_F(TrainerKeys, OfTheNetwork) {
  const sparse::Schedule schedule = schedule_of(config_, recipe_);
  EXPECT_EQ(schedule.peak, 0.75);
  EXPECT_EQ(schedule.warmup_steps, 9U);
  EXPECT_EQ(schedule.total_steps, 77U);
  EXPECT_EQ(schedule.decay, sparse::Decay::kCosine);
  const sparse::NetworkShape shape = network_shape(recipe_, 300, 200);
  EXPECT_EQ(shape.features, 300U);
  EXPECT_EQ(shape.labels, 200U);
  EXPECT_EQ(shape.hidden, 48U);
  EXPECT_EQ(shape.dense, (std::vector<std::size_t>{64, 32}));
  const sparse::NetworkInit init = network_init(config_);
  EXPECT_EQ(init.embedding_stddev, 0.5F);
  EXPECT_EQ(init.output_stddev, 0.125F);
  EXPECT_EQ(init.dense_gain, 1.0F) << "of tanh";
  EXPECT_EQ(init.seed, 7U);
  EXPECT_GT(network_init({}).dense_gain, 1.4F) << "of relu";
  const sparse::TableMoments moments = table_moments(config_.optimizer.moments);
  EXPECT_EQ(moments.embedding, sparse::Moments::kBlock);
  EXPECT_EQ(moments.output, sparse::Moments::kBlock);
}

// Claim: the hash tables get each key that is their own.
TEST_F(TrainerKeys, OfTheHashTables) {
  ASSERT_EQ(recipe_.tables, (TablePlan{.functions = 3, .tables = 11, .key_bits = 6}));
  const sparse::HashNegativeOptions hashed = hash_negative_options(config_, *recipe_.tables, recipe_.steps);
  EXPECT_EQ(hashed.kind, sparse::HashKind::kWinner);
  EXPECT_EQ(hashed.functions, 3U);
  EXPECT_EQ(hashed.tables, 11U);
  EXPECT_EQ(hashed.key_bits, 6U);
  EXPECT_EQ(hashed.selection, sparse::HashSelection::kRandom);
  EXPECT_EQ(hashed.sets, sparse::HashSets::kOwn);
  EXPECT_EQ(hashed.queries, 8U);
  EXPECT_EQ(hashed.found, 60U);
  EXPECT_EQ(hashed.bucket_cap, 13U);
  EXPECT_EQ(hashed.tolerance, 0.0625);
  EXPECT_EQ(hashed.first_step, 15U) << "of 77";
  EXPECT_EQ(hashed.update_every, 17U);
  EXPECT_EQ(hashed.update_growth, 1.5);
  EXPECT_EQ(hashed.seed, 7U);
}

// Claim: a run keeps its fingerprint from program to program, whatever becomes of its keys' helps and of keys
// that do not shape the network. Else its checkpoints would be refused.
TEST_F(TrainerKeys, HaveTheFingerprintOfOlderPrograms) {
  const data::InMemoryDataset schema({.features = 300, .labels = 200});
  const auto fingerprint = [&](const TrainConfig& config) {
    return run_fingerprint(config, recipe_, schema).substr(0, 16);
  };
  EXPECT_EQ(fingerprint({}), "6711da735c4f28d9");
  EXPECT_EQ(fingerprint(config_), "fed05145e89e2f87");
  TrainConfig other;
  other.data.train = "elsewhere";
  other.checkpoint.keep = 9;
  other.predict.held_out = 7;
  other.cluster.copies = 3;
  EXPECT_EQ(fingerprint(other), fingerprint({}));
}

}  // namespace
}  // namespace gossamer::sparse_engine
