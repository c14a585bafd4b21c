// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "commands/lm/test_toy_stages.h"

namespace gossamer::commands {
namespace {

using ::testing::HasSubstr;

// Two windows of four tokens, through a toy.
BenchStage small_stage(const std::vector<std::string>& words = {}) {
  BenchStage options;
  std::vector<std::string> all = {"preset=tiny", "vocabulary=5", "windows=2", "context=4", "precision=f64"};
  all.insert(all.end(), words.begin(), words.end());
  for (const std::string& word : all) EXPECT_TRUE(bench_stage_keys().set_word(options, word).ok()) << word;
  return options;
}

// Toys, and what they were asked for.
struct AskedToys {
  std::vector<pipeline::TorchStageOptions> asked;

  OpenStages open() {
    return [this](const run::NodeHost&) -> Result<MakeStage> {
      return MakeStage([this](const pipeline::TorchStageOptions& options) {
        asked.push_back(options);
        return testing::make_toy(options);
      });
    };
  }
};

// A stage stands where it is asked to stand, in a model that has as few layers as that takes.
TEST(BenchStage, StandsInItsModel) {
  struct Case {
    const char* word;
    pipeline::StageCut cut;
  };
  for (const Case& one : {Case{"position=whole", {.first = 0, .last = 3, .layers = 3}},
                          Case{"position=first", {.first = 0, .last = 3, .layers = 4}},
                          Case{"position=middle", {.first = 1, .last = 4, .layers = 5}},
                          Case{"position=last", {.first = 1, .last = 4, .layers = 4}}}) {
    run::testing::SimMachine machine;
    AskedToys toys;
    const BenchStage options = small_stage({one.word, "layers=3", "trials=2", "warmup=1"});
    const auto result = bench_stage(machine.host(), options, toys.open());
    ASSERT_TRUE(result.ok()) << one.word << ": " << result.error().message();
    ASSERT_EQ(toys.asked.size(), 1U);
    EXPECT_EQ(toys.asked[0].cut, one.cut) << one.word;
    EXPECT_EQ(toys.asked[0].shape.context, 4U);
    EXPECT_EQ(result->tokens, 8U);
    EXPECT_EQ(result->parameters, pipeline::lm_parameters(toys.asked[0].shape, one.cut));
    EXPECT_GT(result->task_bytes, 0U);
  }
}

// Products that wait for all layers take more memory than those that are formed layer by layer.
TEST(BenchStage, LateProductsTakeMoreMemory) {
  run::testing::SimMachine machine;
  AskedToys toys;
  const auto early = bench_stage(machine.host(), small_stage({"layers=6", "products=early"}), toys.open());
  const auto late = bench_stage(machine.host(), small_stage({"layers=6", "products=late"}), toys.open());
  ASSERT_TRUE(early.ok() && late.ok());
  EXPECT_LT(early->task_bytes, late->task_bytes);
}

// Weights are written once for each trial, where that is asked for.
TEST(BenchStage, Updates) {
  for (const int updates : {4, 0}) {
    run::testing::SimMachine machine;
    testing::ToysAsked asked;
    const std::string update = updates > 0 ? "update=yes" : "update=no";
    const BenchStage options = small_stage({update, "trials=3", "warmup=1"});
    ASSERT_TRUE(bench_stage(machine.host(), options, testing::toys_that_tell(asked).stages).ok());
    EXPECT_EQ(asked.writes, updates);
  }
}

// The options stand beside the figures.
TEST(BenchStage, SaysWhatItMeasured) {
  run::testing::SimMachine machine;
  const auto result = bench_stage(machine.host(), small_stage(), testing::open_toys);
  ASSERT_TRUE(result.ok());
  const auto json = nlohmann::json::parse(to_json(*result, small_stage(), machine.host()));
  EXPECT_EQ(json["options"]["position"], "middle");
  EXPECT_EQ(json["options"]["keep"], "layer-inputs");
  EXPECT_EQ(json["tokens"], 8);
  EXPECT_THAT(to_text(*result), HasSubstr("microbatch of 8 tokens"));
}

// What cannot fit is refused before the module is opened, and a module that is not there is named.
TEST(BenchStage, RefusesWhatCannotBe) {
  run::testing::SimMachine machine;
  const BenchStage large = small_stage({"preset=swarm-1b", "layers=900", "context=0"});
  const auto refused = bench_stage(machine.host(), large, testing::open_nothing);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("lower layers"));
  const auto without = bench_stage(machine.host(), small_stage(), testing::open_nothing);
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.error().message(), HasSubstr("make torch"));
}

}  // namespace
}  // namespace gossamer::commands
