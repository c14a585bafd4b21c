// SPDX-License-Identifier: Apache-2.0
//
// Fields of model.json under their own names and with the words of docs/protocols/model.md, which programs of
// other versions read. The files that it names.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/test_random_model.h"
#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::sparse_engine {
namespace {

Model named_features() {
  return testing::random_model({.features = 9, .labels = 7, .hidden = 16, .rows = 6, .feature_names = true});
}

// Saves the model, loads it again, and returns both what was written and what was read.
std::pair<nlohmann::json, Model> there_and_back(const Model& model) {
  host::SimDisk disk;
  EXPECT_TRUE(save_model(disk, "m", model, {}).ok());
  auto loaded = load_model(disk, "m");
  EXPECT_TRUE(loaded.ok()) << loaded.error().message();
  return {nlohmann::json::parse(*host::read_text(disk, "m/model.json")), *std::move(loaded)};
}

// Claim: each of the two calibrations is written under its own name and comes back, alone and beside the
// other one. All numbers of the fusion do.
TEST(ModelFields, Fusion) {
  for (const bool whole : {true, false}) {
    for (const bool net : {true, false}) {
      Model model = named_features();
      FusionOptions& fusion = model.fusion;
      if (whole) fusion.calibration = Calibration{.log = 0.75F, .rest = 0, .offset = -1.25F};
      if (net) fusion.net_calibration = Calibration{.log = 0.25F, .rest = 3, .offset = 0.5F};
      fusion.candidates = 31;
      fusion.neighbours = 32;
      fusion.weights = {{1, 2, 3, 4, 5, 6}};
      fusion.input_vote_power = 11;
      fusion.sharp_vote_power = 12;
      fusion.hidden_vote_power = 13;
      fusion.mixed_vote_power = 14;
      fusion.vote_floor = 0.125F;
      const auto [written, read] = there_and_back(model);
      EXPECT_EQ(read.fusion, fusion);
      const auto& json = written["fusion"];
      EXPECT_EQ(json.contains("calibration"), whole);
      EXPECT_EQ(json.contains("net_calibration"), net);
      if (whole) {
        EXPECT_EQ(json["calibration"], (nlohmann::json{{"log", 0.75}, {"rest", 0}, {"offset", -1.25}}));
      }
      if (net) {
        EXPECT_EQ(json["net_calibration"], (nlohmann::json{{"log", 0.25}, {"rest", 3}, {"offset", 0.5}}));
      }
      EXPECT_EQ(json["weights"],
                (nlohmann::json{
                    {"net", 1}, {"centroid", 2}, {"input", 3}, {"sharp", 4}, {"hidden", 5}, {"mixed", 6}}));
      EXPECT_EQ(json["input_vote_power"], 11);
      EXPECT_EQ(json["sharp_vote_power"], 12);
      EXPECT_EQ(json["hidden_vote_power"], 13);
      EXPECT_EQ(json["mixed_vote_power"], 14);
    }
  }
}

// Claim: each word stands for the value of its name, and comes back.
TEST(ModelFields, Words) {
  for (const auto& [activation, word] : {std::pair(kernels::Activation::kRelu, "relu"),
                                         {kernels::Activation::kIdentity, "identity"},
                                         {kernels::Activation::kTanh, "tanh"}}) {
    Model model = named_features();
    model.activation = activation;
    const auto [written, read] = there_and_back(model);
    EXPECT_EQ(written["activation"], word);
    EXPECT_EQ(read.activation, activation) << word;
  }
  for (const auto& [counts, word] : {std::pair(text::CountScale::kLinear, "linear"),
                                     {text::CountScale::kLog, "log"},
                                     {text::CountScale::kDoubleLog, "double-log"}}) {
    Model model = named_features();
    model.weighting.counts = counts;
    model.neighbours.counts = text::CountScale::kLog;
    const auto [written, read] = there_and_back(model);
    EXPECT_EQ(written["weighting"]["counts"], word);
    EXPECT_EQ(written["instances"]["weighting"]["counts"], "log");
    EXPECT_EQ(read.weighting.counts, counts) << word;
    EXPECT_EQ(read.neighbours.counts, text::CountScale::kLog) << word;
  }
  for (const auto& [scale, word] :
       {std::pair(data::LineScale::kLength, "length"), {data::LineScale::kSum, "sum"}}) {
    Model model = named_features();
    model.line = data::LineShape{.last = 3, .decay = 0.5F, .scale = scale};
    const auto [written, read] = there_and_back(model);
    EXPECT_EQ(written["line"]["scale"], word);
    EXPECT_EQ(read.line, model.line) << word;
  }
}

// Claim: what is off comes back as off: lengths that are kept as they are, and words without their stems.
TEST(ModelFields, Switches) {
  for (const bool on : {true, false}) {
    Model model = testing::random_model({.features = 9, .labels = 7, .hidden = 16, .rows = 6, .text = true});
    model.weighting.l2 = on;
    model.featurizer->options.stems = on;
    const auto [written, read] = there_and_back(model);
    EXPECT_EQ(read.weighting.l2, on);
    ASSERT_TRUE(read.featurizer);
    EXPECT_EQ(read.featurizer->options.stems, on);
    EXPECT_EQ(written["weighting"]["l2"], on);
  }
}

// Claim: a whole file with content that no training writes is bad data, and the error says which: a feature
// that is too long for a word or a part of one, two labels of one name, an idf below 0 or of no feature. What
// is as long as it may be is read.
TEST(ModelFields, RefusesWhatNoTrainingWrites) {
  const auto text_model = [] {
    Model model = testing::random_model({.features = 9, .labels = 7, .hidden = 16, .rows = 6, .text = true});
    model.featurizer->options = {.subword_min = 3, .subword_max = 3};
    return model;
  };
  const auto load = [](const Model& model, const std::function<void(nlohmann::json&)>& change = {}) {
    host::SimDisk disk;
    EXPECT_TRUE(save_model(disk, "m", model, {}).ok());
    auto json = nlohmann::json::parse(*host::read_text(disk, "m/model.json"));
    if (change) change(json);
    EXPECT_TRUE(host::replace_file(disk, "m/model.json", json.dump()).ok());
    return load_model(disk, "m");
  };
  const auto refused = [](const Result<Model>& loaded, const std::string& tensor, const std::string& got) {
    ASSERT_FALSE(loaded.ok()) << got;
    EXPECT_EQ(loaded.error().kind, ErrorKind::kBadData);
    EXPECT_NE(loaded.error().message().find(tensor), std::string::npos) << loaded.error().message();
    EXPECT_NE(loaded.error().got.find(got), std::string::npos) << loaded.error().message();
  };
  Model model = text_model();
  std::vector<std::string>& features = model.featurizer->features;
  for (const std::size_t bytes : {129U, 500U}) {
    features[4] = std::string(bytes, 'x');
    refused(load(model), "featurizer.features.bytes", "bytes, feature 4");
  }
  features[4] = std::string(129, 'x') + "+";
  refused(load(model), "featurizer.features.bytes", "of 130 bytes, feature 4");
  features[4] = std::string(128, 'x') + "+";
  features[5] = std::string(128, 'x');
  const Result<Model> longest = load(model);
  ASSERT_TRUE(longest.ok()) << longest.error().message();
  EXPECT_EQ(text::Featurizer(*longest->featurizer).size(), features.size());

  model = text_model();
  model.label_names = {};
  for (const char* name : {"L0", "L1", "L0", "L3", "L4", "L5", "L6"}) model.label_names.add(name);
  refused(load(model), "label_names.bytes", "'L0' twice, as 0 and 2");

  model = text_model();
  model.weighting.idf[3] = -1;
  refused(load(model), "weighting.idf", "-1 at 3");
  model.weighting.idf.clear();
  EXPECT_TRUE(load(model).ok());
  refused(load(model, [](nlohmann::json& j) { j["weighting"]["idf"] = true; }), "weighting.idf", "0 numbers");
}

// Claim: no shard passes the limit, unless it has a single tensor.
TEST(ModelFields, ShardsKeepTheLimit) {
  constexpr std::uint64_t kLimit = 700;
  host::SimDisk disk;
  ASSERT_TRUE(save_model(disk, "m", named_features(), {.max_shard_bytes = kLimit}).ok());
  const auto opened = open_model_header(disk, "m");
  ASSERT_TRUE(opened.ok());
  ASSERT_GT(opened->header.shards.size(), 2U);
  std::size_t several = 0;
  for (const tensors::ShardEntry& shard : opened->header.shards) {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    const auto done = tensors::read_shard(
        disk, opened->directory, shard,
        [&](const std::string&, const std::string&, const tensors::TensorView& tensor) -> Result<void> {
          ++count;
          bytes += tensor.bytes.size();
          return {};
        });
    ASSERT_TRUE(done.ok());
    EXPECT_TRUE(count == 1 || bytes <= kLimit) << shard.file << " " << bytes;
    several += count > 1 ? 1 : 0;
  }
  EXPECT_GT(several, 0U);
}

// Claim: a check of the files finds any that is gone, cut off or changed, and names it.
TEST(ModelFields, ChecksTheFiles) {
  host::SimDisk disk;
  ASSERT_TRUE(save_model(disk, "m", named_features(), {.max_shard_bytes = 700}).ok());
  EXPECT_TRUE(check_model_files(disk, "m").ok());
  const auto names = disk.list("m");
  ASSERT_TRUE(names.ok());
  ASSERT_GT(names->size(), 3U);
  for (const std::string& name : *names) {
    const std::string path = "m/" + name;
    const std::string good = *host::read_text(disk, path);
    std::string changed = good;
    changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 0x40);
    const auto found = [&] {
      const auto checked = check_model_files(disk, "m");
      return !checked.ok() && checked.error().message().find(name) != std::string::npos;
    };
    ASSERT_TRUE(disk.remove_all(path).ok());
    EXPECT_TRUE(found()) << name << " is gone";
    ASSERT_TRUE(host::replace_file(disk, path, good.substr(0, good.size() / 2)).ok());
    EXPECT_TRUE(found()) << name << " is cut off";
    if (name != "model.json") {
      ASSERT_TRUE(host::replace_file(disk, path, changed).ok());
      EXPECT_TRUE(found()) << name << " is changed";
    }
    ASSERT_TRUE(host::replace_file(disk, path, good).ok());
  }
  EXPECT_TRUE(check_model_files(disk, "m").ok());
}

}  // namespace
}  // namespace gossamer::sparse_engine
