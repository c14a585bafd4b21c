// SPDX-License-Identifier: Apache-2.0
#include "commands/train/word_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "commands/predict/prediction.h"
#include "commands/train/sparse_training.h"
#include "commands/train/test_small_run.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::write;
using testing::files_of;
using ::testing::HasSubstr;

// Two kinds of sentences that share no words but "the".
std::string sentences() {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    const std::string n = std::to_string(i % 3);
    text += i % 2 == 0 ? "the deer" + n + " eats green grass\n" : "the owl" + n + " hunts small mice\n";
  }
  return text;
}

sparse_engine::TrainConfig word_config() {
  sparse_engine::TrainConfig config;
  config.data = {.train = "/text.txt", .test = "/text.txt", .format = data::RecordFormat::kText};
  config.model.hidden = 16;
  config.model.activation = kernels::Activation::kIdentity;
  config.model.dropout = 0;
  config.train.batch = 32;
  config.train.steps = 60;
  config.train.warmup_steps = 2;
  config.predict.instances = false;
  config.checkpoint = {.every_steps = 10, .every_minutes = 0, .keep = 2};
  return config;
}

Result<TrainResult> train(const run::NodeHost& host, const sparse_engine::TrainConfig& config,
                          std::uint64_t stop_after) {
  std::uint64_t asked = 0;
  const auto stop = [&] { return ++asked > stop_after; };
  return run_training(host, {.directory = "/run",
                             .resume = run::Continue::kResume,
                             .config = config,
                             .settings = {},
                             .stop_requested = stop});
}

// CBOW and skip-gram learn which words go together. A stopped run goes on to the same model without the
// user's file. The model takes lines of words and knows its vectors' names.
TEST(WordSamples, EndToEndAndResumed) {
  for (const auto mode : {data::WindowMode::kCbow, data::WindowMode::kSkipGram}) {
    std::map<std::string, std::string> models[2];
    for (const bool interrupted : {false, true}) {
      SimMachine machine;
      write(machine.disk, "/text.txt", sentences());
      sparse_engine::TrainConfig config = word_config();
      config.word2vec.mode = mode;
      if (interrupted) {
        const auto stopped = train(machine.host(), config, 20);
        ASSERT_TRUE(stopped.ok() && stopped->stopped);
        EXPECT_TRUE(*machine.disk.exists("/run/cache/train.words.json"));
      }
      const auto done = train(machine.host(), config, UINT64_MAX);
      ASSERT_TRUE(done.ok()) << done.error().message();
      models[interrupted ? 1 : 0] = files_of(machine.disk, "/run/model");
      const auto model = open_model(machine.host(), "/run");
      ASSERT_TRUE(model.ok());
      EXPECT_EQ(model->task, "word2vec");
      EXPECT_EQ(model->activation, kernels::Activation::kIdentity);
      EXPECT_EQ(model->feature_names.bytes, model->label_names.bytes);
      EXPECT_EQ(model->label_names[0], "the");
      EXPECT_EQ(model->training_rows, 300U);
      const auto metrics = nlohmann::json::parse(done->summary)["metrics"];
      EXPECT_GT(metrics["hit@10"], 95) << metrics;
      QueryParser parser(*model);
      QueryBlock block;
      ASSERT_TRUE(parser.add("green grass unheard green", "here", block).ok());
      EXPECT_EQ(parser.unknown_features().unknown, 1U);
      ASSERT_EQ(block.rows().row(0).value.size(), 2U);
      EXPECT_FLOAT_EQ(block.rows().row(0).value[0] + block.rows().row(0).value[1], 1);
    }
    EXPECT_EQ(models[0], models[1]);
  }
}

// A text without two frequent words in a line, instances of windows, and test data of another kind are
// refused. The error says what to do.
TEST(WordSamples, Refuses) {
  const auto refused = [](const std::string& text, const sparse_engine::TrainConfig& config,
                          const char* part) {
    SimMachine machine;
    write(machine.disk, "/text.txt", text);
    write(machine.disk, "/test.jsonl", "{\"text\": \"a\", \"labels\": [\"b\"]}\n");
    const auto done = train(machine.host(), config, UINT64_MAX);
    ASSERT_FALSE(done.ok()) << part;
    EXPECT_THAT(done.error().message(), HasSubstr(part));
    EXPECT_FALSE(*machine.disk.exists("/run"));
  };
  refused("a b c d", word_config(), "no word of the text is frequent enough");
  refused("a\na\na\na\na\n", word_config(), "no two frequent words in one line");
  sparse_engine::TrainConfig config = word_config();
  config.data.test = "/test.jsonl";
  refused(sentences(), config, "plain text");
  config = word_config();
  config.predict.instances = true;
  EXPECT_THAT(sparse_engine::validate(config).error().message(), HasSubstr("predict.instances=false"));
}

// Claim: a sample has the word2vec.window words on each side of its word, and no more.
TEST(WordSamples, WindowsAreAsConfigured) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  for (const std::uint32_t window : {1U, 3U}) {
    data::TokenText text;
    for (std::uint32_t word = 0; word < 40; ++word) {
      text.token.push_back(word);
      text.words.push_back(std::to_string(word));
      text.count.push_back(1);
    }
    sparse_engine::TrainConfig config = word_config();
    config.word2vec = {.window = window, .shrink = false, .sample = 0};
    WordSamples samples(host, std::move(text), config);
    std::size_t most = 0;
    const data::Batch batch = samples.steps().read(StepNumber(0));
    for (std::size_t i = 0; i < batch.size(); ++i) most = std::max(most, batch.features.row(i).index.size());
    EXPECT_EQ(most, 2 * window);
  }
}

// The biases of frequent words get back what thinning these words out in training has hidden.
TEST(WordSamples, RestoresFrequencies) {
  SimMachine machine;
  data::TokenText text{.token = {}, .words = {"a", "b"}, .count = {900, 100}};
  for (int i = 0; i < 1000; ++i) text.token.push_back(i % 10 == 0 ? 1 : 0);
  sparse_engine::TrainConfig config = word_config();
  config.word2vec.sample = 0.01;
  const run::NodeHost host = machine.host();
  const WordSamples samples(host, std::move(text), config);
  sparse::Network network({.features = 2, .labels = 2, .hidden = 16}, sparse::Moments::kNone);
  samples.restore_frequencies(network);
  EXPECT_NEAR(network.bias[0], -0.5 * std::log(0.01 / 0.9), 1e-5);
  EXPECT_NEAR(network.bias[1], -0.5 * std::log(0.01 / 0.1), 1e-5);
}

}  // namespace
}  // namespace gossamer::commands
