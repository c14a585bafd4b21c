// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>

#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/test_random_model.h"
#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::sparse_engine {
namespace {

// A header of too many brackets is refused: where the format would stand, in a field, in one that nobody
// knows.
TEST(ModelJson, NestedTooDeeply) {
  const Model model = testing::random_model({.features = 9, .labels = 7, .hidden = 16});
  host::SimDisk disk;
  ASSERT_TRUE(save_model(disk, "m", model, {}).ok());
  const auto good = nlohmann::json::parse(*host::read_text(disk, "m/model.json"));
  for (const char* field : {"format", "task", "weighting", "metadata", "more"}) {
    nlohmann::json header = good;
    header[field] = "HERE";
    std::string text = header.dump();
    const std::size_t levels = 400'000;
    text.replace(text.find("\"HERE\""), 6, std::string(levels, '[') + std::string(levels, ']'));
    ASSERT_TRUE(host::replace_file(disk, "m/model.json", text).ok());
    const auto bad = load_model(disk, "m");
    ASSERT_FALSE(bad.ok()) << field;
    EXPECT_EQ(bad.error().kind, ErrorKind::kBadData) << field;
  }
}

// A header that is no JSON object is named with what it is: empty, cut off, or with a key twice, of which
// either could be meant.
TEST(ModelJson, NoHeader) {
  const Model model = testing::random_model({.features = 9, .labels = 7, .hidden = 16});
  host::SimDisk disk;
  ASSERT_TRUE(save_model(disk, "m", model, {}).ok());
  const std::string good = *host::read_text(disk, "m/model.json");
  const auto got = [&disk](const std::string& text) {
    EXPECT_TRUE(host::replace_file(disk, "m/model.json", text).ok());
    const auto bad = load_model(disk, "m");
    EXPECT_FALSE(bad.ok());
    EXPECT_EQ(bad.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(bad.error().where, "m/model.json");
    EXPECT_EQ(bad.error().what, "the file describes no model");
    EXPECT_FALSE(bad.error().fix.empty());
    return bad.error().got;
  };
  EXPECT_EQ(got(""), "an empty text");
  EXPECT_EQ(got("[]"), "JSON that is no object");
  EXPECT_EQ(got("{\"hidden\": 8," + good.substr(1)), "the key 'hidden' twice in one object");
  EXPECT_EQ(got(good.substr(0, good.size() / 2)).substr(0, 16), "no JSON, by byte");
}

// Claim: a featurizer holds at least one feature and fewer than 2^32 - 1, the number that names none. What
// is out of that is bad data, and names the field.
TEST(ModelJson, FeaturizerHoldsFeatures) {
  Model model = testing::random_model({.features = 9, .labels = 7, .hidden = 16, .text = true});
  for (const auto& [most, good] :
       {std::pair(0U, false), {1U, true}, {4294967294U, true}, {4294967295U, false}}) {
    model.featurizer->options.max_features = most;
    host::SimDisk disk;
    ASSERT_TRUE(save_model(disk, "m", model, {}).ok());
    const auto loaded = load_model(disk, "m");
    EXPECT_EQ(loaded.ok(), good) << most;
    if (loaded.ok()) continue;
    EXPECT_EQ(loaded.error().kind, ErrorKind::kBadData) << most;
    EXPECT_NE(loaded.error().message().find("featurizer.max_features"), std::string::npos) << most;
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
