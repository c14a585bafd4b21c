// SPDX-License-Identifier: Apache-2.0
#include "commands/records/training_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::two_classes;
using run::testing::write;
using ::testing::HasSubstr;

RecordFormat format_of(std::string_view content,
                       std::optional<sparse_engine::DataFormat> wanted = std::nullopt) {
  SimMachine machine;
  write(machine.disk, "f", content);
  const auto source = find_source(machine.disk, "f", wanted);
  EXPECT_TRUE(source.ok()) << source.error().message();
  return source.ok() ? source->format : RecordFormat::kCache;
}

// The content decides, by the first record that tells the format. The user's word goes before it.
TEST(FindSource, TellsFormatsByContent) {
  EXPECT_EQ(format_of("3 10 2\n0 1:1\n"), RecordFormat::kXmc);
  EXPECT_EQ(format_of("0,1 1:1\n"), RecordFormat::kXmc);
  EXPECT_EQ(format_of(R"({"text": "deer", "labels": [1]})"), RecordFormat::kJsonlText);
  EXPECT_EQ(format_of("\n  \n"
                      R"({"features": [[1, 2]]})"),
            RecordFormat::kJsonlNumbers);
  EXPECT_EQ(format_of("\xef\xbb\xbf"
                      R"({"features": {"a": 2}})"),
            RecordFormat::kJsonlNames);
  EXPECT_EQ(format_of("{\"features\": []}\n{\"features\": {}}\n{\"features\": {\"a\": 1}}\n"),
            RecordFormat::kJsonlNames);
  EXPECT_EQ(format_of("{\"features\": {}}\n{\"features\": [[1, 1]]}\n"), RecordFormat::kJsonlNumbers);
  EXPECT_EQ(format_of("{broken\n{\"features\": [[1, 1]]}\n"), RecordFormat::kJsonlNumbers);
  EXPECT_EQ(format_of("\n"
                      R"({"text": "a"})",
                      sparse_engine::DataFormat::kJsonl),
            RecordFormat::kJsonlText);
  EXPECT_EQ(format_of(R"({"text": "a"})", sparse_engine::DataFormat::kXmc), RecordFormat::kXmc);
}

// Sessions look like other records and must be asked for. A file that surely is something
// else is refused, either way round.
TEST(FindSource, Sessions) {
  constexpr sparse_engine::DataFormat kSessions = sparse_engine::DataFormat::kSessions;
  EXPECT_EQ(format_of("1 2 3\n", kSessions), RecordFormat::kSessions);
  SimMachine machine;
  for (const char* directory : {"cache", "sessions"})
    ASSERT_TRUE(machine.disk.make_directories(directory).ok());
  write(machine.disk, "a.jsonl", "{\"text\": \"a\"}\n");
  write(machine.disk, "cache/records.cache", "x");
  write(machine.disk, "sessions/records.sessions", "a b\n");
  const auto found = find_source(machine.disk, "sessions", std::nullopt);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->format, RecordFormat::kSessions);
  EXPECT_EQ(found->path, "sessions/records.sessions");
  EXPECT_TRUE(find_source(machine.disk, "sessions", kSessions).ok());
  const auto refused = [&](const char* path, sparse_engine::DataFormat wanted, const char* part) {
    const auto source = find_source(machine.disk, path, wanted);
    ASSERT_FALSE(source.ok()) << path;
    EXPECT_EQ(source.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(source.error().message(), HasSubstr(part));
  };
  refused("a.jsonl", kSessions, "expected sessions, one a line");
  refused("cache", kSessions, "expected sessions, one a line");
  refused("sessions", sparse_engine::DataFormat::kXmc, "got sessions");
  refused("sessions", sparse_engine::DataFormat::kText, "expected plain text");
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
  EXPECT_EQ(cache->format, RecordFormat::kCache);
  EXPECT_EQ(cache->path, "cache/records.cache");
  const auto text = find_source(machine.disk, "text", std::nullopt);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->format, RecordFormat::kJsonlText);

  const auto missing = find_source(machine.disk, "nowhere", std::nullopt);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::kFailed);
  EXPECT_EQ(missing.error().where, "nowhere");
  const auto untold = find_source(machine.disk, "-", std::nullopt);
  ASSERT_FALSE(untold.ok());
  EXPECT_EQ(untold.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(find_source(machine.disk, "-", sparse_engine::DataFormat::kXmc)->format, RecordFormat::kXmc);
}

struct Read {
  Result<Imported> imported;
  std::unique_ptr<data::CachedDataset> dataset;  // null after an error
};

Read import_as(SimMachine& machine, std::string_view content, RecordFormat format,
               std::uint64_t skip_bad = 0) {
  write(machine.disk, "f", content);
  Read read{.imported = import_records(machine.host(), {.sources = {{.path = "f", .format = format}},
                                                        .cache_path = "out/c",
                                                        .text = {.min_df = 1},
                                                        .skip_bad = skip_bad}),
            .dataset = nullptr};
  if (!read.imported.ok()) return read;
  auto opened = data::CachedDataset::open(machine.disk, "out/c", machine.compute);
  EXPECT_TRUE(opened.ok()) << opened.error().message();
  if (opened.ok()) read.dataset = std::move(*opened);
  return read;
}

// Every kind of record ends in a cache with its shape. Names are kept, and only text has a featurizer.
TEST(ImportRecords, EveryKind) {
  SimMachine machine;
  Read read = import_as(machine, two_classes(20), RecordFormat::kXmc);
  ASSERT_TRUE(read.dataset) << read.imported.error().message();
  EXPECT_EQ(read.dataset->size(), 20U);
  EXPECT_EQ(read.dataset->features(), 10U);
  EXPECT_FALSE(read.dataset->has_feature_names());

  read = import_as(machine,
                   "{\"features\": {\"b\": 1, \"a\": 2}, \"labels\": [\"x\"]}\n{\"features\": {\"a\": 3}}\n",
                   RecordFormat::kJsonlNames);
  ASSERT_TRUE(read.dataset) << read.imported.error().message();
  EXPECT_EQ(read.dataset->feature_name(0), "b");
  EXPECT_EQ(read.dataset->feature_name(1), "a");
  EXPECT_EQ(read.dataset->label_name(0), "x");
  EXPECT_EQ(read.dataset->record(RecordIndex(1)).features.value[0], 3);
  EXPECT_FALSE(read.imported->featurizer.has_value());

  read = import_as(machine, "{\"text\": \"deer meat\", \"labels\": [\"venison\"]}\n{\"text\": \"deer\"}\n",
                   RecordFormat::kJsonlText);
  ASSERT_TRUE(read.dataset) << read.imported.error().message();
  ASSERT_TRUE(read.imported->featurizer.has_value());
  EXPECT_THAT(read.imported->featurizer->features, ::testing::Contains("deer"));
  EXPECT_EQ(read.imported->featurizer->documents, 2U);
  EXPECT_EQ(read.dataset->features(), read.imported->featurizer->features.size());
}

// A record of another kind than the first is a bad line with its place. It ends the
// import, or is left out and told.
TEST(ImportRecords, MixedKindsAreBadLines) {
  const std::vector<std::pair<RecordFormat, std::string>> files = {
      {RecordFormat::kJsonlText, "{\"text\": \"a\"}\n{\"features\": [[1, 1]]}\n"},
      {RecordFormat::kJsonlNames, "{\"features\": {\"a\": 1}}\n{\"features\": [[1, 1]]}\n"},
      {RecordFormat::kJsonlNumbers, "{\"features\": [[1, 1]]}\n{\"text\": \"a\"}\n"},
      {RecordFormat::kXmc, "0 1:1\n0 x\n"}};
  for (const auto& [format, content] : files) {
    SCOPED_TRACE(name(format));
    SimMachine machine;
    const Read strict = import_as(machine, content, format);
    ASSERT_FALSE(strict.imported.ok());
    EXPECT_EQ(strict.imported.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(strict.imported.error().where.substr(0, 3), "f:2");
    EXPECT_FALSE(*machine.disk.exists("out/c"));
    const Read lenient = import_as(machine, content, format, 1);
    ASSERT_TRUE(lenient.dataset);
    EXPECT_EQ(lenient.dataset->size(), 1U);
    EXPECT_TRUE(machine.said("left out 1 bad lines"));
    EXPECT_TRUE(machine.said("f:2"));
  }
}

// An import that is asked to stop ends at once and leaves no cache, in the first
// pass over text as in the second.
TEST(ImportRecords, Stops) {
  for (const auto& [format, content] :
       {std::pair(RecordFormat::kXmc, two_classes(20)),
        std::pair(RecordFormat::kJsonlText, std::string("{\"text\": \"deer\", \"labels\": [1]}\n"))}) {
    for (const int asked_before : {0, 1}) {
      SimMachine machine;
      write(machine.disk, "f", content);
      int asked = 0;
      const auto done = import_records(machine.host(), {.sources = {{.path = "f", .format = format}},
                                                        .cache_path = "out/c",
                                                        .stop = [&] { return asked++ >= asked_before; }});
      if (done.ok()) {
        EXPECT_EQ(asked, 1) << "numbered records are read once";
        continue;
      }
      EXPECT_EQ(done.error().what, "stopped");
      EXPECT_FALSE(*machine.disk.exists("out/c"));
    }
  }
}

// A test file is read to its end and judged. Imported records were judged before.
TEST(CheckRecords, ReadsToTheEnd) {
  SimMachine machine;
  const run::NodeHost host = machine.host();
  write(machine.disk, "good.txt", two_classes(20));
  write(machine.disk, "bad.txt", "0 1:1\n0 1:1\n0 x\n");
  write(machine.disk, "bad.jsonl", "{\"text\": \"a\"}\n{\"text\": 3}\n");
  EXPECT_TRUE(check_records(host, {.path = "good.txt", .format = RecordFormat::kXmc}, 0).ok());
  const auto bad = check_records(host, {.path = "bad.txt", .format = RecordFormat::kXmc}, 0);
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().where, HasSubstr("bad.txt:3"));
  EXPECT_TRUE(check_records(host, {.path = "bad.txt", .format = RecordFormat::kXmc}, 1).ok());
  const auto json = check_records(host, {.path = "bad.jsonl", .format = RecordFormat::kJsonlText}, 0);
  ASSERT_FALSE(json.ok());
  EXPECT_THAT(json.error().where, HasSubstr("bad.jsonl:2"));
  EXPECT_TRUE(check_records(host, {.path = "any", .format = RecordFormat::kCache}, 0).ok());
}

// Bad lines are told with the first few examples, and that there are more.
TEST(DescribeSkipped, ExamplesAndMore) {
  data::ReadReport report;
  EXPECT_EQ(describe_skipped(report), "");
  report.skipped = 1;
  report.examples = {{.kind = ErrorKind::kBadData, .where = "f:1:2", .what = "odd"}};
  EXPECT_EQ(describe_skipped(report), "left out 1 bad lines:\n  f:1:2: odd");
  report.skipped = 1234;
  EXPECT_EQ(describe_skipped(report), "left out 1,234 bad lines:\n  f:1:2: odd\n  ...");
}

}  // namespace
}  // namespace gossamer::commands
