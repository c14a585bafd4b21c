// SPDX-License-Identifier: Apache-2.0
#include "commands/records/queries.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engines/sparse/model/test_random_model.h"

namespace gossamer::commands {
namespace {

using sparse_engine::testing::random_model;

using Entries = std::vector<std::pair<std::uint32_t, float>>;

// A model of 9 features that takes values as they are.
sparse_engine::Model plain_model(bool names = false, bool text = false) {
  sparse_engine::Model model = random_model(
      {.features = 9, .labels = 3, .hidden = 16, .rows = 4, .text = text, .feature_names = names});
  model.weighting = {.l2 = false};
  return model;
}

Entries entries(const QueryBlock& block, std::size_t row) {
  Entries out;
  const data::SparseRow view = block.rows().row(row);
  for (std::size_t i = 0; i < view.index.size(); ++i) out.emplace_back(view.index[i], view.value[i]);
  return out;
}

// The row that one line means to the model, or the error.
Result<Entries> parse(const sparse_engine::Model& model, std::string_view line) {
  QueryParser parser(model);
  QueryBlock block;
  auto done = parser.add(line, "here", block);
  if (!done.ok()) return done.error();
  EXPECT_EQ(block.size(), 1U);
  return entries(block, 0);
}

void expect_entries(const sparse_engine::Model& model, std::string_view line, const Entries& wanted) {
  const auto got = parse(model, line);
  ASSERT_TRUE(got.ok()) << line << ": " << got.error().message();
  EXPECT_EQ(*got, wanted) << line;
}

void expect_error(const sparse_engine::Model& model, std::string_view line, ErrorKind kind,
                  std::string_view where) {
  const auto got = parse(model, line);
  ASSERT_FALSE(got.ok()) << line;
  EXPECT_EQ(got.error().kind, kind) << got.error().message();
  EXPECT_EQ(got.error().where, where) << got.error().message();
}

// Numbered features are pairs in any order. Labels in front are left out, JSON means the same, and features
// that the model lacks are dropped.
TEST(Queries, Numbers) {
  const sparse_engine::Model model = plain_model();
  expect_entries(model, "3:0.5 1:2", {{1, 2}, {3, 0.5F}});
  expect_entries(model, "0,2 3:0.5\t8:1\r", {{3, 0.5F}, {8, 1}});
  expect_entries(model, " {\"features\": [[8, 1], [3, 0.5]]}", {{3, 0.5F}, {8, 1}});
  expect_entries(model, "3:1 9:5 4294967295:1", {{3, 1}});
  expect_entries(model, "{\"features\": []}", {});
  expect_entries(model, "{\"features\": {}}", {});
}

// Claim: a byte order mark in front changes no query, whatever the model reads.
TEST(Queries, LeavesOutAByteOrderMark) {
  const sparse_engine::Model numbers = plain_model();
  const sparse_engine::Model names = plain_model(true);
  const sparse_engine::Model texts = plain_model(false, true);
  const std::string mark = "\xef\xbb\xbf";
  expect_entries(numbers, mark + "3:0.5 1:2", {{1, 2}, {3, 0.5F}});
  expect_entries(numbers, mark + R"({"features": [[3, 0.5]]})", {{3, 0.5F}});
  expect_entries(names, mark + R"({"features": {"feature 1": 2}})", {{1, 2}});
  expect_entries(texts, mark, {});
  for (const char* query : {R"({"text": "zapatos"})", "zapatos"}) {
    QueryParser parser(texts);
    QueryBlock block;
    ASSERT_TRUE(parser.add(mark + query, "here", block).ok());
    EXPECT_EQ(parser.unknown_of_last(), 1U) << query;  // with the mark, or as JSON text, there would be more
  }
}

// Queries in UTF-16 are refused by that name, with a mark and without one. Their letters would be unknown
// words. A text with a lone zero byte is none.
TEST(Queries, RefusesUtf16) {
  using std::string_view_literals::operator""sv;
  const sparse_engine::Model model = plain_model(false, true);
  for (const std::string_view line : {"\xFF\xFEw\0o\0r\0d\0"sv, "\xFE\xFF\0w\0o\0r\0d"sv, "w\0o\0r\0d\0"sv,
                                      "\0w\0o\0r\0d"sv, "{\0\"\0t\0e\0x\0t\0\"\0:\0\"\0\"\0}\0"sv}) {
    const auto got = parse(model, line);
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(got.error().what, "the query is UTF-16 text");
  }
  EXPECT_TRUE(parse(model, "some words\0and others"sv).ok());
}

// Claim: packed queries are named with what unpacks them. Words that begin alike are a text.
TEST(Queries, RefusesPackedData) {
  const sparse_engine::Model model = plain_model(false, true);
  const auto gzip = parse(model, "\x1f\x8b\x08");
  ASSERT_FALSE(gzip.ok());
  EXPECT_EQ(gzip.error().fix, "unpack it: gzip -dc FILE | gossamer predict DIR");
  const auto zstd = parse(model, "\x28\xb5\x2f\xfd\x04");
  ASSERT_FALSE(zstd.ok());
  EXPECT_EQ(zstd.error().fix, "unpack it: zstd -dc FILE | gossamer predict DIR");
  EXPECT_TRUE(parse(model, "(words").ok());
}

// Claim: keys that nothing looks at are told, a context among them, and of the last query alone. Labels are
// passed over, as they stand in test records.
TEST(Queries, TellsIgnoredKeys) {
  using Keys = std::vector<std::string>;
  const sparse_engine::Model model = plain_model(false, true);
  QueryParser parser(model);
  QueryBlock block;
  ASSERT_TRUE(
      parser.add(R"({"text": "a", "context": "b", "contxt": 1, "labels": ["x"]})", "here", block).ok());
  EXPECT_EQ(parser.ignored_of_last(), (Keys{"context", "contxt"}));
  for (const char* plain : {R"({"text": "a", "context": "", "labels": []})", "a", ""}) {
    ASSERT_TRUE(parser.add(R"({"text": "a", "id": 1})", "here", block).ok());
    ASSERT_TRUE(parser.add(plain, "here", block).ok());
    EXPECT_EQ(parser.ignored_of_last(), Keys()) << plain;
  }
}

// What the model does not know of a query is counted, for this query alone: numbers, names and words. Nothing
// is known of a blank line. A JSON array is no query.
TEST(Queries, CountsTheUnknown) {
  const sparse_engine::Model numbers = plain_model();
  const sparse_engine::Model names = plain_model(true);
  const sparse_engine::Model texts = plain_model(false, true);
  const auto unknown = [](const sparse_engine::Model& model, std::string_view line) {
    QueryParser parser(model);
    QueryBlock block;
    EXPECT_TRUE(parser.add(line, "before", block).ok());
    EXPECT_TRUE(parser.add(line, "here", block).ok());
    return parser.unknown_of_last();
  };
  EXPECT_EQ(unknown(numbers, "1:1 9:1 100:2"), 2U);
  EXPECT_EQ(unknown(numbers, "{\"features\": [[9, 1]]}"), 1U);
  EXPECT_EQ(unknown(names, R"({"features": {"feature 1": 1, "x": 1, "y": 1}})"), 2U);
  EXPECT_EQ(unknown(texts, "zapatos de cuero"), 3U);
  for (const auto* model : {&numbers, &names, &texts}) {
    for (const std::string_view blank : {"", " \t", "\r"}) {
      expect_entries(*model, blank, {});
      EXPECT_EQ(unknown(*model, blank), 0U);
    }
    expect_error(*model, R"([{"text": "a"}])", ErrorKind::kBadData, "here");
  }
}

// A session is names between blanks, the newest last. Unknown items are left out and
// counted. JSON text means the same.
TEST(Queries, Sessions) {
  sparse_engine::Model model = plain_model(true);
  model.line = data::LineShape{.last = 2, .decay = 0.5F};
  model.feature_names = {};
  for (int i = 0; i < 9; ++i) model.feature_names.add("i" + std::to_string(i));
  const float length = std::sqrt(1.25F);
  const Entries wanted = {{3, 1 / length}, {5, 0.5F / length}};
  expect_entries(model, "i1 i5 i3", wanted);
  expect_entries(model, "i1 i5 unheard i3 ", wanted);
  expect_entries(model, R"({"text": "i5 i3"})", wanted);
  expect_entries(model, "unheard", {});
  expect_error(model, "i1\ti2", ErrorKind::kBadData, "here:3");
  expect_error(model, R"({"features": {"i1": 1}})", ErrorKind::kUsage, "here");
  QueryParser parser(model);
  QueryBlock block;
  ASSERT_TRUE(parser.add("i1 unheard", "here", block).ok());
  EXPECT_EQ(parser.unknown_features().unknown, 1U);
}

// The error for a token that is no pair has its column. An index that stands twice is refused.
TEST(Queries, BadNumbers) {
  const sparse_engine::Model model = plain_model();
  for (const char* token : {"x", "1:", ":1", "1:x", "-1:2", "1:nan", "1:inf", "4294967296:1", "1:2:3"}) {
    expect_error(model, std::string("3:1 ") + token, ErrorKind::kBadData, "here:5");
  }
  expect_error(model, "3:1 3:2", ErrorKind::kBadData, "here:1");
  EXPECT_FALSE(parse(model, "{\"features\": [[1, 2]").ok());
}

// Names become the model's numbers in rising order. Unknown names are left out and counted.
TEST(Queries, Names) {
  const sparse_engine::Model model = plain_model(true);
  QueryParser parser(model);
  QueryBlock block;
  ASSERT_TRUE(parser.add(R"({"features": {"feature 7": 2, "feature 0": 1}})", "a", block).ok());
  ASSERT_TRUE(parser.add(R"({"features": {"no such": 3, "feature 2": 4, "nor this": 1}})", "b", block).ok());
  ASSERT_TRUE(parser.add(R"({"features": {}})", "c", block).ok());
  EXPECT_EQ(entries(block, 0), (Entries{{0, 1}, {7, 2}}));
  EXPECT_EQ(entries(block, 1), (Entries{{2, 4}}));
  EXPECT_EQ(entries(block, 2), Entries{});
  EXPECT_EQ(parser.unknown_features().unknown, 2U);
  EXPECT_EQ(parser.unknown_features().of, 5U);
  EXPECT_EQ(parser.unknown_features().first, "no such");
}

// Each kind of model refuses the forms of the others, says where, and leaves the block as it was.
TEST(Queries, OtherKinds) {
  const sparse_engine::Model numbers = plain_model();
  const sparse_engine::Model names = plain_model(true);
  const sparse_engine::Model text = plain_model(false, true);
  constexpr const char* kText = R"({"text": "word1"})";
  constexpr const char* kNames = R"({"features": {"feature 1": 1}})";
  constexpr const char* kNumbers = R"({"features": [[1, 1]]})";
  expect_error(numbers, kText, ErrorKind::kUsage, "here");
  expect_error(numbers, kNames, ErrorKind::kUsage, "here");
  expect_error(names, kText, ErrorKind::kUsage, "here");
  expect_error(names, kNumbers, ErrorKind::kUsage, "here");
  expect_error(names, "1:1", ErrorKind::kUsage, "here");
  expect_error(names, "words", ErrorKind::kUsage, "here");
  expect_error(text, kNames, ErrorKind::kUsage, "here");
  expect_error(text, kNumbers, ErrorKind::kUsage, "here");
  QueryParser parser(names);
  QueryBlock block;
  EXPECT_FALSE(parser.add(kNumbers, "here", block).ok());
  EXPECT_EQ(block.size(), 0U);
}

// A line is one query. Two JSON lines together are refused whole, whatever the second is. The line end
// behind a query does not count.
TEST(Queries, OneLineIsOneQuery) {
  const sparse_engine::Model model = plain_model();
  const std::string one = R"({"features": [[1, 1]]})";
  expect_error(model, one + "\n" + one, ErrorKind::kBadData, "here:23");
  expect_entries(model, one + "\r\n", {{1, 1}});
  QueryParser parser(model);
  QueryBlock block;
  EXPECT_FALSE(parser.add(one + "\n{", "here", block).ok());
  EXPECT_EQ(block.size(), 0U);
}

// Text, as JSON or bare, becomes counts of known words. Anything else than JSON is text, pairs too.
TEST(Queries, Text) {
  const sparse_engine::Model model = plain_model(false, true);
  expect_entries(model, "word3 word1 word3 unheard", {{1, 1}, {3, 2}});
  expect_entries(model, R"({"text": "word3 word1 word3 unheard"})", {{1, 1}, {3, 2}});
  expect_entries(model, "word2:1 9", {{2, 1}});
}

// Numbers that the model does not know are left out. Values stay as they came.
TEST(Queries, UnknownFeaturesAreDropped) {
  expect_entries(plain_model(), "3:3 4:4 20:100", {{3, 3}, {4, 4}});
}

}  // namespace
}  // namespace gossamer::commands
