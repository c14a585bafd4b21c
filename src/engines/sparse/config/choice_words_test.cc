// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <initializer_list>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "engines/sparse/config/config.h"

namespace gossamer::sparse_engine {
namespace {

class ChoiceWords : public ::testing::Test {
 protected:
  ChoiceWords() {
    for (const settings::Key& key : train_keys().all()) {
      if (key.type == settings::KeyType::kChoice) open_.insert(key.name);
    }
  }

  // The key takes these words and no others, and lists them in this order. Each sets the field that `get`
  // reads to its value, and is what the field reads back as.
  template <class E, class Get>
  void expect(std::string_view name, Get get, std::initializer_list<std::pair<std::string_view, E>> words) {
    const settings::Key* const key = train_keys().find(name);
    ASSERT_NE(key, nullptr) << name;
    std::string listed = key->is_optional ? "auto" : "";
    for (const auto& [word, value] : words) {
      const bool last = word == std::prev(words.end())->first;
      listed += (listed.empty() ? "" : last ? " or " : ", ") + std::string(word);
      TrainConfig config;
      ASSERT_TRUE(train_keys().set(config, {.name = std::string(name), .text = std::string(word)}).ok())
          << name << " = " << word;
      EXPECT_TRUE(get(config) == value) << name << " = " << word;
      EXPECT_EQ(train_keys().get(config, *key), word) << name;
    }
    EXPECT_EQ(settings::accepted_values(*key), listed) << name;
    open_.erase(name);
  }

  void expect_records();
  void expect_training();
  void expect_hash_tables();
  void expect_others();

  std::set<std::string_view> open_;  // keys that nothing was expected of
};

void ChoiceWords::expect_records() {
  expect<data::RecordFormat>("data.format", [](const TrainConfig& c) { return c.data.format; },
                             {{"xmc", data::RecordFormat::kXmc},
                              {"jsonl", data::RecordFormat::kJsonlText},
                              {"sessions", data::RecordFormat::kSessions},
                              {"text", data::RecordFormat::kText}});
  expect<Weighting>("data.weighting", [](const TrainConfig& c) { return c.data.weighting; },
                    {{"none", Weighting::kNone}, {"tfidf", Weighting::kTfIdf}, {"l2", Weighting::kL2}});
  expect<data::WindowMode>("word2vec.mode", [](const TrainConfig& c) { return c.word2vec.mode; },
                           {{"cbow", data::WindowMode::kCbow}, {"skip-gram", data::WindowMode::kSkipGram}});
  expect<ComparisonKind>("predict.weighting", [](const TrainConfig& c) { return c.predict.weighting; },
                         {{"own", ComparisonKind::kOwn}, {"net", ComparisonKind::kNet}});
}

void ChoiceWords::expect_training() {
  expect<kernels::Activation>("model.activation", [](const TrainConfig& c) { return c.model.activation; },
                              {{"relu", kernels::Activation::kRelu},
                               {"identity", kernels::Activation::kIdentity},
                               {"tanh", kernels::Activation::kTanh}});
  expect<sparse::Decay>("train.schedule", [](const TrainConfig& c) { return c.train.schedule; },
                        {{"linear", sparse::Decay::kLinear},
                         {"cosine", sparse::Decay::kCosine},
                         {"constant", sparse::Decay::kConstant}});
  expect<sparse::Negatives>("train.negatives", [](const TrainConfig& c) { return c.train.negatives; },
                            {{"in-batch", sparse::Negatives::kInBatch},
                             {"uniform", sparse::Negatives::kUniform},
                             {"frequency", sparse::Negatives::kFrequency},
                             {"lsh", sparse::Negatives::kLsh}});
  expect<kernels::Element>("train.precision", [](const TrainConfig& c) { return c.train.precision; },
                           {{"f32", kernels::Element::kF32}, {"bf16", kernels::Element::kBf16}});
  expect<sparse::LogQ>(
      "loss.logq", [](const TrainConfig& c) { return c.loss.logq; },
      {{"all", sparse::LogQ::kAll}, {"exact", sparse::LogQ::kExact}, {"none", sparse::LogQ::kNone}});
}

void ChoiceWords::expect_hash_tables() {
  expect<sparse::HashKind>("lsh.family", [](const TrainConfig& c) { return c.lsh.family; },
                           {{"simhash", sparse::HashKind::kSimHash}, {"winner", sparse::HashKind::kWinner}});
  expect<sparse::HashSelection>(
      "lsh.select", [](const TrainConfig& c) { return c.lsh.select; },
      {{"best", sparse::HashSelection::kBest}, {"random", sparse::HashSelection::kRandom}});
  expect<sparse::HashSets>("lsh.sets", [](const TrainConfig& c) { return c.lsh.sets; },
                           {{"shared", sparse::HashSets::kShared}, {"own", sparse::HashSets::kOwn}});
}

void ChoiceWords::expect_others() {
  expect<sparse::SkippedSteps>("optimizer.skipped", [](const TrainConfig& c) { return c.optimizer.skipped; },
                               {{"hold", sparse::SkippedSteps::kHold},
                                {"decay", sparse::SkippedSteps::kDecay},
                                {"decay-and-move", sparse::SkippedSteps::kDecayAndMove}});
  expect<MomentsKind>("optimizer.moments", [](const TrainConfig& c) { return c.optimizer.moments; },
                      {{"element", MomentsKind::kElement},
                       {"embedding-block", MomentsKind::kEmbeddingBlock},
                       {"block", MomentsKind::kBlock}});
  expect<net::Codec>("cluster.codec", [](const TrainConfig& c) { return c.cluster.codec; },
                     {{"f32", net::Codec::kF32}, {"bf16", net::Codec::kBf16}, {"int8", net::Codec::kInt8}});
  expect<ExchangeKind>("cluster.exchange", [](const TrainConfig& c) { return c.cluster.exchange; },
                       {{"shares", ExchangeKind::kShares}, {"dslide", ExchangeKind::kDslide}});
}

// Each word of each choice means the enum's value of that name, in the order in which help lists the words.
TEST_F(ChoiceWords, MeanTheirValues) {
  expect_records();
  expect_training();
  expect_hash_tables();
  expect_others();
  EXPECT_TRUE(open_.empty()) << *open_.begin();
}

// Words that are names elsewhere are the same there.
TEST_F(ChoiceWords, AreTheNamesOfTheirValues) {
  TrainConfig config;
  for (const std::string_view word : net::kF32CodecNames) {
    ASSERT_TRUE(
        train_keys().set(config, {.name = std::string("cluster.codec"), .text = std::string(word)}).ok())
        << word;
    EXPECT_EQ(net::name(config.cluster.codec), word);
  }
  for (const std::string_view word : {"f32", "bf16"}) {
    ASSERT_TRUE(
        train_keys().set(config, {.name = std::string("train.precision"), .text = std::string(word)}).ok())
        << word;
    EXPECT_EQ(kernels::name(*config.train.precision), word);
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
