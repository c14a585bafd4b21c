// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/import.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "host/api/files.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "learn/data/cached_dataset.h"
#include "learn/data/read/test_collected_records.h"

namespace gossamer::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kOneSource = {"train.txt"};

Result<std::unique_ptr<CachedDataset>> open_cache(host::Disk& disk, const std::string& path) {
  host::SimCompute compute({.workers = 2});
  return CachedDataset::open(disk, path, compute);
}

// Each position from the second on is a record; of a line with a target only the target is. An item has one
// number and name on both sides. A lone item makes no record.
TEST(Import, SessionsBecomeRecords) {
  host::SimDisk disk;
  ASSERT_TRUE(host::replace_file(disk, "train.txt", "b a b\nlone\na b\tc\n").ok());
  const auto report =
      import_sessions(disk, {.sources = kOneSource, .cache_path = "set.cache"}, {.last = 2, .decay = 1});
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->records, 3U);
  EXPECT_EQ(report->features, 4U);
  EXPECT_EQ(report->labels, 4U);
  const auto set = open_cache(disk, "set.cache");
  ASSERT_TRUE(set.ok());
  const float half = 1 / std::sqrt(2.0F);
  EXPECT_THAT(collect(**set),
              ElementsAre(CollectedRecord{{0}, {1}, {1}}, CollectedRecord{{0, 1}, {half, half}, {0}},
                          CollectedRecord{{0, 1}, {half, half}, {3}}));
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ((*set)->label_name(i), (*set)->feature_name(i));
  EXPECT_EQ((*set)->label_name(2), "lone");
}

// Several sources with headers of their own become one dataset with the largest shape.
TEST(Import, JoinsSources) {
  host::SimDisk disk;
  ASSERT_TRUE(host::replace_file(disk, "a", "2 10 3\n1 1:1\n2 9:1\n").ok());
  ASSERT_TRUE(host::replace_file(disk, "b", "7 3:1\nbad\n").ok());
  const std::vector<std::string> sources = {"a", "b"};
  const auto report =
      import_xmlc(disk, {.sources = sources, .cache_path = "out/set.cache", .read = {.skip_bad = 1}});
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->records, 3U);
  EXPECT_EQ(report->skipped, 1U);
  const auto set = open_cache(disk, "out/set.cache");
  ASSERT_TRUE(set.ok());
  EXPECT_EQ((*set)->features(), 10U);
  EXPECT_EQ((*set)->labels(), 8U);
  EXPECT_THAT(collect(**set), ElementsAre(CollectedRecord{{1}, {1}, {1}}, CollectedRecord{{9}, {1}, {2}},
                                          CollectedRecord{{3}, {1}, {7}}));
}

// --skip-bad counts over all sources.
TEST(Import, SkipsAreCountedOverAllSources) {
  host::SimDisk disk;
  ASSERT_TRUE(host::replace_file(disk, "a", "1 1:1\nbad\n").ok());
  const std::vector<std::string> sources = {"a", "a"};
  const auto report =
      import_xmlc(disk, {.sources = sources, .cache_path = "set.cache", .read = {.skip_bad = 1}});
  EXPECT_EQ(
      report.error().message(),
      "a:2:1: cannot read a label: got 'bad'; expected an integer in 0..4294967294; bad line number 2, and "
      "--skip-bad 1 allows no more: mend the lines or raise it");
  EXPECT_FALSE(*disk.exists("set.cache"));
}

// Names of labels and features reach the cache; a skipped line that mixes numbers in does not disturb them.
TEST(Import, JsonlKeepsNames) {
  host::SimDisk disk;
  ASSERT_TRUE(host::replace_file(disk, "train.jsonl",
                                 "{\"features\": {\"w\": 1, \"v\": 2}, \"labels\": [\"x\"]}\n"
                                 "{\"features\": {\"v\": 3}, \"labels\": [77]}\n"
                                 "{\"features\": {\"v\": 3}, \"labels\": [\"y\", \"x\"]}\n")
                  .ok());
  const std::vector<std::string> sources = {"train.jsonl"};
  RecordAssembler assembler;
  const auto report =
      import_jsonl(disk, {.sources = sources, .cache_path = "set.cache", .read = {.skip_bad = 1}}, assembler);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->examples.at(0).message(),
            "train.jsonl:2:1: the file mixes label names and label numbers: got numbers; expected names, as "
            "in the lines "
            "before; mend the line, or use --skip-bad N to leave out up to N bad lines");
  const auto set = open_cache(disk, "set.cache");
  ASSERT_TRUE(set.ok());
  EXPECT_EQ((*set)->label_name(1), "y");
  EXPECT_EQ((*set)->feature_name(0), "w");
  EXPECT_THAT(collect(**set),
              ElementsAre(CollectedRecord{{0, 1}, {1, 2}, {0}}, CollectedRecord{{1}, {3}, {0, 1}}));
}

// The cache has the same bytes for every worker count and chunk size.
TEST(Import, SameBytesForAllWorkers) {
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += fmt::format("{},{} {}:{} 999:1\n", i % 7, 8 + i % 3, i % 500, i * 0.25);
  std::string first;
  for (int workers = 1; workers <= 4; ++workers) {
    host::SimDisk disk;
    ASSERT_TRUE(host::replace_file(disk, "train.txt", text).ok());
    host::SimCompute compute({.workers = workers});
    const ReadOptions read{.limits = {.chunk_bytes = static_cast<std::size_t>(workers) * 700},
                           .compute = &compute};
    ASSERT_TRUE(import_xmlc(disk, {.sources = kOneSource, .cache_path = "set.cache", .read = read}).ok());
    const std::string bytes = *host::read_text(disk, "set.cache");
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << workers << " workers";
  }
}

// Whatever operation of the disk fails, and whenever the machine dies, the name leads to the old file or to
// the whole new one. After a mere failure nothing else is left.
TEST(Import, AllOrNothingOnEveryFault) {
  const auto prepare = [](host::SimDisk& disk) {
    ASSERT_TRUE(host::replace_file(disk, "train.txt", "1 1:1\n2 2:1\n3 3:1\n4 1:1\n5 1:1\n").ok());
    ASSERT_TRUE(host::replace_file(disk, "set.cache", "old").ok());
  };
  const ImportOptions options{
      .sources = kOneSource, .cache_path = "set.cache", .cache = {.records_per_block = 2}};
  host::SimDisk rehearsal;
  prepare(rehearsal);
  rehearsal.restart_count({});
  ASSERT_TRUE(import_xmlc(rehearsal, options).ok());
  const std::string fresh = *host::read_text(rehearsal, "set.cache");
  const std::uint64_t operations = rehearsal.operations();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (std::uint64_t k = 0; k <= operations; ++k) {
      host::SimDisk failing;
      prepare(failing);
      failing.restart_count({.seed = seed, .fail_at_operation = k});
      const bool done = import_xmlc(failing, options).ok();
      failing.restart_count({});
      const std::string left = *host::read_text(failing, "set.cache");
      EXPECT_TRUE(done ? left == fresh : left == "old" || left == fresh)
          << "operation " << k << " seed " << seed;
      EXPECT_EQ(failing.list(".")->size(), 2U) << "operation " << k << " seed " << seed;

      host::SimDisk crashing;
      prepare(crashing);
      crashing.restart_count({.seed = seed, .crash_at_operation = k});
      const bool finished = import_xmlc(crashing, options).ok();
      const auto later = crashing.after_crash();
      const auto found = host::read_text(*later, "set.cache");
      ASSERT_TRUE(found.ok()) << "operation " << k << " seed " << seed;
      EXPECT_TRUE(*found == fresh || (!finished && *found == "old")) << "operation " << k << " seed " << seed;
    }
  }
}

// A full disk is the disk's error (not the data's), and leaves the old file alone.
TEST(Import, FullDisk) {
  host::SimDisk disk;
  ASSERT_TRUE(host::replace_file(disk, "train.txt", "1 1:1\n2 2:1\n").ok());
  for (std::uint64_t room = 0; room < 200; room += 20) {
    disk.restart_count({.capacity_bytes = 12 + room});
    const auto report = import_xmlc(disk, {.sources = kOneSource, .cache_path = "set.cache"});
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().kind, ErrorKind::kFailed);
    EXPECT_THAT(*disk.list("."), ElementsAre("train.txt"));
  }
}

}  // namespace
}  // namespace gossamer::data
