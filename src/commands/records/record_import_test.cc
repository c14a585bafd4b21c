// SPDX-License-Identifier: Apache-2.0
#include "commands/records/record_import.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands/records/record_formats.h"
#include "commands/records/vocabulary_file.h"
#include "learn/data/cached_dataset.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::two_classes;
using run::testing::write;

struct Read {
  Result<data::ReadReport> imported;
  std::unique_ptr<data::CachedDataset> dataset;  // null after an error
};

Read import_as(SimMachine& machine, std::string_view content, data::RecordFormat format,
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

// Every kind of record ends in a cache with its shape. Names are kept, and only text has a vocabulary.
TEST(ImportRecords, EveryKind) {
  SimMachine machine;
  Read read = import_as(machine, two_classes(20), data::RecordFormat::kXmc);
  ASSERT_TRUE(read.dataset) << read.imported.error().message();
  EXPECT_EQ(read.dataset->size(), 20U);
  EXPECT_EQ(read.dataset->features(), 10U);
  EXPECT_FALSE(read.dataset->has_feature_names());

  read = import_as(machine,
                   "{\"features\": {\"b\": 1, \"a\": 2}, \"labels\": [\"x\"]}\n{\"features\": {\"a\": 3}}\n",
                   data::RecordFormat::kJsonlNames);
  ASSERT_TRUE(read.dataset) << read.imported.error().message();
  EXPECT_EQ(read.dataset->feature_name(0), "b");
  EXPECT_EQ(read.dataset->feature_name(1), "a");
  EXPECT_EQ(read.dataset->label_name(0), "x");
  EXPECT_EQ(read.dataset->record(RecordIndex(1)).features.value[0], 3);
  EXPECT_FALSE(read_vocabulary(machine.disk, "out/vocabulary.json")->has_value());

  read = import_as(machine, "{\"text\": \"deer meat\", \"labels\": [\"venison\"]}\n{\"text\": \"deer\"}\n",
                   data::RecordFormat::kJsonlText);
  ASSERT_TRUE(read.dataset) << read.imported.error().message();
  const auto vocabulary = read_vocabulary(machine.disk, "out/vocabulary.json");
  ASSERT_TRUE(vocabulary.ok() && vocabulary->has_value());
  EXPECT_THAT((*vocabulary)->features, ::testing::Contains("deer"));
  EXPECT_EQ((*vocabulary)->documents, 2U);
  EXPECT_EQ(read.dataset->features(), (*vocabulary)->features.size());
}

// A record of another kind than the first is a bad line with its place. It ends the
// import, or is left out and told.
TEST(ImportRecords, MixedKindsAreBadLines) {
  const std::vector<std::pair<data::RecordFormat, std::string>> files = {
      {data::RecordFormat::kJsonlText, "{\"text\": \"a\"}\n{\"features\": [[1, 1]]}\n"},
      {data::RecordFormat::kJsonlNames, "{\"features\": {\"a\": 1}}\n{\"features\": [[1, 1]]}\n"},
      {data::RecordFormat::kJsonlNumbers, "{\"features\": [[1, 1]]}\n{\"text\": \"a\"}\n"},
      {data::RecordFormat::kXmc, "0 1:1\n0 x\n"}};
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
    EXPECT_TRUE(machine.said("left out 1 bad line:"));
    EXPECT_TRUE(machine.said("f:2"));
  }
}

// Claim: texts without a word in common are refused with the setting that leaves their words out. With it at
// 1, one record is enough.
TEST(ImportRecords, NamesMinDf) {
  SimMachine machine;
  write(machine.disk, "f", "{\"text\": \"deer\", \"labels\": [1]}\n{\"text\": \"owl\", \"labels\": [2]}\n");
  const auto import = [&](std::uint32_t min_df) {
    return import_records(machine.host(),
                          {.sources = {{.path = "f", .format = data::RecordFormat::kJsonlText}},
                           .cache_path = "out/c",
                           .text = {.min_df = min_df}});
  };
  const auto refused = import(2);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().got, "2 records, and no word that stands in 2 of them");
  EXPECT_EQ(refused.error().fix, "set text.min_df=1, or give more records");
  EXPECT_TRUE(import(1).ok());
}

// Claim: text.max_features bounds the vocabulary. The most frequent words stay.
TEST(ImportRecords, MaxFeaturesBoundTheVocabulary) {
  SimMachine machine;
  write(machine.disk, "f", "{\"text\": \"owl deer\"}\n{\"text\": \"deer fox\"}\n{\"text\": \"fox deer\"}\n");
  const auto done =
      import_records(machine.host(), {.sources = {{.path = "f", .format = data::RecordFormat::kJsonlText}},
                                      .cache_path = "out/c",
                                      .text = {.stems = false, .min_df = 1, .max_features = 2}});
  ASSERT_TRUE(done.ok()) << done.error().message();
  const auto vocabulary = read_vocabulary(machine.disk, "out/vocabulary.json");
  ASSERT_TRUE(vocabulary.ok() && vocabulary->has_value());
  EXPECT_THAT((*vocabulary)->features, ::testing::UnorderedElementsAre("deer", "fox"));
}

// Claim: words that stand in contexts alone are counted, each where it stands, and told. A few among many are
// not, and neither are contexts that weigh nothing.
TEST(ImportRecords, TellsWordsOfContextsAlone) {
  const auto told = [](std::string_view context, double weight) {
    SimMachine machine;
    write(
        machine.disk, "f",
        fmt::format("{{\"text\": \"deer\", \"context\": \"{}\", \"labels\": [1]}}\n{{\"text\": \"deer\"}}\n",
                    context));
    const auto done =
        import_records(machine.host(), {.sources = {{.path = "f", .format = data::RecordFormat::kJsonlText}},
                                        .cache_path = "out/c",
                                        .text = {.min_df = 2, .context_weight = weight}});
    EXPECT_TRUE(done.ok()) << done.error().message();
    return machine.said("2 of 3 words in the \"context\" of records teach nothing") ? 2
           : machine.said("teach nothing")                                          ? 1
                                                                                    : 0;
  };
  EXPECT_EQ(told("owl deer owl", 1), 2);
  EXPECT_EQ(told("owl deer deer deer deer deer deer deer deer deer deer", 1), 0);
  EXPECT_EQ(told("owl deer owl", 0), 0);
}

// Claim: an import that is asked to stop ends at once and leaves no cache. That holds in the first pass over
// text and in the second, which begins once the vocabulary is there.
TEST(ImportRecords, Stops) {
  const auto expect_stop = [](SimMachine& machine, data::RecordFormat format, const std::string& content,
                              const std::function<bool()>& stop) {
    write(machine.disk, "f", content);
    const auto done = import_records(
        machine.host(), {.sources = {{.path = "f", .format = format}}, .cache_path = "out/c", .stop = stop});
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().what, "stopped");
    EXPECT_FALSE(*machine.disk.exists("out/c"));
  };
  const std::string text = "{\"text\": \"deer\", \"labels\": [1]}\n";
  for (const auto& [format, content] : {std::pair(data::RecordFormat::kXmc, two_classes(20)),
                                        std::pair(data::RecordFormat::kJsonlText, text)}) {
    for (const int asked_before : {0, 1}) {
      SimMachine machine;
      int asked = 0;
      expect_stop(machine, format, content, [&] { return asked++ >= asked_before; });
      EXPECT_EQ(asked, asked_before + 1);
      if (asked_before == 0) {
        EXPECT_FALSE(*machine.disk.exists("out/vocabulary.json"));
      }
    }
  }
  SimMachine machine;
  expect_stop(machine, data::RecordFormat::kJsonlText, text,
              [&] { return *machine.disk.exists("out/vocabulary.json"); });
}

// Bad lines are told with the first few examples, and that there are more.
TEST(DescribeSkipped, ExamplesAndMore) {
  data::ReadReport report;
  EXPECT_EQ(describe_skipped(report), "");
  report.skipped = 1;
  report.examples = {{.kind = ErrorKind::kBadData, .where = "f:1:2", .what = "odd"}};
  EXPECT_EQ(describe_skipped(report), "left out 1 bad line:\n  f:1:2: odd");
  report.skipped = 1234;
  EXPECT_EQ(describe_skipped(report), "left out 1,234 bad lines:\n  f:1:2: odd\n  ...");
}

}  // namespace
}  // namespace gossamer::commands
