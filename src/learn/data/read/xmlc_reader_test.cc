// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/xmlc_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"
#include "host/api/files.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "learn/data/read/test_collected_records.h"
#include "learn/data/read/test_read_items.h"

namespace gossamer::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ReadItems<CollectedRecord> read_xmlc_text(const std::string& text, const ReadOptions& options = {}) {
  ReadItems<CollectedRecord> got;
  const auto source = memory_source("train.txt", text);
  got.report = read_xmlc(*source, options, [&](const Record& record) -> Result<void> {
    got.items.push_back(collect(record));
    return {};
  });
  EXPECT_TRUE(got.report.ok() || got.report.error().kind == ErrorKind::kBadData);
  return got;
}

// The format as its users write it: header, labels, features, several blanks, CRLF, no last line end.
TEST(XmlcReader, ReadsRecords) {
  const auto got = read_xmlc_text("3 10 4\r\n3,1 0:1 9:0.5\r\n 5:-2e-1\t 7:0  \r\n2");
  ASSERT_EQ(got.message(), "ok");
  EXPECT_THAT(got.items, ElementsAre(CollectedRecord{{0, 9}, {1, 0.5F}, {1, 3}},
                                     CollectedRecord{{5, 7}, {-0.2F, 0}, {}}, CollectedRecord{{}, {}, {2}}));
  EXPECT_EQ(got.report->features, 10U);
  EXPECT_EQ(got.report->labels, 4U);
  EXPECT_EQ(got.report->records, 3U);
}

// Without a header the shape is what was seen.
TEST(XmlcReader, ReadsWithoutHeader) {
  const auto got = read_xmlc_text("7 1:1\n3 12:1\n");
  ASSERT_EQ(got.message(), "ok");
  EXPECT_EQ(got.report->features, 13U);
  EXPECT_EQ(got.report->labels, 8U);
  EXPECT_EQ(got.report->bytes, 13U);
}

// Indices are sorted with their values, labels are a set.
TEST(XmlcReader, SortsFeaturesAndLabels) {
  EXPECT_THAT(read_xmlc_text("5,2,5,2 9:9 1:1 4:4\n").items,
              ElementsAre(CollectedRecord{{1, 4, 9}, {1, 4, 9}, {2, 5}}));
}

// Every kind of bad line is refused with file, line, column, what was found and what was expected.
TEST(XmlcReader, RefusesBadLines) {
  const auto second = [](const std::string& line) {
    return read_xmlc_text("2 10 4\n1 1:1\n" + line + "\n").message();
  };
  EXPECT_EQ(
      second("1 1:1 x:2"),
      "train.txt:3:7: cannot read a feature index: got 'x'; expected an integer in 0..9" + std::string(kFix));
  EXPECT_EQ(second("1 -3:2"),
            "train.txt:3:3: cannot read a feature index: got '-3'; expected an integer in 0..9" +
                std::string(kFix));
  EXPECT_EQ(second("1 10:2"),
            "train.txt:3:3: a feature index is out of range: got '10'; expected 0..9" + std::string(kFix));
  EXPECT_EQ(second("1 18446744073709551617:2"),
            "train.txt:3:3: a feature index is out of range: got '18446744073709551617'; expected 0..9" +
                std::string(kFix));
  EXPECT_EQ(second("1 5"),
            "train.txt:3:3: cannot read a feature: got '5'; expected INDEX:VALUE" + std::string(kFix));
  for (const char* value : {"nan", "inf", "-inf", "1e99", "", "1.5x", "1:2", "--1", "1,5"}) {
    EXPECT_EQ(second(std::string("1 5:") + value),
              fmt::format(
                  "train.txt:3:5: cannot read a feature value: got '{}'; expected a finite decimal number{}",
                  value, kFix));
  }
  EXPECT_EQ(
      second("1 3:1 5:1 3:2"),
      "train.txt:3:11: a feature index stands twice in one record: got 3 again; expected each index once" +
          std::string(kFix));
  EXPECT_EQ(second("1,4 5:1"),
            "train.txt:3:3: a label is out of range: got '4'; expected 0..3" + std::string(kFix));
  EXPECT_EQ(second("-1 5:1"),
            "train.txt:3:1: cannot read a label: got '-1'; expected an integer in 0..3" + std::string(kFix));
  EXPECT_EQ(second("1,,2 5:1"),
            "train.txt:3:3: cannot read a label: got ''; expected an integer in 0..3" + std::string(kFix));
  EXPECT_EQ(second("1, 5:1"),
            "train.txt:3:3: cannot read a label: got ''; expected an integer in 0..3" + std::string(kFix));
  EXPECT_EQ(second("5:1"),
            "train.txt:3:1: cannot read the labels: got '5:1'; expected LABEL,LABEL,... first, or a space "
            "where there is "
            "no label" +
                std::string(kFix));
  EXPECT_EQ(second(std::string("1 5:1\0 6:1", 10)),
            "train.txt:3:5: cannot read a feature value: got '1\\x00'; expected a finite decimal number" +
                std::string(kFix));
  EXPECT_EQ(second("1 5:\xFF\xFE"),
            "train.txt:3:5: cannot read a feature value: got '\\xFF\\xFE'; expected a finite decimal number" +
                std::string(kFix));
}

// Without a header the bounds are those of the limits.
TEST(XmlcReader, KeepsLimitsWithoutHeader) {
  EXPECT_EQ(read_xmlc_text("1 4294967295:1\n").message(),
            "train.txt:1:3: a feature index is out of range: got '4294967295'; expected 0..4294967294" +
                std::string(kFix));
  EXPECT_EQ(read_xmlc_text("6 1:1\n", {.limits = {.labels = 5}}).message(),
            "train.txt:1:1: a label is out of range: got '6'; expected 0..4" + std::string(kFix));
}

// A header is refused that lies about the number of records, or asks for more than the limits allow.
TEST(XmlcReader, RefusesLyingHeaders) {
  EXPECT_EQ(read_xmlc_text("3 10 4\n1 1:1\n").message(),
            "train.txt:1:1: cannot use the header: got '3 10 4'; expected 1, the number of records in the "
            "file; correct "
            "the first line, or remove it");
  EXPECT_THAT(read_xmlc_text("1 10 4\n1 1:1\n2 1:1\n").message(),
              HasSubstr("expected 2, the number of records in the file"));
  EXPECT_THAT(read_xmlc_text("1 99999999999 4\n1 1:1\n").message(),
              HasSubstr("expected at most 4294967295 features"));
  EXPECT_THAT(read_xmlc_text("1 9 99999999999\n1 1:1\n").message(),
              HasSubstr("expected at most 4294967295 labels"));
  EXPECT_THAT(read_xmlc_text("99999999999 9 9\n1 1:1\n").message(),
              HasSubstr("expected fewer than 2^32 records"));
  EXPECT_THAT(read_xmlc_text("1 0 0\n1 1:1\n").message(),
              HasSubstr("a label is out of range: got '1'; expected none"));
}

// A file without records says what it is instead.
TEST(XmlcReader, RefusesFilesWithoutRecords) {
  const std::string expected =
      "; expected lines of LABEL,LABEL INDEX:VALUE ...; check that this is the right file";
  const std::string what = "train.txt: there is no record in the file: got ";
  EXPECT_EQ(read_xmlc_text("").message(), what + "an empty file" + expected);
  EXPECT_EQ(read_xmlc_text("0 5 5\n").message(), what + "a header alone" + expected);
  EXPECT_EQ(read_xmlc_text("\n\r\n\n").message(), what + "blank lines" + expected);
  EXPECT_EQ(read_xmlc_text("x\n", {.skip_bad = 5}).message(), what + "1 bad line" + expected);
}

// Empty lines: records where a header counts them, nothing at the end, an error in between without a header.
TEST(XmlcReader, EmptyLines) {
  EXPECT_EQ(read_xmlc_text("3 9 9\n1 1:1\n\n2 1:1\n\n\n").items.size(), 3U);
  EXPECT_EQ(read_xmlc_text("4 9 9\n1 1:1\n\n2 1:1\n\n\n").items.size(), 4U);
  EXPECT_EQ(read_xmlc_text("2 9 9\n\n1 1:1").items.size(), 2U);
  EXPECT_EQ(read_xmlc_text("1 1:1\n\n\n").items.size(), 1U);
  EXPECT_EQ(
      read_xmlc_text("1 1:1\n\n\n2 1:1\n").message(),
      "train.txt:2:1: the line is empty: got no text, and no header that counts it as a record; expected "
      "LABEL,LABEL INDEX:VALUE ..." +
          std::string(kFix));
  EXPECT_THAT(read_xmlc_text(" \n").items, ElementsAre(CollectedRecord{}));
}

// skip_bad leaves out as many lines as allowed, reports the first ones, and names the one too many.
TEST(XmlcReader, SkipsBadLines) {
  const std::string text = "1 1:1\nx\n2 1:1\n3 1:nan\n4 1:1\n";
  const auto got = read_xmlc_text(text, {.skip_bad = 2});
  ASSERT_EQ(got.message(), "ok");
  EXPECT_EQ(got.items.size(), 3U);
  EXPECT_EQ(got.report->skipped, 2U);
  ASSERT_EQ(got.report->examples.size(), 2U);
  EXPECT_EQ(got.report->examples[1].where, "train.txt:4:5");
  EXPECT_EQ(read_xmlc_text(text, {.skip_bad = 1}).message(),
            "train.txt:4:5: cannot read a feature value: got 'nan'; expected a finite decimal number; bad "
            "line number 2, "
            "and --skip-bad 1 allows no more: mend the lines or raise it");
  EXPECT_EQ(read_xmlc_text(text, {.skip_bad = UINT64_MAX}).items.size(), 3U);
  EXPECT_EQ(read_xmlc_text("3 9 9\n1 1:1\nx\n2 1:1\n", {.skip_bad = 1}).message(), "ok");
}

// A line beyond the limit is one bad line, wherever chunks end; the default limit stops a 100 MB line.
TEST(XmlcReader, RefusesEndlessLines) {
  const std::string huge = "1 " + std::string(100'000'000, '1') + "\n";
  EXPECT_EQ(read_xmlc_text("1 1:1\n" + huge + "2 1:1\n").message(),
            "train.txt:2:1: the line is too long: got more than 67108864 bytes without a line end; expected "
            "one record a "
            "line" +
                std::string(kFix));
  EXPECT_EQ(read_xmlc_text("1 1:1\n" + huge + "2 1:1\n", {.skip_bad = 1}).items.size(), 2U);
  for (std::size_t size = 1; size < 40; ++size) {
    const auto got = read_xmlc_text("1 1:1\n2 1:1 2:2 3:3\n3 1:1\n",
                                    {.limits = {.line_bytes = 12, .chunk_bytes = size}, .skip_bad = 1});
    ASSERT_EQ(got.message(), "ok") << size;
    EXPECT_EQ(got.items.size(), 2U) << size;
    EXPECT_EQ(got.report->examples.at(0).where, "train.txt:2:1");
  }
}

// A damaged archive fails the read for every chunk size and worker count, even where good lines come before
// the damage. (Found by fuzz_xmlc. How many good lines reach the sink before the failure does depend on the
// chunks.)
TEST(XmlcReader, RefusesDamagedArchives) {
  const std::string archive = "\x28\xB5\x2F\xFD\x04\x3A\x31\r\n\r0 \n1\r\n\xAB\x82H";
  for (int workers = 1; workers <= 3; ++workers) {
    for (std::size_t size = 1; size < 40; ++size) {
      host::SimDisk disk;
      ASSERT_TRUE(host::replace_file(disk, "train.txt", archive).ok());
      host::SimCompute compute({.workers = workers, .seed = size});
      const auto source = open_bytes(disk, "train.txt");
      const ReadOptions options{.limits = {.chunk_bytes = size}, .skip_bad = 100, .compute = &compute};
      const auto report = read_xmlc(**source, options, [](const Record&) { return Result<void>(); });
      ASSERT_FALSE(report.ok());
      EXPECT_THAT(report.error().message(), HasSubstr("train.txt: cannot unpack the zstd archive"));
    }
  }
}

// A sink's verdict on a record is a bad line; its other errors and those of progress end the read.
TEST(XmlcReader, SinkErrors) {
  const auto source = memory_source("train.txt", "1 1:1\n2 9:1\n3 1:1\n");
  const auto report = read_xmlc(*source, {.skip_bad = 1}, [](const Record& record) -> Result<void> {
    if (record.labels[0] == 2) return Error{.kind = ErrorKind::kBadData, .what = "no twos"};
    return {};
  });
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->records, 2U);
  EXPECT_EQ(report->features, 2U);
  EXPECT_EQ(report->examples.at(0).where, "train.txt:2:1");
  const auto again = memory_source("train.txt", "1 1:1\n2 1:1\n");
  const auto full = read_xmlc(*again, {.skip_bad = 9}, [](const Record&) -> Result<void> {
    return Error{.where = "disk", .what = "full"};
  });
  EXPECT_EQ(full.error().message(), "disk: full");
  const ReadOptions stop{
      .progress = [](const ReadProgress&) -> Result<void> { return Error{.what = "stopped"}; }};
  EXPECT_EQ(read_xmlc(*memory_source("x", "1 1:1\n"), stop, [](const Record&) { return Result<void>(); })
                .error()
                .message(),
            "stopped");
}

std::vector<CollectedRecord> random_records(Rng& rng) {
  std::vector<CollectedRecord> records(1 + rng.below(60));
  for (CollectedRecord& record : records) {
    for (std::uint32_t i = static_cast<std::uint32_t>(rng.below(50)); i < 200;
         i += 1 + static_cast<std::uint32_t>(rng.below(80))) {
      record.index.push_back(i);
      record.value.push_back(rng.normal());
    }
    for (std::uint32_t i = static_cast<std::uint32_t>(rng.below(40)); i < 50;
         i += 1 + static_cast<std::uint32_t>(rng.below(30))) {
      record.labels.push_back(i);
    }
  }
  return records;
}

std::string text_of(const std::vector<CollectedRecord>& records) {
  std::string text;
  for (const CollectedRecord& record : records) {
    text += fmt::format("{}", fmt::join(record.labels, ","));
    for (std::size_t i = 0; i < record.index.size(); ++i)
      text += fmt::format(" {}:{}", record.index[i], record.value[i]);
    if (record.labels.empty() && record.index.empty()) text += " ";
    text += "\n";
  }
  return text;
}

// What is written is read back exactly, for every chunk size, worker count and order of the workers.
TEST(XmlcReader, RoundTrip) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed, Purpose::kTest);
    const std::vector<CollectedRecord> records = random_records(rng);
    std::string text = text_of(records);
    if (seed % 2 == 0) text = fmt::format("{} 200 50\n", records.size()) + text;
    for (int workers = 1; workers <= 4; ++workers) {
      host::SimCompute compute({.workers = workers, .seed = seed});
      const ReadOptions options{.limits = {.chunk_bytes = 1 + rng.below(300)}, .compute = &compute};
      const auto got = read_xmlc_text(text, options);
      ASSERT_EQ(got.message(), "ok") << "seed " << seed;
      ASSERT_EQ(got.items, records) << "seed " << seed << ", chunks of " << options.limits.chunk_bytes;
    }
  }
}

// Errors too are the same for every chunk size and worker count.
TEST(XmlcReader, ErrorsDoNotDependOnChunks) {
  const std::string text = "1 1:1\n\n2 1:1\nbad\n3 1:1 2:x\n\n";
  for (int workers = 1; workers <= 3; ++workers) {
    for (std::size_t size = 1; size < 40; ++size) {
      host::SimCompute compute({.workers = workers, .seed = size});
      const auto options = [&](std::uint64_t skip) {
        return ReadOptions{.limits = {.chunk_bytes = size}, .skip_bad = skip, .compute = &compute};
      };
      EXPECT_THAT(read_xmlc_text(text, options(0)).message(), HasSubstr("train.txt:2:1: the line is empty"));
      EXPECT_THAT(read_xmlc_text(text, options(1)).message(),
                  HasSubstr("train.txt:4:1: cannot read a label: got 'bad'"));
      EXPECT_THAT(read_xmlc_text(text, options(2)).message(),
                  HasSubstr("train.txt:5:9: cannot read a feature value: got 'x'"));
      EXPECT_EQ(read_xmlc_text(text, options(3)).report->skipped, 3U);
    }
  }
}

}  // namespace
}  // namespace gossamer::data
