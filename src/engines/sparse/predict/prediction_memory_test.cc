// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/prediction_memory.h"

#include <gtest/gtest.h>

namespace gossamer::sparse_engine {
namespace {

constexpr DataShape kShape{.records = 1'000'000,
                           .features = 50'000,
                           .labels = 80'000,
                           .feature_entries = 60'000'000,
                           .label_entries = 3'000'000};

// A run of kShape on `workers`.
struct Memory {
  std::uint64_t training = 0;    // alone
  std::uint64_t prediction = 0;  // alone
  std::uint64_t peak = 0;
};
Memory memory_of(const TrainConfig& config, const Recipe& recipe, int workers) {
  const std::uint64_t prediction = prediction_memory(config, recipe, kShape, workers);
  return {
      .training = memory_needed(config, recipe, kShape, {.workers = workers}),
      .prediction = prediction,
      .peak = memory_needed(config, recipe, kShape, {.workers = workers, .prediction_bytes = prediction})};
}

// Evaluation counts if it takes more than the moments did. With instances it takes at least the index's lists
// and, for each worker, 32 rows of cosines. Without instances it takes the labels as bytes.
TEST(PredictionMemory, CoversTheEvaluation) {
  TrainConfig config;
  config.predict.held_out = 0;
  config.optimizer.moments = MomentsKind::kElement;
  config.data.test = "test.txt";
  const auto recipe = derive_recipe(config, kShape);
  ASSERT_TRUE(recipe.ok());
  const std::uint64_t weights = std::uint64_t{130'000} * recipe->hidden * 4;
  const Memory two = memory_of(config, *recipe, 2);
  EXPECT_GT(two.peak, two.training);
  EXPECT_GT(two.peak, weights + std::uint64_t{60'000'000} * 16 + std::uint64_t{1'080'000} * recipe->hidden);
  EXPECT_GE(memory_of(config, *recipe, 8).peak, two.peak + std::uint64_t{6} * 32 * 1'000'000 * 4);
  config.predict.instances = false;
  const Memory net_alone = memory_of(config, *recipe, 2);
  EXPECT_GE(net_alone.prediction, std::uint64_t{80'000} * recipe->hidden);
  EXPECT_GT(net_alone.peak, 3 * weights);
  EXPECT_LT(net_alone.peak, two.peak);
}

// A run without test records and held-out records measures nothing. One of the two is enough to measure.
TEST(PredictionMemory, NothingToMeasure) {
  TrainConfig config;
  Recipe recipe{.hidden = 256};
  EXPECT_EQ(prediction_memory(config, recipe, kShape, 2), 0U);
  config.data.test = "test.txt";
  const std::uint64_t tested = prediction_memory(config, recipe, kShape, 2);
  EXPECT_GT(tested, 0U);
  config.data.test.clear();
  recipe.held_out = 10;
  EXPECT_EQ(prediction_memory(config, recipe, kShape, 2), tested);
}

}  // namespace
}  // namespace gossamer::sparse_engine
