// SPDX-License-Identifier: Apache-2.0
#include "tensors/model_fields.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gossamer::tensors {
namespace {

using FieldsJson = nlohmann::json;

constexpr std::array<std::string_view, 2> kWords = {"red", "blue"};
const std::string kPath = "m/model.json";

// Claim: a reader of each type takes values of its type alone. A missing field and each other value is an
// error that names path and field with its prefix, and says what is there.
TEST(ModelFields, EachTypeTakesItsOwnValues) {
  struct Type {
    const char* name;
    std::function<void(ModelFields&)> read;
    std::vector<FieldsJson> right;
    std::vector<FieldsJson> wrong;
  };
  const std::vector<Type> types = {
      {"count",
       [](ModelFields& fields) { (void)fields.count("x", {2, 9}); },
       {2U, 9U},
       {nullptr, 1U, 10U, -3, 2.5, "2", true, FieldsJson::array(), FieldsJson::object()}},
      {"number",
       [](ModelFields& fields) { (void)fields.number("x"); },
       {-1, 0.5, 1e30},
       {nullptr, 1.1e30, -1e31, "1", false, FieldsJson::array()}},
      {"wide number",
       [](ModelFields& fields) { (void)fields.wide_number("x"); },
       {-1, 0.1, 1e30},
       {nullptr, 1.1e30, "1", false, FieldsJson::object()}},
      {"flag", [](ModelFields& fields) { (void)fields.flag("x"); }, {true, false}, {nullptr, 0, "true"}},
      {"text", [](ModelFields& fields) { (void)fields.text("x"); }, {"", "a"}, {nullptr, 0, true}},
      {"hash",
       [](ModelFields& fields) { (void)fields.hash("x"); },
       {"00000000000000ff", "ffffffffffffffff"},
       {nullptr, 5, "ff", "00000000000000fg", "0x000000000000ff", "00000000000000ff0"}},
      {"choice",
       [](ModelFields& fields) { (void)fields.choice("x", kWords); },
       {"red", "blue"},
       {nullptr, "green", "", 0}},
  };
  for (const Type& type : types) {
    for (const FieldsJson& value : type.right) {
      const FieldsJson object = {{"x", value}};
      ModelFields fields(kPath, object);
      type.read(fields);
      EXPECT_FALSE(fields.error().has_value()) << type.name << " " << value;
    }
    for (const FieldsJson& value : type.wrong) {
      FieldsJson object = FieldsJson::object();
      if (!value.is_null()) object["x"] = value;
      ModelFields fields(kPath, object, "part.");
      type.read(fields);
      ASSERT_TRUE(fields.error().has_value()) << type.name << " " << value;
      EXPECT_EQ(fields.error()->kind, ErrorKind::kBadData);
      EXPECT_EQ(fields.error()->where, kPath);
      EXPECT_EQ(fields.error()->what, "cannot use field part.x of the model");
      EXPECT_FALSE(fields.error()->got.empty() && !value.is_string()) << type.name << " " << value;
      EXPECT_FALSE(fields.error()->expected.empty());
      EXPECT_FALSE(fields.error()->fix.empty());
    }
  }
}

// Claim: readers give the values that stand there, and what may be absent has a value then, too.
TEST(ModelFields, GivesTheValues) {
  const FieldsJson object = {{"count", 7U},     {"number", -0.5}, {"flag", true},
                             {"wide", 0.1},     {"text", "abc"},  {"hash", "00000000000000ff"},
                             {"choice", "blue"}};
  ModelFields fields(kPath, object);
  EXPECT_EQ(fields.count("count"), 7U);
  EXPECT_EQ(fields.number("number"), -0.5F);
  EXPECT_EQ(fields.wide_number("wide"), 0.1);
  EXPECT_EQ(fields.number_if_present("number"), -0.5F);
  EXPECT_EQ(fields.number_if_present("none"), 0.0F);
  EXPECT_TRUE(fields.flag("flag"));
  EXPECT_TRUE(fields.flag_if_present("flag"));
  EXPECT_FALSE(fields.flag_if_present("none"));
  EXPECT_EQ(fields.text("text"), "abc");
  EXPECT_EQ(fields.hash("hash"), 255U);
  EXPECT_EQ(fields.choice("choice", kWords), 1U);
  EXPECT_TRUE(fields.any("none").is_null());
  EXPECT_EQ(fields.any("count"), FieldsJson(7));
  EXPECT_FALSE(fields.error().has_value());
}

// Claim: the first field that is wrong is the one that is told, and what is no object is wrong by itself.
TEST(ModelFields, TellsTheFirstThatIsWrong) {
  const FieldsJson object = {{"a", 1}};
  ModelFields fields(kPath, object);
  EXPECT_EQ(fields.count("b", {3, 4}), 3U);
  (void)fields.text("a");
  EXPECT_EQ(fields.error()->what, "cannot use field b of the model");
  const FieldsJson list = FieldsJson::array();
  EXPECT_EQ(ModelFields(kPath, list, "part.").error()->what, "cannot use field part. of the model");
}

constexpr KnownModels kKnown{.engine = "lm", .oldest_format = 2, .newest_format = 3};

WrittenShards two_files() {
  return {.shards = {{.file = shard_name(0, 2), .bytes = 10, .xxh3 = 0xABC},
                     {.file = shard_name(1, 2), .bytes = 20, .xxh3 = ~std::uint64_t{0}}},
          .total_size = 25,
          .weight_map = {{"a", shard_name(0, 2)}, {"b", shard_name(1, 2)}}};
}
std::string good_text() {
  return format_model_json({.engine = "lm", .format = 3}, {{"steps", 5}}, two_files());
}

// Claim: what every engine has in model.json comes back, with the engine's own fields beside it.
TEST(ModelJson, ComesBack) {
  const auto json = read_model_json(kPath, good_text(), kKnown);
  ASSERT_TRUE(json.ok()) << json.error().message();
  EXPECT_EQ((*json)["steps"], 5);
  EXPECT_EQ((*json)["metadata"]["total_size"], 25);
  EXPECT_EQ((*json)["weight_map"]["b"], shard_name(1, 2));
  const auto shards = read_model_shards(kPath, *json);
  ASSERT_TRUE(shards.ok());
  ASSERT_EQ(shards->size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*shards)[i].file, two_files().shards[i].file);
    EXPECT_EQ((*shards)[i].bytes, two_files().shards[i].bytes);
    EXPECT_EQ((*shards)[i].xxh3, two_files().shards[i].xxh3);
  }
}

// Claim: another format is refused, with the formats that are known. A model of another engine is named as
// such, whatever its format. A text that is no object is bad data.
TEST(ModelJson, RefusesOthers) {
  const FieldsJson good = FieldsJson::parse(good_text());
  const auto error_of = [&](const char* field, const FieldsJson& value) {
    FieldsJson json = good;
    json.erase(field);
    if (!value.is_null()) json[field] = value;
    const auto read = read_model_json(kPath, json.dump(), kKnown);
    EXPECT_FALSE(read.ok()) << field << " " << value;
    return read.ok() ? Error{} : read.error();
  };
  for (const FieldsJson& format :
       {FieldsJson(1), FieldsJson(4), FieldsJson("3"), FieldsJson(FieldsJson::array())}) {
    const Error error = error_of("format", format);
    EXPECT_EQ(error.kind, ErrorKind::kRefused) << format;
    EXPECT_EQ(error.expected, "format 2 or 3");
  }
  EXPECT_EQ(error_of("format", nullptr).what, "cannot use field format of the model");
  for (const FieldsJson& format : {FieldsJson(1), FieldsJson(3)}) {
    FieldsJson json = good;
    json["engine"] = "sparse";
    json["format"] = format;
    const auto other = read_model_json(kPath, json.dump(), kKnown);
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(other.error().what, "a model of another engine");
    EXPECT_EQ(other.error().got, "engine 'sparse'");
    EXPECT_EQ(other.error().expected, "engine 'lm'");
  }
  EXPECT_EQ(error_of("engine", 7).what, "cannot use field engine of the model");
  EXPECT_EQ(error_of("engine", nullptr).what, "cannot use field engine of the model");
  for (const char* text : {"", "[]", "{", R"({"format":3,"format":3})"})
    EXPECT_EQ(read_model_json(kPath, text, kKnown).error().what, "the file describes no model") << text;
}

// Claim: a list of shards that is missing, empty or lies is refused, and the field is named. No name leads
// elsewhere.
TEST(ModelJson, RefusesShardsThatLie) {
  const FieldsJson good = FieldsJson::parse(good_text());
  const std::vector<std::pair<std::string, std::function<void(FieldsJson&)>>> lies = {
      {"shards", [](FieldsJson& json) { json.erase("shards"); }},
      {"shards", [](FieldsJson& json) { json["shards"] = FieldsJson::array(); }},
      {"shards", [](FieldsJson& json) { json["shards"] = FieldsJson::object(); }},
      {"shards[1].", [](FieldsJson& json) { json["shards"][1] = 3; }},
      {"shards[0].file", [](FieldsJson& json) { json["shards"][0]["file"] = "../x"; }},
      {"shards[0].file", [](FieldsJson& json) { json["shards"].erase(1); }},
      {"shards[1].bytes", [](FieldsJson& json) { json["shards"][1]["bytes"] = -1; }},
      {"shards[1].xxh3", [](FieldsJson& json) { json["shards"][1].erase("xxh3"); }},
  };
  for (const auto& [field, change] : lies) {
    FieldsJson json = good;
    change(json);
    const auto shards = read_model_shards(kPath, json);
    ASSERT_FALSE(shards.ok()) << field;
    EXPECT_EQ(shards.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(shards.error().what, "cannot use field " + field + " of the model");
  }
}

}  // namespace
}  // namespace gossamer::tensors
