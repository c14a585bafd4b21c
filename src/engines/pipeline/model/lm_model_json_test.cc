// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/model/lm_model_json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

#include "engines/pipeline/model/test_toy_lm.h"

namespace gossamer::pipeline {
namespace {

using LmTestJson = nlohmann::json;
using Pointer = LmTestJson::json_pointer;

const tensors::WrittenShards kOneFile{.shards = {{.file = tensors::shard_name(0, 1), .bytes = 10, .xxh3 = 7}},
                                      .total_size = 9,
                                      .weight_map = {}};

std::string header_text(const LmAbout& about) {
  return format_lm_header(about, tensors::DType::kF64, kOneFile);
}
Result<LmHeader> parsed(const LmTestJson& json) { return parse_lm_header("m/model.json", json.dump()); }

// Claim: all that is told comes back, for each word of a shape.
TEST(LmModelJson, ComesBack) {
  std::vector<LmAbout> all(6, ToyLm::about());
  all[1].shape.activation = LmActivation::kSwiGlu;
  all[2].shape.norm = LmNorm::kRms;
  all[3].shape.positions = LmPositions::kRotary;
  all[4].shape.biases = LmBiases::kNone;
  all[5].shape.biases = LmBiases::kAll;
  all[2].shape = {.vocabulary = 50'257,
                  .context = 1024,
                  .width = 768,
                  .heads = 12,
                  .hidden = 3072,
                  .layers = 12,
                  .applied = 3};
  all[3].steps = std::uint64_t{1} << 53U;
  all[4].tokenizer = {.name = "other words", .digest = ~std::uint64_t{0}};
  for (const LmAbout& about : all) {
    const auto header = parse_lm_header("m/model.json", header_text(about));
    ASSERT_TRUE(header.ok()) << header.error().message();
    EXPECT_EQ(header->about, about);
    EXPECT_EQ(header->dtype, tensors::DType::kF64);
    ASSERT_EQ(header->shards.size(), 1U);
    EXPECT_EQ(header->shards[0].xxh3, 7U);
  }
}

// Claim: the file has the names and words of docs/protocols/model.md, which other programs read.
TEST(LmModelJson, HasTheWordsOfThePage) {
  LmAbout about = ToyLm::about();
  about.shape.biases = LmBiases::kAllButKey;
  const LmTestJson json = LmTestJson::parse(header_text(about));
  const LmTestJson right = LmTestJson::parse(R"({
    "format": 1, "engine": "lm", "dtype": "F64", "steps": 17,
    "model": {"vocabulary": 5, "context": 3, "width": 4, "heads": 2, "hidden": 6, "layers": 2, "applied": 1,
              "activation": "gelu", "norm": "layer", "positions": "learned", "biases": "no-key"},
    "tokenizer": {"name": "bytes", "digest": "0000000000abcdef"},
    "shards": [{"file": "model-00001-of-00001.safetensors", "bytes": 10, "xxh3": "0000000000000007"}],
    "metadata": {"total_size": 9}, "weight_map": {}})");
  EXPECT_EQ(json, right) << json;
}

// Claim: each field that is missing or of another type is refused and named.
TEST(LmModelJson, RefusesFieldsThatAreMissingOrOfAnotherType) {
  const LmTestJson good = LmTestJson::parse(header_text(ToyLm::about()));
  ASSERT_TRUE(parsed(good).ok());
  std::vector<Pointer> fields;
  for (const auto& [key, value] : good.items()) {
    if (key == "metadata" || key == "weight_map") continue;  // for other tools
    fields.push_back(Pointer("/" + key));
    if (!value.is_object()) continue;
    for (const auto& [inner, unused] : value.items()) fields.push_back(Pointer("/" + key + "/" + inner));
  }
  EXPECT_EQ(fields.size(), 7U + 11 + 2);
  for (const Pointer& field : fields) {
    const std::string name = field.back();
    std::vector<LmTestJson> wrong(4, good);
    wrong[0].at(field.parent_pointer()).erase(name);
    wrong[1][field] = LmTestJson::array();
    wrong[2][field] = true;
    wrong[3][field] = good[field].is_string() ? LmTestJson(3) : LmTestJson("3");
    for (const LmTestJson& json : wrong) {
      const auto bad = parsed(json);
      ASSERT_FALSE(bad.ok()) << json;
      EXPECT_TRUE(bad.error().kind == ErrorKind::kBadData || name == "format") << bad.error().message();
      EXPECT_EQ(bad.error().where, "m/model.json");
      EXPECT_NE(bad.error().message().find(name), std::string::npos) << bad.error().message();
      EXPECT_FALSE(bad.error().fix.empty());
    }
  }
}

// Claim: fields that a reader does not know change nothing. Earlier builds wrote "held_out".
TEST(LmModelJson, IgnoresWhatItDoesNotKnow) {
  const LmTestJson figures = {{"mean_loss", 0.1}, {"tokens", 33}, {"bytes", 44}};
  for (const LmTestJson& held_out : {LmTestJson(), figures, LmTestJson("other")}) {
    LmTestJson json = LmTestJson::parse(header_text(ToyLm::about()));
    json["held_out"] = held_out;
    const auto header = parsed(json);
    ASSERT_TRUE(header.ok()) << header.error().message();
    EXPECT_EQ(header->about, ToyLm::about());
  }
}

// Claim: a number out of its range is refused and named, and so are a word that is none and a shape that no
// model has. The largest sizes that keys allow are taken.
TEST(LmModelJson, RefusesWhatIsOutOfRange) {
  const LmTestJson good = LmTestJson::parse(header_text(ToyLm::about()));
  const std::vector<std::pair<const char*, LmTestJson>> lies = {
      {"/steps", -1},
      {"/steps", 1.5},
      {"/dtype", "BF16"},
      {"/dtype", "f32"},
      {"/model/vocabulary", 0},
      {"/model/vocabulary", (1 << 20) + 1},
      {"/model/context", 0},
      {"/model/context", (1 << 20) + 1},
      {"/model/width", 0},
      {"/model/width", 65'538},
      {"/model/heads", 0},
      {"/model/heads", 3},
      {"/model/heads", 4},  // one column a head
      {"/model/heads", 1025},
      {"/model/hidden", 0},
      {"/model/hidden", (1 << 20) + 1},
      {"/model/layers", 0},
      {"/model/layers", 1001},
      {"/model/applied", 0},
      {"/model/applied", 1001},
      {"/model/applied", std::uint64_t{1} << 32U},
      {"/model/activation", "relu"},
      {"/model/norm", ""},
      {"/model/positions", "rotary "},
      {"/model/biases", "some"},
      {"/tokenizer/digest", "abc"},
      {"/shards", LmTestJson::array()},
  };
  for (const auto& [field, value] : lies) {
    LmTestJson json = good;
    json[Pointer(field)] = value;
    const auto bad = parsed(json);
    ASSERT_FALSE(bad.ok()) << field << " " << value;
    EXPECT_EQ(bad.error().kind, ErrorKind::kBadData) << bad.error().message();
    EXPECT_NE(bad.error().what.find(Pointer(field).back()), std::string::npos) << bad.error().message();
  }
  LmTestJson other = good;
  other["format"] = 2;
  EXPECT_EQ(parsed(other).error().kind, ErrorKind::kRefused);
  EXPECT_EQ(parsed(other).error().expected, "format 1");
  LmTestJson largest = good;
  largest["model"].update({{"vocabulary", 1 << 20},
                           {"context", 1 << 20},
                           {"width", 65'536},
                           {"heads", 1024},
                           {"hidden", 1 << 20},
                           {"layers", 1000},
                           {"applied", 1000}});
  EXPECT_TRUE(parsed(largest).ok());
}

// Claim: every model has the least numbers of its shape, and at most ten times as many. The toy has as many.
TEST(LmModelJson, LeastNumbers) {
  std::vector<LmShape> shapes = {ToyLm::kShape,
                                 {.vocabulary = 1,
                                  .context = 1,
                                  .width = 2,
                                  .heads = 1,
                                  .hidden = 1,
                                  .layers = 1,
                                  .biases = LmBiases::kAll}};
  for (const LmPreset& preset : kLmPresets) shapes.push_back(preset.shape);
  for (const std::uint32_t hidden : {1U, 1000U}) {
    shapes.push_back({.width = 2,
                      .heads = 1,
                      .hidden = hidden,
                      .activation = LmActivation::kSwiGlu,
                      .biases = LmBiases::kAll});
    shapes.push_back({.width = 2048, .heads = 1, .hidden = hidden, .positions = LmPositions::kRotary});
  }
  for (const LmShape& shape : shapes) {
    const std::uint64_t all =
        lm_parameters(shape, {.first = 0, .last = shape.layers, .layers = shape.layers});
    EXPECT_GE(all, least_numbers(shape)) << shape.width << " " << shape.hidden;
    EXPECT_LE(all, 10 * least_numbers(shape)) << shape.width << " " << shape.hidden;
  }
  EXPECT_EQ(weights_of(*ToyLm::model(ToyLm::kShape, 1)).size(), least_numbers(ToyLm::kShape));
}

}  // namespace
}  // namespace gossamer::pipeline
