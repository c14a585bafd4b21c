// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "engines/sparse/config/presets.h"
#include "settings/toml.h"

namespace gossamer::sparse_engine {
namespace {

using settings::Key;
using settings::KeyType;
using ::testing::HasSubstr;

Result<void> set_key(TrainConfig& config, std::string_view name, std::string_view text,
                     std::string_view where = {}) {
  return train_keys().set(
      config, {.name = std::string(name), .text = std::string(text), .where = std::string(where)});
}
std::string get_key(const TrainConfig& config, const Key& key) { return train_keys().get(config, key); }

// Every default of the table reads back through the table to the same config. So get and set are inverses,
// and every default lies in its own range.
TEST(Config, DefaultsRoundTripThroughText) {
  const TrainConfig defaults;
  TrainConfig copy;
  copy.seed = 99;
  for (const Key& key : train_keys().all()) {
    const std::string text = get_key(defaults, key);
    ASSERT_TRUE(set_key(copy, key.name, text).ok()) << key.name << " = " << text;
  }
  EXPECT_EQ(copy, defaults);
}

// A key changes its own field and no other. After one key is set to another value, all other keys still read
// as the default.
TEST(Config, EachKeyOwnsOneField) {
  const TrainConfig defaults;
  for (const Key& key : train_keys().all()) {
    TrainConfig config;
    const std::string before = get_key(defaults, key);
    std::string other;
    switch (key.type) {
      case KeyType::kSwitch: other = before == "true" ? "false" : "true"; break;
      case KeyType::kChoice:
        other = before == key.rules.choices[1] ? key.rules.choices[0] : key.rules.choices[1];
        break;
      case KeyType::kList: other = "64,32"; break;
      case KeyType::kText: other = "a b.txt"; break;
      case KeyType::kNumber: other = before == "0.5" ? "0.25" : "0.5"; break;
      case KeyType::kInteger:
        other = key.rules.max < 16 ? (before == "1" ? "0" : "1") : (before == "16" ? "32" : "16");
        break;
    }
    ASSERT_TRUE(set_key(config, key.name, other).ok()) << key.name << " = " << other;
    EXPECT_EQ(get_key(config, key), other) << key.name;
    for (const Key& rest : train_keys().all()) {
      if (rest.name == key.name) continue;
      EXPECT_EQ(get_key(config, rest), get_key(defaults, rest)) << rest.name << " after " << key.name;
    }
  }
}

// Names are unique, and every key has help and a description of what it takes.
TEST(Config, TableIsComplete) {
  std::set<std::string_view> names;
  for (const Key& key : train_keys().all()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_FALSE(settings::accepted_values(key).empty()) << key.name;
    EXPECT_EQ(key.type == KeyType::kChoice, key.rules.choices.size() > 1) << key.name;
    EXPECT_EQ(train_keys().find(key.name), &key);
  }
}

// Values outside of range, type or grammar are refused and leave the config as it was.
TEST(Config, RefusesBadValues) {
  const struct {
    const char* name;
    const char* text;
  } bad[] = {
      {"train.batch", "0"},
      {"train.batch", "65537"},
      {"train.batch", "-1"},
      {"train.batch", "256.0"},
      {"train.batch", "2 56"},
      {"train.batch", ""},
      {"train.batch", "auto"},
      {"model.hidden", "100"},
      {"model.hidden", "8"},
      {"model.dense", ""},
      {"model.dense", "100"},
      {"model.dense", "64,"},
      {"model.dense", "64, 32"},
      {"model.dense", "none,64"},
      {"model.dense", "16,16,16,16,16,16,16,16,16"},
      {"model.hidden", "4112"},
      {"model.dropout", "0.951"},
      {"model.dropout", "nan"},
      {"model.dropout", "-0.1"},
      {"train.lr", "0"},
      {"train.lr", "inf"},
      {"train.lr", "1e-3x"},
      {"loss.logq", "some"},
      {"loss.logq", "auto"},
      {"predict.instances", "yes"},
      {"seed", "9007199254740992"},
      {"seed", "18446744073709551616"},
      {"cluster.codec", "f16"},
      {"cluster.exchange", "statistics"},
      {"cluster.snapshot_every", "0"},
      {"cluster.copies", "64"},
      {"cluster.copies", "-1"},
  };
  for (const auto& [name, text] : bad) {
    TrainConfig config;
    const Result<void> result = set_key(config, name, text);
    ASSERT_FALSE(result.ok()) << name << " = " << text;
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(result.error().message(), HasSubstr(name));
    EXPECT_EQ(config, TrainConfig{}) << name << " = " << text;
  }
}

// The edges of a range are inside it.
TEST(Config, TakesTheEdges) {
  TrainConfig config;
  EXPECT_TRUE(set_key(config, "train.batch", "1").ok());
  EXPECT_TRUE(set_key(config, "train.batch", "65536").ok());
  EXPECT_TRUE(set_key(config, "model.hidden", "16").ok());
  EXPECT_TRUE(set_key(config, "model.hidden", "4096").ok());
  EXPECT_TRUE(set_key(config, "model.dense", "16,32,48,64,80,96,112,4096").ok());
  EXPECT_EQ(config.model.dense.size(), 8U);
  EXPECT_TRUE(set_key(config, "model.dense", "none").ok());
  EXPECT_TRUE(config.model.dense.empty());
  EXPECT_TRUE(set_key(config, "model.dropout", "0.95").ok());
  EXPECT_EQ(config.model.dropout, 0.95);
  EXPECT_TRUE(set_key(config, "model.hidden", "auto").ok());
  EXPECT_FALSE(config.model.hidden.has_value());
}

// An unknown key names the nearest one and carries the place it came from.
TEST(Config, UnknownKeyNamesTheNearest) {
  TrainConfig config;
  const struct {
    const char* wrong;
    const char* right;
  } cases[] = {{"train.bach", "train.batch"},
               {"train.batchh", "train.batch"},
               {"batch", "train.batch"},
               {"model.hiden", "model.hidden"},
               {"hidden", "model.hidden"},
               {"sede", "seed"},
               {"train.lrr", "train.lr"},
               {"checkpoint.every_step", "checkpoint.every_steps"},
               {"cluster.copys", "cluster.copies"},
               {"codec", "cluster.codec"}};
  for (const auto& [wrong, right] : cases) {
    const Result<void> result = set_key(config, wrong, "1", "my.toml:3:1");
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().where, "my.toml:3:1");
    EXPECT_THAT(result.error().expected, HasSubstr(std::string("'") + right + "'")) << wrong;
  }
}

// Contradictions between keys are refused; the defaults have none.
TEST(Config, ValidatesAcrossKeys) {
  TrainConfig config;
  EXPECT_TRUE(validate(config).ok());
  config.text.subword_min = 3;
  EXPECT_FALSE(validate(config).ok());
  config.text.subword_max = 3;
  EXPECT_TRUE(validate(config).ok());
  config = {};
  config.optimizer.beta1 = 0.999;
  config.optimizer.beta2 = 0.99;
  EXPECT_FALSE(validate(config).ok());
  config.optimizer.beta1 = 0.9375;
  config.optimizer.beta2 = 0.875;
  EXPECT_FALSE(validate(config).ok()) << "the square of beta1 is 0.8789";
  config.optimizer.beta2 = 0.890625;
  EXPECT_TRUE(validate(config).ok());
  config = {};
  config.train.sampled = 1;
  EXPECT_FALSE(validate(config).ok());
  config = {};
  config.train.negatives = sparse::Negatives::kUniform;
  EXPECT_FALSE(validate(config).ok());
  config.train.sampled = 1;
  EXPECT_TRUE(validate(config).ok());
  config = {};
  config.cluster.exchange = ExchangeKind::kDslide;
  EXPECT_TRUE(validate(config).ok());
  config.train.hard_negatives = 8;
  const Result<void> shared = validate(config);
  ASSERT_FALSE(shared.ok());
  EXPECT_THAT(shared.error().message(), HasSubstr("cluster.exchange"));
  config.train = {.negatives = sparse::Negatives::kLsh, .sampled = 256};
  config.lsh.sets = sparse::HashSets::kOwn;
  config.lsh.queries = config.train.batch;
  config.loss.logq = sparse::LogQ::kNone;
  EXPECT_TRUE(validate(config).ok());
}

// Claim: what windows of a text cannot do is refused by the name of its key. Other formats can do it.
TEST(Config, RefusesWhatWindowsCannot) {
  TrainConfig text;
  text.data.format = data::RecordFormat::kText;
  text.predict.instances = false;
  EXPECT_TRUE(validate(text).ok());
  for (const char* key : {"predict.instances", "predict.held_out", "train.input_dropout"}) {
    TrainConfig config = text;
    if (key == std::string("predict.instances")) config.predict.instances = true;
    if (key == std::string("predict.held_out")) config.predict.held_out = 5;
    if (key == std::string("train.input_dropout")) config.train.input_dropout = 0.5;
    const Result<void> refused = validate(config);
    ASSERT_FALSE(refused.ok()) << key;
    EXPECT_EQ(refused.error().where, key);
    EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
    config.data.format = data::RecordFormat::kJsonlText;
    EXPECT_TRUE(validate(config).ok()) << key;
  }
}

// The text of a run.toml reads back to an equal config, for defaults and for values that need quoting.
TEST(Config, RoundTripsThroughToml) {
  TrainConfig config;
  const auto back = [&] {
    return settings::read_config(train_keys(), settings::to_toml(train_keys().values(config)), "run.toml");
  };
  EXPECT_EQ(*back(), config);
  config.seed = 123456789;
  config.data.train = "a \"b\\c\" \n\x7f\xc3\xa9.txt";
  config.data.weighting = Weighting::kL2;
  config.model.hidden.reset();
  config.model.dropout = 0.1 + 0.2;
  config.train.epochs = 7.5;
  config.train.lr = 1e-5;
  config.optimizer.epsilon = 1e-30;
  config.predict.instances = false;
  EXPECT_EQ(*back(), config);
}

// A run.toml of an older program is read: keys that are no more have the value that every run has now.
TEST(Config, ReadsOlderRuns) {
  const auto read = [](std::string_view text) {
    return settings::read_config(train_keys(), text, "run.toml");
  };
  EXPECT_EQ(*read("[cluster]\nmicrobatches = 1\ncopies = 1\n"), TrainConfig());
  EXPECT_THAT(read("[cluster]\nmicrobatches = 2\n").error().message(),
              HasSubstr("run.toml:2:1: the key 'cluster.microbatches' was removed"));
  TrainConfig config;
  EXPECT_THAT(set_key(config, "cluster.microbatches", "1").error().message(),
              HasSubstr("leave cluster.microbatches out"));
}

// Every preset parses and is a valid config.
TEST(Presets, AreValid) {
  for (const Preset& preset : presets()) {
    const auto config = settings::read_config(train_keys(), preset.toml, preset.name);
    ASSERT_TRUE(config.ok()) << preset.name << ": " << config.error().message();
    EXPECT_TRUE(validate(*config).ok()) << preset.name;
    EXPECT_EQ(find_preset(preset.name), &preset);
  }
  EXPECT_EQ(find_preset("nothing"), nullptr);
}

}  // namespace
}  // namespace gossamer::sparse_engine
