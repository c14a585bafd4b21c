// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/jsonl_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/sim/compute.h"
#include "learn/data/read/record_assembler.h"
#include "learn/data/read/test_read_items.h"

namespace gossamer::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A record as one line of text, to compare it by eye.
std::string show(const JsonlRecord& record) {
  std::string text = record.kind == JsonlRecord::Kind::kText ? fmt::format("\"{}\"", record.text) : "";
  for (std::size_t i = 0; i < record.index.size(); ++i)
    text += fmt::format("{}:{} ", record.index[i], record.value[i]);
  for (std::size_t i = 0; i < record.name.size(); ++i)
    text += fmt::format("{}:{} ", record.name[i], record.value[i]);
  return text + fmt::format("->{}{}", fmt::join(record.label_number, ","), fmt::join(record.label_name, ","));
}

ReadItems<std::string> read_json_text(const std::string& text, const ReadOptions& options = {}) {
  ReadItems<std::string> got;
  const auto source = memory_source("train.jsonl", text);
  got.report = read_jsonl(*source, options, [&](const JsonlRecord& record) -> Result<void> {
    got.items.push_back(show(record));
    return {};
  });
  EXPECT_TRUE(got.report.ok() || got.report.error().kind == ErrorKind::kBadData);
  return got;
}

// All forms of a record; other keys are ignored, whatever they hold.
TEST(JsonlReader, ReadsRecords) {
  const auto got = read_json_text(
      "{\"text\": \"a \\u00e9\\n\", \"labels\": [\"x\", \"y\"]}\r\n"
      "\n  \n"
      "{\"labels\": [3, 1, 3], \"features\": [[7, 0.5], [2, -1]]}\n"
      "{\"features\": {\"b\": 1, \"a\": 2e0}, \"labels\": \"z\"}\n"
      "{\"id\": {\"deep\": [1, {\"text\": null}], \"labels\": true}, \"text\": \"\", \"n\": -1.5, \"s\": "
      "[\"q\"]}\n"
      "{\"features\": {}, \"labels\": 4}\n{\"features\": [], \"labels\": []}");
  ASSERT_EQ(got.message(), "ok");
  EXPECT_THAT(got.items,
              ElementsAre("\"a \xC3\xA9\n\"->x,y", "2:-1 7:0.5 ->1,3", "b:1 a:2 ->z", "\"\"->", "->4", "->"));
  EXPECT_EQ(got.report->features, 8U);
  EXPECT_EQ(got.report->labels, 5U);
}

// The report counts records with labels, and has the keys that nobody looks at: each once, in the order of
// the file, whatever the chunks are.
TEST(JsonlReader, TellsOtherKeys) {
  std::string text = "{\"text\": \"a\", \"tags\": [\"x\"], \"deep\": {\"no\": 1}}\n";
  for (int i = 0; i < 20; ++i) text += fmt::format("{{\"tags\": 1, \"text\": \"b\", \"k{}\": 2}}\n", i);
  text += "{\"text\": \"c\", \"labels\": [\"y\"]}\n{\"text\": \"d\", \"labels\": []}\n";
  for (const std::size_t size : {1U, 64U, 5000U}) {
    const auto got = read_json_text(text, {.limits = {.chunk_bytes = size}});
    ASSERT_EQ(got.message(), "ok");
    EXPECT_EQ(got.report->labelled, 1U);
    EXPECT_THAT(got.report->other_keys, ElementsAre("tags", "deep", "k0", "k1", "k2", "k3", "k4", "k5"));
  }
  EXPECT_EQ(quoted_list(std::vector<std::string>{"a", "\x1b"}), "'a', '\\x1B'");
}

// Values of other keys may be nested as deeply as any JSON that the program reads, and no deeper.
TEST(JsonlReader, Levels) {
  const auto read = [](std::string_view open, std::string_view close, std::size_t levels) {
    std::string text = "{\"text\": \"a\", \"x\": ";
    for (std::size_t i = 0; i < levels; ++i) text += open;
    text += '0';
    for (std::size_t i = 0; i < levels; ++i) text += close;
    return read_json_text(text + "}");
  };
  EXPECT_EQ(read("[", "]", 31).message(), "ok");
  EXPECT_EQ(read("{\"y\": ", "}", 31).message(), "ok");
  for (const std::size_t levels : {std::size_t{32}, std::size_t{100'000}}) {
    EXPECT_THAT(read("[", "]", levels).message(), HasSubstr("at most 32 levels"));
    EXPECT_THAT(read("{\"y\": ", "}", levels).message(), HasSubstr("at most 32 levels"));
  }
}

// "context" stands beside "text", before or after it, and belongs to its own line.
TEST(JsonlReader, ReadsContext) {
  std::vector<std::string> seen;
  const std::string text =
      "{\"context\": \"c\", \"text\": \"a\"}\n{\"text\": \"b\"}\n"
      "{\"text\": \"d\", \"labels\": [], \"context\": \"e f\"}\n";
  const auto source = memory_source("train.jsonl", text);
  const auto report = read_jsonl(*source, {}, [&seen](const JsonlRecord& record) -> Result<void> {
    seen.push_back(std::string(record.text) + "|" + std::string(record.context));
    return {};
  });
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(seen, ElementsAre("a|c", "b|", "d|e f"));
}

// Every kind of bad line is refused with file, line, column, what was found and what was expected.
TEST(JsonlReader, RefusesBadLines) {
  const auto second = [](const std::string& line) {
    std::string message = read_json_text("{\"text\": \"\"}\n" + line + "\n").message();
    const std::size_t fix =
        message.find("; mend the line, or use --skip-bad N to leave out up to N bad lines");
    return message.substr(0, fix) + (fix == std::string::npos ? " WITHOUT FIX" : "");
  };
  EXPECT_EQ(second("{\"text\": 5}"), "train.jsonl:2:10: cannot use \"text\": got 5; expected a string");
  EXPECT_EQ(second("{\"text\": null}"), "train.jsonl:2:10: cannot use \"text\": got null; expected a string");
  EXPECT_EQ(second("{\"text\": [\"a\"]}"),
            "train.jsonl:2:10: cannot use \"text\": got a list; expected a string");
  EXPECT_EQ(second("{\"text\": \"a\", \"context\": 5}"),
            "train.jsonl:2:26: cannot use \"context\": got 5; expected a string");
  EXPECT_EQ(second("{\"context\": \"a\", \"features\": {}}"),
            "train.jsonl:2:1: a record has \"context\" without \"text\": got \"features\" and \"context\"; "
            "expected \"context\" beside \"text\" alone");
  EXPECT_EQ(second("[1]"),
            "train.jsonl:2:1: the line is not a record: got a list; expected an object: {\"text\": ..., "
            "\"labels\": [...]}");
  EXPECT_EQ(second("{\"labels\": [1]}"),
            "train.jsonl:2:1: a record has neither \"text\" nor \"features\": got the keys 'labels'; "
            "expected one of them");
  EXPECT_EQ(second("{\"title\": \"a\", \"tags\": {\"b\": 1}}"),
            "train.jsonl:2:1: a record has neither \"text\" nor \"features\": got the keys 'title', 'tags'; "
            "expected one of them");
  EXPECT_EQ(
      second("{\"text\": \"a\", \"features\": {}}"),
      "train.jsonl:2:15: a record has both \"text\" and \"features\": got 'features'; expected one of them");
  EXPECT_EQ(second("{\"text\": \"a\", \"text\": \"b\"}"),
            "train.jsonl:2:15: a key stands twice in one record: got 'text'; expected each key once");
  EXPECT_EQ(second("{\"text\": \"a\", \"labels\": [1, -2]}"),
            "train.jsonl:2:29: cannot use a label: got '-2'; expected a string or a non-negative integer");
  EXPECT_EQ(second("{\"text\": \"a\", \"labels\": [1.5]}"),
            "train.jsonl:2:26: cannot use a label: got '1.5'; expected a string or a non-negative integer");
  EXPECT_EQ(second("{\"text\": \"a\", \"labels\": [4294967295]}"),
            "train.jsonl:2:26: a label is out of range: got 4294967295; expected 0..4294967294");
  EXPECT_EQ(second("{\"text\": \"a\", \"labels\": [\"x\", 1]}"),
            "train.jsonl:2:31: a record mixes label names and label numbers: got 1; expected a string");
  EXPECT_EQ(second("{\"text\": \"a\", \"labels\": [1, \"x\"]}"),
            "train.jsonl:2:29: a record mixes label names and label numbers: got 'x'; expected a "
            "non-negative integer");
  EXPECT_EQ(
      second("{\"text\": \"a\", \"labels\": {\"x\": 1}}"),
      "train.jsonl:2:25: cannot use \"labels\": got an object; expected a list of strings or of non-negative "
      "integers");
  EXPECT_EQ(second("{\"text\": \"a\", \"labels\": [\"\"]}"),
            "train.jsonl:2:26: a label has no name: got ''; expected at least one character");
  EXPECT_EQ(second("{\"features\": {\"a\": \"1\"}}"),
            "train.jsonl:2:20: cannot use a feature value: got '1'; expected a finite number");
  EXPECT_EQ(second("{\"features\": {\"a\": 1e39}}"),
            "train.jsonl:2:20: cannot use a feature value: got '1e39'; expected a finite number");
  EXPECT_EQ(
      second("{\"features\": {\"a\": 1, \"a\": 2}}"),
      "train.jsonl:2:1: a feature name stands twice in one record: got 'a' again; expected each name once");
  EXPECT_EQ(
      second("{\"features\": [[1, 1], [1, 2]]}"),
      "train.jsonl:2:1: a feature index stands twice in one record: got 1 again; expected each index once");
  EXPECT_EQ(second("{\"features\": [[-1, 1]]}"),
            "train.jsonl:2:16: cannot use a feature index: got '-1'; expected an integer in 0..4294967294");
  EXPECT_EQ(second("{\"features\": [[1]]}"),
            "train.jsonl:2:17: cannot use a feature value: got the end of a list; expected a finite number");
  EXPECT_EQ(second("{\"features\": [[1, 2, 3]]}"),
            "train.jsonl:2:22: cannot use a feature: got 3; expected a pair [INDEX, VALUE], nothing more");
  EXPECT_EQ(second("{\"features\": 5}"),
            "train.jsonl:2:14: cannot use \"features\": got 5; expected an object {NAME: VALUE, ...} or a "
            "list [[INDEX, "
            "VALUE], ...]");
}

// What is not JSON, not UTF-8 or not one object is refused at the byte where it goes wrong.
TEST(JsonlReader, RefusesInvalidJson) {
  const auto where_and_what = [](const std::string& line) {
    const std::string message = read_json_text(line + "\n").message();
    return message.substr(0, message.find("; expected"));
  };
  EXPECT_EQ(where_and_what("{\"text\": \"a\""),
            "train.jsonl:1:13: the line is not valid JSON: got the end of the line");
  EXPECT_EQ(where_and_what("{\"text\": NaN}"), "train.jsonl:1:10: the line is not valid JSON: got 'NaN}'");
  EXPECT_EQ(where_and_what("hello"), "train.jsonl:1:1: the line is not valid JSON: got 'hello'");
  EXPECT_EQ(where_and_what("{\"text\": \"a\xFF\"}"), "train.jsonl:1:12: the text is not UTF-8: got '\\xFF'");
  // The first byte of a character that does not go on is the bad one, not the good byte behind it.
  EXPECT_EQ(where_and_what("{\"text\": \"a\xE2(b\"}"),
            "train.jsonl:1:12: the text is not UTF-8: got '\\xE2'");
  EXPECT_EQ(where_and_what("{\"text\": \"\xC3\xA9\xF0\x9F\x98\"}"),
            "train.jsonl:1:13: the text is not UTF-8: got '\\xF0'");
  EXPECT_EQ(where_and_what("{\"features\": {\"a\": 1e999}}"),
            "train.jsonl:1:20: a number is out of range: got '1e999'");
  EXPECT_EQ(where_and_what(std::string("{\"text\": \"\"}\0x", 14)),
            "train.jsonl:1:13: the line is not valid JSON: got a zero byte");
  EXPECT_THAT(where_and_what("{\"text\": \"\"} {}"),
              HasSubstr("train.jsonl:1:14: the line is not valid JSON"));
  for (const char* behind : {"", " purrs", "\\u0041", "\\n"})
    EXPECT_EQ(where_and_what(std::string("{\"text\": \"\\u00e4 \\uD800") + behind + "\", \"labels\": []}"),
              R"(train.jsonl:1:18: half of a surrogate pair is no character: got '\uD800' alone)");
  EXPECT_THAT(where_and_what(R"({"text": "\udc00"})"), HasSubstr(R"(got '\udc00' alone)"));
  EXPECT_THAT(where_and_what(R"({"text": "a \ud800\ud55c"})"), HasSubstr(R"(1:13: half of a)"));
  EXPECT_THAT(where_and_what(std::string(100'000, '[')), HasSubstr("the line is not a record"));
  EXPECT_THAT(where_and_what("{\"x\": " + std::string(20, '[')), HasSubstr("got the end of the line"));
}

// Files without records, endless lines and skipping behave as for the other readers.
TEST(JsonlReader, SharedRules) {
  EXPECT_EQ(
      read_json_text("").message(),
      "train.jsonl: there is no record in the file: got an empty file; expected lines of {\"text\": ..., "
      "\"labels\": [...]}; check that this is the right file");
  EXPECT_THAT(read_json_text("{\"text\": \"" + std::string(200, 'a') + "\"}", {.limits = {.line_bytes = 100}})
                  .message(),
              HasSubstr("train.jsonl:1:1: the line is too long: got more than 100 bytes without a line end"));
  const auto got = read_json_text("{\"text\": \"a\"}\n5\n\n6\n{\"text\": \"b\"}", {.skip_bad = 2});
  ASSERT_EQ(got.message(), "ok");
  EXPECT_THAT(got.items, ElementsAre("\"a\"->", "\"b\"->"));
  EXPECT_EQ(got.report->examples.at(1).where, "train.jsonl:4:1");
}

// The records do not depend on chunk size and workers.
TEST(JsonlReader, SameForAllChunksAndWorkers) {
  std::string text;
  for (int i = 0; i < 50; ++i) {
    text +=
        fmt::format("{{\"features\": {{\"f{}\": {}, \"g\": 1}}, \"labels\": [\"l{}\"]}}\n", i % 7, i, i % 5);
    text += fmt::format("{{\"text\": \"{}\", \"labels\": [{}]}}\n",
                        std::string(static_cast<std::size_t>(i), 't'), i);
  }
  const std::vector<std::string> expected = read_json_text(text).items;
  EXPECT_EQ(expected.size(), 100U);
  for (int workers = 1; workers <= 4; ++workers) {
    for (const std::size_t size : {1U, 17U, 64U, 300U, 5000U}) {
      host::SimCompute compute({.workers = workers, .seed = size});
      EXPECT_EQ(read_json_text(text, {.limits = {.chunk_bytes = size}, .compute = &compute}).items, expected);
    }
  }
}

// Names become numbers in the order of first appearance; known names keep theirs; mixing is refused. A row's
// numbers rise, whatever the order of its names.
TEST(RecordAssembler, NumbersNames) {
  NameTable known;
  known.id("old");
  RecordAssembler assembler(std::move(known), {});
  const std::vector<std::string_view> labels = {"new", "old", "new"};
  const std::vector<std::string_view> names = {"b", "a"};
  const std::vector<float> values = {1, 2};
  const JsonlRecord record{
      .kind = JsonlRecord::Kind::kNamedFeatures, .name = names, .value = values, .label_name = labels};
  EXPECT_THAT(*assembler.labels(record), ElementsAre(0, 1));
  EXPECT_THAT(assembler.features(record)->index, ElementsAre(0, 1));
  EXPECT_THAT(assembler.features(record)->value, ElementsAre(1, 2));
  EXPECT_THAT(assembler.label_names().names(), ElementsAre("old", "new"));
  const std::vector<std::string_view> turned = {"c", "a", "b"};
  const std::vector<float> three = {5, 6, 7};
  const JsonlRecord unsorted{.kind = JsonlRecord::Kind::kNamedFeatures, .name = turned, .value = three};
  EXPECT_THAT(assembler.features(unsorted)->index, ElementsAre(0, 1, 2));
  EXPECT_THAT(assembler.features(unsorted)->value, ElementsAre(7, 6, 5));
  const std::vector<std::uint32_t> numbers = {3};
  EXPECT_EQ(
      assembler.labels({.label_number = numbers}).error().message(),
      "the file mixes label names and label numbers: got numbers; expected names, as in the lines before");
  EXPECT_TRUE(assembler.labels({}).ok());
  EXPECT_FALSE(assembler.features({.kind = JsonlRecord::Kind::kText}).ok());
}

// Ids are dense, stable and found again, also across many slabs; a copy goes its own way.
TEST(NameTable, NumbersInOrderOfAppearance) {
  NameTable table;
  for (std::uint32_t i = 0; i < 20'000; ++i) EXPECT_EQ(table.id(fmt::format("name {}", i)), i);
  EXPECT_EQ(table.id(std::string(200'000, 'x')), 20'000U);
  EXPECT_EQ(table.id(""), 20'001U);
  for (std::uint32_t i = 0; i < 20'000; i += 77) EXPECT_EQ(table.find(fmt::format("name {}", i)), i);
  EXPECT_EQ(table.find("missing"), std::nullopt);
  NameTable copy = table.copy();
  EXPECT_EQ(copy.id("missing"), 20'002U);
  EXPECT_EQ(copy.name(7), "name 7");
  EXPECT_EQ(table.find("missing"), std::nullopt);
}

}  // namespace
}  // namespace gossamer::data
