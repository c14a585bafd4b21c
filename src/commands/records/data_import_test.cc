// SPDX-License-Identifier: Apache-2.0
#include "commands/records/data_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "commands/records/evaluation_set.h"
#include "engines/sparse/model/model.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::two_classes;
using run::testing::write;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr data::RecordFormat kJsonl = data::RecordFormat::kJsonlText;
constexpr data::RecordFormat kXmc = data::RecordFormat::kXmc;

// Labels of a test set.
struct Labels final : TestBlocks {
  using TestBlocks::TestBlocks;
  Result<void> take(const data::SparseRows& /*queries*/, const data::LabelSets& truth) override {
    seen.insert(seen.end(), truth.label.begin(), truth.label.end());
    return {};
  }
  std::vector<std::uint32_t> seen;
};

// Several sources, each with its own header, become one set of records, and a look counts them.
TEST(DataImport, SourcesAddUp) {
  SimMachine machine;
  write(machine.disk, "a.txt", two_classes(20));
  write(machine.disk, "b.txt", "2 30 5\n4 29:1 3:2\n\n");
  const auto done =
      import_data(machine.host(), {.kind = kXmc, .sources = {"a.txt", "b.txt"}, .directory = "out"});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(done->report.records, 22U);
  EXPECT_EQ(done->path, "out/records.cache");
  const auto look = inspect_data(machine.host(), "out");
  ASSERT_TRUE(look.ok()) << look.error().message();
  EXPECT_EQ(look->records, 22U);
  EXPECT_EQ(look->features, 30U);
  EXPECT_EQ(look->labels, 5U);
  EXPECT_EQ(look->feature_entries, 20U * 4 + 2);
  EXPECT_EQ(look->label_entries, 21U);
  EXPECT_EQ(look->records_without_labels, 1U);
  EXPECT_EQ(look->labels_unused, 2U);
  EXPECT_EQ(look->labels_used_once, 1U);
  EXPECT_THAT(look->frequent_labels, ElementsAre(std::pair("0", 10), std::pair("1", 10), std::pair("4", 1)));
  EXPECT_THAT(look->examples,
              ElementsAre("labels 0; features 0:1 1:1 2:1 6:2", "labels 1; features 3:1 4:1 5:1 7:2",
                          "labels 0; features 0:1 1:1 2:1 8:2"));
}

// Claim: the highest number of a label costs a look, or a test, no more memory than another one does. It may
// be one of numbered records or of text.
TEST(DataImport, HighLabels) {
  for (const bool text : {true, false}) {
    SimMachine machine;
    write(machine.disk, "f",
          text ? "{\"text\":\"a b c\",\"labels\":[4294967294]}\n{\"text\":\"a\",\"labels\":[7]}\n"
               : "4294967294 0:1\n7 1:1\n");
    ASSERT_TRUE(
        import_data(machine.host(), {.kind = text ? kJsonl : kXmc, .sources = {"f"}, .directory = "out"})
            .ok());
    const auto look = inspect_data(machine.host(), "out");
    ASSERT_TRUE(look.ok()) << look.error().message();
    EXPECT_EQ(look->labels, 4294967295U);
    EXPECT_EQ(look->labels_unused, 4294967293U);
    EXPECT_EQ(look->labels_used_once, 2U);
    EXPECT_THAT(look->frequent_labels, ElementsAre(std::pair("7", 1), std::pair("4294967294", 1)));
    if (text) continue;
    sparse_engine::Model model;
    model.network.shape.features = 2;
    Labels labels(model, 10);
    const Source test{.path = "out/records.cache", .format = data::RecordFormat::kCache};
    const auto done = read_test_set(machine.host(), {.source = test}, labels);
    ASSERT_TRUE(done.ok()) << done.error().message();
    EXPECT_THAT(labels.seen, ElementsAre(4294967294U, 7U));
  }
}

// Claim: no name of a label or feature moves the cursor or ends a line where a look is shown. JSON has it as
// it is.
TEST(DataImport, ShowsNamesOnOneLine) {
  SimMachine machine;
  write(machine.disk, "f",
        "{\"features\": {\"f\\ng\": 1}, \"labels\": [\"l\\nm\", \"\\u0000\", \"\\u001b[2J\"]}\n");
  ASSERT_TRUE(import_data(machine.host(), {.kind = kJsonl, .sources = {"f"}, .directory = "out"}).ok());
  const auto look = inspect_data(machine.host(), "out");
  ASSERT_TRUE(look.ok()) << look.error().message();
  const std::string text = to_text(*look);
  EXPECT_THAT(text, HasSubstr("1  l\\x0am\n"));
  EXPECT_THAT(text, HasSubstr("'l\\x0am' '\\x00' '\\x1b[2J'; features f\\x0ag:1\n"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(to_json(*look))["frequent_labels"][0]["label"], "l\nm");
}

// Sessions of several sources become one file of good lines. A look at it counts the records they make.
TEST(DataImport, Sessions) {
  SimMachine machine;
  write(machine.disk, "a.txt", "shoes  socks shoes\n\tbad\n");
  write(machine.disk, "b.txt", "socks laces\tshoes\nhat\n");
  const auto done = import_data(machine.host(), {.kind = data::RecordFormat::kSessions,
                                                 .sources = {"a.txt", "b.txt"},
                                                 .directory = "out",
                                                 .skip_bad = 1});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(done->report.records, 3U);
  EXPECT_EQ(done->report.skipped, 1U);
  EXPECT_EQ(done->report.labels, 4U);
  EXPECT_EQ(*host::read_text(machine.disk, "out/records.sessions"),
            "shoes socks shoes\nsocks laces\tshoes\nhat\n");
  const auto look = inspect_data(machine.host(), "out");
  ASSERT_TRUE(look.ok()) << look.error().message();
  EXPECT_EQ(look->records, 3U);
  EXPECT_EQ(look->labels, 4U);
  EXPECT_EQ(look->labels_unused, 2U);
  EXPECT_EQ(look->feature_entries, 1U + 2 + 2);
  EXPECT_EQ(look->frequent_labels.front(), std::pair(std::string("shoes"), std::uint64_t{2}));
  EXPECT_THAT(look->examples, ElementsAre("shoes socks shoes", "socks laces -> shoes", "hat"));
}

// Names of features and labels are kept and shown.
TEST(DataImport, Names) {
  SimMachine machine;
  write(machine.disk, "a.jsonl",
        "{\"features\": {\"deer\": 1.5, \"meat\": 1}, \"labels\": [\"venison\", \"food\"]}\n"
        "{\"features\": {\"owl\": 2}, \"labels\": \"bird\"}\n{\"features\": {}}\n");
  ASSERT_TRUE(import_data(machine.host(), {.kind = kJsonl, .sources = {"a.jsonl"}, .directory = "out"}).ok());
  const auto look = inspect_data(machine.host(), "out");
  ASSERT_TRUE(look.ok()) << look.error().message();
  EXPECT_EQ(look->features, 3U);
  EXPECT_EQ(look->records_without_labels, 1U);
  EXPECT_THAT(look->examples, ElementsAre("labels 'venison' 'food'; features deer:1.5 meat:1",
                                          "labels 'bird'; features owl:2", "labels; features"));
}

// Claim: text is checked and kept as text, with its context. Other keys, bad lines and odd spacing go. Quotes
// and Unicode stay.
TEST(DataImport, Text) {
  SimMachine machine;
  write(machine.disk, "a.jsonl",
        "{\"id\": 7, \"labels\": [\"a \\\"b\\\"\"], \"text\": \"d\\u00e9j\\u00e0 vu\"}\nbroken\n\n"
        "{ \"context\": \"of y\", \"text\" : \"x\", \"labels\": \"a \\\"b\\\"\" }\n");
  const DataImportRequest request{.kind = kJsonl, .sources = {"a.jsonl"}, .directory = "out", .skip_bad = 1};
  const auto done = import_data(machine.host(), request);
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(done->report.skipped, 1U);
  EXPECT_TRUE(machine.said("a.jsonl:2"));
  EXPECT_EQ(*host::read_text(machine.disk, "out/records.jsonl"),
            "{\"text\":\"d\xc3\xa9j\xc3\xa0 vu\",\"labels\":[\"a \\\"b\\\"\"]}\n"
            "{\"text\":\"x\",\"labels\":[\"a \\\"b\\\"\"],\"context\":\"of y\"}\n");
  const auto look = inspect_data(machine.host(), "out");
  ASSERT_TRUE(look.ok()) << look.error().message();
  EXPECT_EQ(look->records, 2U);
  EXPECT_EQ(look->features, 0U);
  EXPECT_THAT(look->frequent_labels, ElementsAre(std::pair("a \"b\"", 2)));
}

// After any error, wherever the disk fails, the directory is as before or holds the whole import.
TEST(DataImport, LeavesNothingHalfWritten) {
  const std::vector<std::pair<data::RecordFormat, std::string>> files = {
      {kXmc, two_classes(20)},
      {kJsonl, "{\"text\": \"deer\", \"labels\": [1]}\n{\"text\": \"owl\", \"labels\": [0]}\n"}};
  for (const auto& [kind, content] : files) {
    const DataImportRequest request{.kind = kind, .sources = {"f"}, .directory = "out"};
    SimMachine rehearsal;
    write(rehearsal.disk, "f", content);
    rehearsal.disk.restart_count({});
    const auto whole = import_data(rehearsal.host(), request);
    ASSERT_TRUE(whole.ok());
    const std::string expected = *host::read_text(rehearsal.disk, whole->path);
    int failures = 0;
    for (std::uint64_t k = 0; k < rehearsal.disk.operations(); ++k) {
      SCOPED_TRACE(k);
      SimMachine machine;
      write(machine.disk, "f", content);
      machine.disk.restart_count({.fail_at_operation = k});
      const auto done = import_data(machine.host(), request);
      machine.disk.restart_count({});
      if (done.ok()) {
        EXPECT_EQ(*host::read_text(machine.disk, done->path), expected);
        continue;
      }
      ++failures;
      EXPECT_EQ(done.error().kind, ErrorKind::kFailed);
      EXPECT_FALSE(*machine.disk.exists("out"));
    }
    EXPECT_GT(failures, 5);
  }
  SimMachine machine;
  write(machine.disk, "f", "{\"text\": \"deer\"}\n{\"features\": [[1, 1]]}\n");
  const auto mixed = import_data(machine.host(), {.kind = kJsonl, .sources = {"f"}, .directory = "out"});
  ASSERT_FALSE(mixed.ok());
  EXPECT_EQ(mixed.error().kind, ErrorKind::kBadData);
  EXPECT_EQ(mixed.error().where.substr(0, 3), "f:2");
  EXPECT_FALSE(*machine.disk.exists("out"));
}

// A directory that holds something is refused and keeps it.
TEST(DataImport, RefusesAFullDirectory) {
  SimMachine machine;
  write(machine.disk, "f", two_classes(4));
  ASSERT_TRUE(machine.disk.make_directories("out").ok());
  write(machine.disk, "out/mine", "x");
  const auto done = import_data(machine.host(), {.kind = kXmc, .sources = {"f"}, .directory = "out"});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(*machine.disk.list("out"), ElementsAre("mine"));
}

// The error for a directory without records says what was looked for.
TEST(DataInspect, NoRecords) {
  SimMachine machine;
  ASSERT_TRUE(machine.disk.make_directories("out").ok());
  const auto look = inspect_data(machine.host(), "out");
  ASSERT_FALSE(look.ok());
  EXPECT_EQ(look.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(look.error().message(), HasSubstr("data import"));
}

// JSON and text show the same counts. Long records are cut short.
TEST(DataInspect, JsonAndText) {
  SimMachine machine;
  std::string line = "0,1,2,3,4,5,6,7,8,9";
  for (int f = 0; f < 12; ++f) line += " " + std::to_string(f) + ":1";
  write(machine.disk, "f", line + "\n");
  ASSERT_TRUE(import_data(machine.host(), {.kind = kXmc, .sources = {"f"}, .directory = "out"}).ok());
  const auto look = inspect_data(machine.host(), "out");
  ASSERT_TRUE(look.ok());
  const auto json = nlohmann::json::parse(to_json(*look));
  EXPECT_EQ(json["records"], 1);
  EXPECT_EQ(json["features"], 12);
  EXPECT_EQ(json["labels_used_once"], 10);
  EXPECT_EQ(json["frequent_labels"].size(), 10U);
  EXPECT_EQ(json["examples"][0], "labels 0 1 2 3 4 5 6 7 ...; features 0:1 1:1 2:1 3:1 4:1 5:1 6:1 7:1 ...");
  EXPECT_THAT(to_text(*look), HasSubstr("features  12 (12.0 a record)"));
  EXPECT_THAT(to_text(*look), HasSubstr("10 in one record only"));
}

// Claim: an import warns of the records without a label, and of sources in which all labels are empty. Labels
// by name among numbers are refused with the file and the line.
TEST(DataImport, LooksAtLabels) {
  SimMachine machine;
  write(machine.disk, "a.jsonl", "{\"text\": \"a\", \"labels\": [1]}\n{\"text\": \"b\", \"lables\": [2]}\n");
  write(machine.disk, "b.jsonl", "{\"text\": \"a\", \"labels\": [\"x\"]}\n");
  write(machine.disk, "empty.jsonl", "{\"text\": \"a\", \"labels\": []}\n");
  const auto take = [&](const std::vector<std::string>& sources, const char* out) {
    return import_data(machine.host(), {.kind = kJsonl, .sources = sources, .directory = out});
  };
  ASSERT_TRUE(take({"a.jsonl"}, "some").ok());
  EXPECT_TRUE(machine.said("1 of 2 records have no label")) << machine.console.text;
  EXPECT_TRUE(machine.said("the keys 'lables'"));
  ASSERT_TRUE(take({"empty.jsonl", "empty.jsonl"}, "none").ok());
  EXPECT_TRUE(machine.said("2 records, 2 of them with empty 'labels'")) << machine.console.text;
  const auto mixed = take({"a.jsonl", "b.jsonl"}, "never");
  ASSERT_FALSE(mixed.ok());
  EXPECT_THAT(mixed.error().where, HasSubstr("b.jsonl:1"));
  EXPECT_FALSE(*machine.disk.exists("never"));
}

// Claim: the user's word that lines are such is believed of each source.
TEST(DataImport, TakesLinesAsTheyAre) {
  SimMachine machine;
  write(machine.disk, "a.csv", "title,tags\na,b\n");
  for (const bool as_is : {false, true}) {
    const auto done = import_data(machine.host(), {.kind = data::RecordFormat::kSessions,
                                                   .sources = {"a.csv", "a.csv"},
                                                   .directory = "out",
                                                   .as_is = as_is});
    EXPECT_EQ(done.ok(), as_is);
  }
}

}  // namespace
}  // namespace gossamer::commands
