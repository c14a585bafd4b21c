// SPDX-License-Identifier: Apache-2.0
#include "commands/records/record_formats.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "learn/data/read/byte_source.h"

namespace gossamer::commands {
namespace {

using data::RecordFormat;

constexpr std::size_t kFormats = static_cast<std::size_t>(RecordFormat::kCache) + 1;

// Each format has a row of its own, with all that imported records need. Only imported records are read in
// another way than as a stream.
TEST(RecordFormats, EachHasARow) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kFormats; ++i) {
    const RecordRow& row = row_of(static_cast<RecordFormat>(i));
    EXPECT_EQ(static_cast<std::size_t>(row.format), i);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    const bool cache = row.format == RecordFormat::kCache;
    EXPECT_EQ(row.features.has_value(), !cache) << row.name;
    EXPECT_EQ(row.read != nullptr, !cache) << row.name;
    EXPECT_EQ(row.test != nullptr, !cache) << row.name;
    EXPECT_TRUE(row.import != nullptr && row.estimate != nullptr && row.look != nullptr &&
                row.query != nullptr)
        << row.name;
    // What is copied lies in a file of its own kind, which is no cache.
    EXPECT_EQ(row.copy != nullptr, std::string_view(row.imported) != "records.cache") << row.name;
  }
}

// Each form of features has a format, so that a model of any kind takes queries and test files.
TEST(RecordFormats, EachFormOfFeaturesHasOne) {
  for (const FeatureKind kind : {FeatureKind::kText, FeatureKind::kNames, FeatureKind::kSessions,
                                 FeatureKind::kWords, FeatureKind::kNumbers})
    EXPECT_EQ(row_of(kind).features, kind);
}

// The words of data.format name the formats that `data import` takes.
TEST(RecordFormats, WordsNameThem) {
  EXPECT_EQ(data::record_format("xmc"), RecordFormat::kXmc);
  EXPECT_EQ(data::record_format("jsonl"), RecordFormat::kJsonlText);
  EXPECT_EQ(data::record_format("sessions"), RecordFormat::kSessions);
  EXPECT_EQ(data::record_format("text"), RecordFormat::kText);
  EXPECT_EQ(data::record_format("cache"), std::nullopt);
}

// Reading counts the records of each format, and keeps nothing.
TEST(RecordFormats, ReadTheirOwn) {
  const std::pair<RecordFormat, std::string_view> cases[] = {
      {RecordFormat::kXmc, "0 1:1\n1 2:1\n"},
      {RecordFormat::kJsonlText, "{\"text\": \"a\"}\n"},
      {RecordFormat::kSessions, "a b c\n"},
      {RecordFormat::kText, "a b c\n"}};
  const std::uint64_t records[] = {2, 1, 1, 3};
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    const auto& [format, text] = cases[i];
    const auto source = data::memory_source("f", text);
    const auto report = row_of(format).read(*source, {});
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_EQ(report->records, records[i]) << name(format);
    EXPECT_GT(row_of(format).estimate(text), 0U) << name(format);
  }
}

}  // namespace
}  // namespace gossamer::commands
