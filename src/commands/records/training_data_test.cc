// SPDX-License-Identifier: Apache-2.0
#include "commands/records/training_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/records/data_import.h"
#include "commands/records/evaluation_set.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::two_classes;
using run::testing::write;
using ::testing::HasSubstr;

data::RecordFormat format_of(std::string_view content,
                             std::optional<data::RecordFormat> wanted = std::nullopt) {
  SimMachine machine;
  write(machine.disk, "f", content);
  const auto source = find_source(machine.disk, "f", wanted);
  EXPECT_TRUE(source.ok()) << source.error().message();
  return source.ok() ? source->format : data::RecordFormat::kCache;
}

// The content decides, by the first record that tells the format. The user's word goes before it.
TEST(FindSource, TellsFormatsByContent) {
  EXPECT_EQ(format_of("3 10 2\n0 1:1\n"), data::RecordFormat::kXmc);
  EXPECT_EQ(format_of("0,1 1:1\n"), data::RecordFormat::kXmc);
  EXPECT_EQ(format_of(R"({"text": "deer", "labels": [1]})"), data::RecordFormat::kJsonlText);
  EXPECT_EQ(format_of("\n  \n"
                      R"({"features": [[1, 2]]})"),
            data::RecordFormat::kJsonlNumbers);
  EXPECT_EQ(format_of("\xef\xbb\xbf"
                      R"({"features": {"a": 2}})"),
            data::RecordFormat::kJsonlNames);
  EXPECT_EQ(format_of("{\"features\": []}\n{\"features\": {}}\n{\"features\": {\"a\": 1}}\n"),
            data::RecordFormat::kJsonlNames);
  EXPECT_EQ(format_of("{\"features\": {}}\n{\"features\": [[1, 1]]}\n"), data::RecordFormat::kJsonlNumbers);
  EXPECT_EQ(format_of("garbage here\n\n{\"text\": \"deer\", \"labels\": [1]}\n"),
            data::RecordFormat::kJsonlText);
  EXPECT_EQ(format_of("garbage here\n 1:1\n{\"text\": \"deer\", \"labels\": [1]}\n"),
            data::RecordFormat::kXmc);
  EXPECT_EQ(format_of("{broken\n{\"features\": [[1, 1]]}\n"), data::RecordFormat::kJsonlNumbers);
  EXPECT_EQ(format_of("\n"
                      R"({"text": "a"})",
                      data::RecordFormat::kJsonlText),
            data::RecordFormat::kJsonlText);
  EXPECT_EQ(format_of(R"({"text": "a"})", data::RecordFormat::kXmc), data::RecordFormat::kXmc);
}

// Sessions look like other records and must be asked for. A file that surely is something
// else is refused, either way round.
TEST(FindSource, Sessions) {
  constexpr data::RecordFormat kSessions = data::RecordFormat::kSessions;
  EXPECT_EQ(format_of("1 2 3\n", kSessions), data::RecordFormat::kSessions);
  SimMachine machine;
  for (const char* directory : {"cache", "sessions"})
    ASSERT_TRUE(machine.disk.make_directories(directory).ok());
  write(machine.disk, "a.jsonl", "{\"text\": \"a\"}\n");
  write(machine.disk, "cache/records.cache", "x");
  write(machine.disk, "sessions/records.sessions", "a b\n");
  const auto found = find_source(machine.disk, "sessions", std::nullopt);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->format, data::RecordFormat::kSessions);
  EXPECT_EQ(found->path, "sessions/records.sessions");
  EXPECT_TRUE(find_source(machine.disk, "sessions", kSessions).ok());
  const auto refused = [&](const char* path, data::RecordFormat wanted, const char* part) {
    const auto source = find_source(machine.disk, path, wanted);
    ASSERT_FALSE(source.ok()) << path;
    EXPECT_THAT(source.error().message(), HasSubstr(part));
  };
  refused("a.jsonl", kSessions, "expected sessions, one a line");
  refused("cache", kSessions, "expected sessions, one a line");
  refused("sessions", data::RecordFormat::kXmc, "got sessions");
  refused("sessions", data::RecordFormat::kText, "expected plain text");
}

// An imported directory is found by the file that it holds. A missing path is named.
// Standard input needs a format.
TEST(FindSource, DirectoriesAndStandardInput) {
  SimMachine machine;
  for (const char* path : {"cache/records.cache", "text/records.jsonl"}) {
    ASSERT_TRUE(machine.disk.make_directories(host::parent(path)).ok());
    write(machine.disk, path, R"({"text": "a"})");
  }
  const auto cache = find_source(machine.disk, "cache", std::nullopt);
  ASSERT_TRUE(cache.ok());
  EXPECT_EQ(cache->format, data::RecordFormat::kCache);
  EXPECT_EQ(cache->path, "cache/records.cache");
  const auto text = find_source(machine.disk, "text", std::nullopt);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->format, data::RecordFormat::kJsonlText);

  const auto missing = find_source(machine.disk, "nowhere", std::nullopt);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::kFailed);
  EXPECT_EQ(missing.error().where, "nowhere");
  const auto untold = find_source(machine.disk, "-", std::nullopt);
  ASSERT_FALSE(untold.ok());
  EXPECT_EQ(untold.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(find_source(machine.disk, "-", data::RecordFormat::kXmc)->format, data::RecordFormat::kXmc);
}

// A test file is read to its end and judged. Imported records were judged before.
TEST(CheckRecords, ReadsToTheEnd) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  write(machine.disk, "good.txt", two_classes(20));
  write(machine.disk, "bad.txt", "0 1:1\n0 1:1\n0 x\n");
  write(machine.disk, "bad.jsonl", "{\"text\": \"a\"}\n{\"text\": 3}\n");
  EXPECT_TRUE(check_records(host, {.path = "good.txt", .format = data::RecordFormat::kXmc}, 0).ok());
  const auto bad = check_records(host, {.path = "bad.txt", .format = data::RecordFormat::kXmc}, 0);
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().where, HasSubstr("bad.txt:3"));
  EXPECT_TRUE(check_records(host, {.path = "bad.txt", .format = data::RecordFormat::kXmc}, 1).ok());
  const auto json = check_records(host, {.path = "bad.jsonl", .format = data::RecordFormat::kJsonlText}, 0);
  ASSERT_FALSE(json.ok());
  EXPECT_THAT(json.error().where, HasSubstr("bad.jsonl:2"));
  EXPECT_TRUE(check_records(host, {.path = "any", .format = data::RecordFormat::kCache}, 0).ok());
}

// A file in which no record has a label is refused. The message has the keys that are there, and a line that
// mends the file.
TEST(CheckRecords, RefusesRecordsWithoutLabels) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  write(machine.disk, "tags.jsonl", "{\"text\": \"a\", \"tags\": [1]}\n{\"text\": \"b\", \"tags\": []}\n");
  write(machine.disk, "one.jsonl",
        "{\"text\": \"a\", \"labels\": []}\n{\"text\": \"b\", \"labels\": \"x\"}\n");
  write(machine.disk, "empty.jsonl", "{\"text\": \"a\", \"labels\": []}\n");
  write(machine.disk, "mixed.jsonl", "{\"text\": \"a\", \"labels\": []}\n{\"text\": \"b\", \"tags\": [1]}\n");
  write(machine.disk, "odd.jsonl", "{\"text\": \"a\", \"day\": 3, \"shop\": 4}\n");
  write(machine.disk, "none.txt", " 1:1\n 2:1\n");
  const auto empty =
      check_records(host, {.path = "empty.jsonl", .format = data::RecordFormat::kJsonlText}, 0);
  ASSERT_FALSE(empty.ok());
  EXPECT_THAT(empty.error().got, HasSubstr("empty 'labels'"));
  const auto tags = check_records(host, {.path = "tags.jsonl", .format = data::RecordFormat::kJsonlText}, 0);
  ASSERT_FALSE(tags.ok());
  EXPECT_EQ(tags.error().kind, ErrorKind::kBadData);
  EXPECT_THAT(tags.error().got, HasSubstr("with the keys 'tags'"));
  EXPECT_THAT(tags.error().fix, HasSubstr(".labels = (.[\"tags\"] // .labels // [])][]' < tags.jsonl"));
  // One empty `labels` does not hide a key that is misnamed. Without a usual name there is no command.
  const auto mixed =
      check_records(host, {.path = "mixed.jsonl", .format = data::RecordFormat::kJsonlText}, 0);
  ASSERT_FALSE(mixed.ok());
  EXPECT_THAT(mixed.error().got, HasSubstr("1 of them with empty 'labels', and with the keys 'tags'"));
  EXPECT_THAT(mixed.error().fix, HasSubstr("(.[\"tags\"] //"));
  const auto odd = check_records(host, {.path = "odd.jsonl", .format = data::RecordFormat::kJsonlText}, 0);
  ASSERT_FALSE(odd.ok());
  EXPECT_EQ(odd.error().fix, "name the key with the labels 'labels'");
  EXPECT_TRUE(check_records(host, {.path = "one.jsonl", .format = data::RecordFormat::kJsonlText}, 0).ok());
  const auto none = check_records(host, {.path = "none.txt", .format = data::RecordFormat::kXmc}, 0);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kBadData);
}

// Claim: a file of nothing but blank lines has no record, whatever is wanted of it later. One that begins
// with more of them than are looked at is not judged by them.
TEST(FindSource, RefusesBlankFiles) {
  SimMachine machine;
  for (const std::string content : {"", "\n \n"}) {
    write(machine.disk, "f", content);
    const auto source = find_source(machine.disk, "f", std::nullopt);
    ASSERT_FALSE(source.ok());
    EXPECT_EQ(source.error().what, "there is no record in the file");
    EXPECT_TRUE(find_source(machine.disk, "f", data::RecordFormat::kXmc).ok());
  }
  EXPECT_EQ(format_of(std::string(70'000, '\n') + "0 1:1\n"), data::RecordFormat::kXmc);
}

// Claim: the first label of a test set tells whether its labels have names, in any format, behind bad lines
// and records without a label. Where there is none, or the training records have the same, nothing is
// refused.
TEST(CheckLabelNaming, LooksAtTheFirstLabel) {
  SimMachine machine;
  const auto host = machine.host();
  const auto refused = [&](const std::string& path, bool by_name) {
    const auto source = find_source(machine.disk, path, std::nullopt);
    EXPECT_TRUE(source.ok()) << source.error().message();
    const auto done = check_label_naming(host, *source, by_name);
    if (done.ok()) return std::string();
    EXPECT_EQ(done.error().where, source->path);
    return done.error().what;
  };
  const std::string names = "the training records have their labels by name";
  const std::string numbers = "the training records have their labels by number";
  write(machine.disk, "named.jsonl", "{broken\n{\"text\": \"a\"}\n{\"text\": \"a\", \"labels\": [\"x\"]}\n");
  write(machine.disk, "numbered.jsonl", "{\"text\": \"a\", \"labels\": [1]}\n");
  write(machine.disk, "none.jsonl", "{\"text\": \"a\", \"labels\": []}\n");
  write(machine.disk, "xmc.txt", "0 1:1\n");
  write(machine.disk, "features.jsonl", "{\"features\": [[1, 1]], \"labels\": [\"x\"]}\n");
  write(machine.disk, "nothing.jsonl", "{\"features\": [[1, 1]], \"labels\": []}\n");
  for (const char* kept : {"features", "nothing", "xmc"}) {
    const bool xmc = std::string_view(kept) == "xmc";
    const auto done =
        import_data(host, {.kind = xmc ? data::RecordFormat::kXmc : data::RecordFormat::kJsonlText,
                           .sources = {std::string(kept) + (xmc ? ".txt" : ".jsonl")},
                           .directory = kept});
    ASSERT_TRUE(done.ok()) << done.error().message();
  }
  for (const char* named : {"named.jsonl", "features.jsonl", "features"}) {
    EXPECT_EQ(refused(named, true), "") << named;
    EXPECT_EQ(refused(named, false), numbers) << named;
  }
  for (const char* numbered : {"numbered.jsonl", "xmc.txt", "xmc"}) {
    EXPECT_EQ(refused(numbered, false), "") << numbered;
    EXPECT_EQ(refused(numbered, true), names) << numbered;
  }
  for (const char* none : {"none.jsonl", "nothing"})
    for (const bool by_name : {false, true}) EXPECT_EQ(refused(none, by_name), "") << none;
}

// Claim: the records without a label are counted where some have one. Of lines of names none has a label.
TEST(DescribeUnlabelled, CountsThem) {
  const Source jsonl{.path = "f", .format = data::RecordFormat::kJsonlText};
  const Source text{.path = "f", .format = data::RecordFormat::kText};
  const data::ReadReport some{.records = 9, .labelled = 4, .other_keys = {"tags"}};
  EXPECT_EQ(describe_unlabelled(jsonl, some),
            "5 of 9 records have no label, and teach nothing; beside 'labels' there are the keys 'tags'");
  EXPECT_EQ(describe_unlabelled(text, some), "");
  EXPECT_EQ(describe_unlabelled(jsonl, {.records = 9, .labelled = 0}), "");
  EXPECT_EQ(describe_unlabelled(jsonl, {.records = 9, .labelled = 9}), "");
}

}  // namespace
}  // namespace gossamer::commands
