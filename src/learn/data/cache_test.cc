// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/rng.h"
#include "host/api/files.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "learn/data/cache_writer.h"
#include "learn/data/cached_dataset.h"
#include "learn/data/in_memory_dataset.h"
#include "learn/data/read/test_collected_records.h"

namespace gossamer::data {
namespace {

using testing::HasSubstr;

InMemoryDataset sample(std::uint64_t records) {
  InMemoryDataset set({.features = 100, .labels = 3, .label_names = {"one", "", "three"}});
  Rng rng(5, Purpose::kTest);
  for (std::uint64_t i = 0; i < records; ++i) {
    const auto first = static_cast<std::uint32_t>(rng.below(50));
    if (rng.below(3) == 0) {
      set.add({}, {}, {});
    } else {
      set.add({first, first + 9}, {rng.normal(), 0}, {first % 3});
    }
  }
  return set;
}

std::string written(const InMemoryDataset& set, std::uint32_t records_per_block = 4) {
  host::SimDisk disk;
  auto writer = CacheWriter::create(disk, "dir/set.cache", {.records_per_block = records_per_block});
  EXPECT_TRUE(writer.ok());
  for (std::uint64_t i = 0; i < set.size(); ++i) EXPECT_TRUE((*writer)->add(set.record(RecordIndex(i))).ok());
  std::vector<std::string_view> names;
  names.reserve(set.labels());
  for (std::uint32_t i = 0; i < set.labels(); ++i) names.push_back(set.label_name(i));
  EXPECT_TRUE(
      (*writer)->finish({.features = set.features(), .labels = set.labels(), .label_names = names}).ok());
  EXPECT_EQ(*disk.list("dir"), std::vector<std::string>{"set.cache"});
  return *host::read_text(disk, "dir/set.cache");
}

Result<std::unique_ptr<CachedDataset>> opened(const std::string& bytes, int workers = 2) {
  host::SimDisk disk;
  EXPECT_TRUE(host::replace_file(disk, "set.cache", bytes).ok());
  host::SimCompute compute({.workers = workers});
  return CachedDataset::open(disk, "set.cache", compute);
}

template <class T>
T get(const std::string& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void set(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// Makes every checksum right again: what is left to find is the lie itself.
std::string resealed(std::string bytes) {
  const std::size_t trailer = bytes.size() - sizeof(cache::Trailer);
  auto last = get<cache::Trailer>(bytes, trailer);
  for (std::uint64_t i = 0; i < last.blocks; ++i) {
    const std::size_t at = last.footer_offset + i * sizeof(cache::BlockEntry);
    auto entry = get<cache::BlockEntry>(bytes, at);
    if (entry.offset > bytes.size() || entry.bytes > bytes.size() - entry.offset) continue;
    entry.checksum = XXH3_64bits(bytes.data() + entry.offset, entry.bytes);
    set(bytes, at, entry);
  }
  last.footer_checksum = XXH3_64bits(bytes.data() + last.footer_offset, trailer - last.footer_offset);
  last.trailer_checksum = XXH3_64bits(&last, offsetof(cache::Trailer, trailer_checksum));
  set(bytes, trailer, last);
  return bytes;
}

// What was written is read: records, counts, names; for sizes around the block's.
TEST(Cache, RoundTrip) {
  for (std::uint64_t records = 0; records <= 13; ++records) {
    const InMemoryDataset original = sample(records);
    for (int workers = 1; workers <= 4; ++workers) {
      const auto read = opened(written(original), workers);
      ASSERT_TRUE(read.ok()) << read.error().message();
      EXPECT_EQ((*read)->size(), records);
      EXPECT_EQ(collect(**read), collect(original));
      EXPECT_EQ((*read)->features(), 100U);
      EXPECT_EQ((*read)->labels(), 3U);
      EXPECT_EQ((*read)->feature_entries(), original.feature_entries());
      EXPECT_EQ((*read)->label_entries(), original.label_entries());
      EXPECT_TRUE((*read)->has_label_names());
      EXPECT_FALSE((*read)->has_feature_names());
      EXPECT_EQ((*read)->label_name(0), "one");
      EXPECT_EQ((*read)->label_name(1), "");
      EXPECT_EQ((*read)->label_name(2), "three");
      EXPECT_EQ((*read)->feature_name(50), "");
    }
  }
  EXPECT_EQ(collect(**opened(written(sample(700), 256))), collect(sample(700)));
}

// Claim: Names of several megabytes, which do not pass to the file at once, are read as they were written.
TEST(Cache, KeepsNamesOfMegabytes) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < 5; ++i) {
    names.emplace_back((std::size_t{700} << 10) + i, static_cast<char>('a' + i));
  }
  InMemoryDataset original({.features = 9, .labels = 5, .label_names = names});
  original.add({3, 8}, {1.0F, 2.0F}, {1});
  const auto read = opened(written(original));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(collect(**read), collect(original));
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_TRUE((*read)->label_name(i) == names[i]) << i;
}

// The bytes are those of docs/protocols/dataset-cache.md: one record, by hand.
TEST(Cache, BytesAreThoseOfTheFormatPage) {
  InMemoryDataset one({.features = 9, .labels = 2, .label_names = {"a", "bc"}});
  one.add({3, 8}, {1.0F, 2.0F}, {1});
  const std::string bytes = written(one);
  ASSERT_EQ(bytes.size(), 16 + 56 + 24 + 24 + 8 + 96U);
  EXPECT_EQ(bytes.substr(0, 8), "GSMRDATA");
  EXPECT_EQ(get<std::uint32_t>(bytes, 8), 1U);
  const std::vector<std::uint32_t> block = {1, 2, 1, 0, 0, 2, 0, 1, 3, 8, 0x3F800000, 0x40000000, 1, 0};
  EXPECT_EQ(std::memcmp(bytes.data() + 16, block.data(), 56), 0);
  EXPECT_EQ(get<std::uint64_t>(bytes, 72), 16U);
  EXPECT_EQ(get<std::uint64_t>(bytes, 80), 56U);
  EXPECT_EQ(get<std::uint64_t>(bytes, 88), XXH3_64bits(bytes.data() + 16, 56));
  EXPECT_EQ(get<std::uint64_t>(bytes, 112), 3U);
  EXPECT_EQ(bytes.substr(120, 8), std::string("abc\0\0\0\0\0", 8));
  EXPECT_EQ(bytes.substr(128, 8), "GSMRTAIL");
  EXPECT_EQ(get<std::uint64_t>(bytes, 128 + 16), 1U);
  EXPECT_EQ(get<std::uint64_t>(bytes, 128 + 64), 72U);
  EXPECT_EQ(get<std::uint64_t>(bytes, 128 + 72), 56U);
}

// A file cut off anywhere, or with any one byte changed, is refused.
TEST(Cache, RefusesDamage) {
  const std::string bytes = written(sample(11));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto read = opened(bytes.substr(0, size));
    ASSERT_FALSE(read.ok()) << size;
    ASSERT_EQ(read.error().kind, ErrorKind::kBadData);
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    ASSERT_FALSE(opened(bad).ok()) << i;
  }
  EXPECT_EQ(
      opened("hello").error().message(),
      "set.cache: this is not a dataset cache: got another kind of file; expected a file that starts with "
      "GSMRDATA; import the data again");
  EXPECT_EQ(opened(bytes.substr(0, 200)).error().message(),
            "set.cache: the dataset cache is cut off: got 200 bytes without a trailer; expected the whole "
            "file; import "
            "the data again");
  std::string flipped = bytes;
  flipped[60] = static_cast<char>(flipped[60] ^ 1);
  EXPECT_EQ(opened(flipped).error().message(),
            "set.cache: the dataset cache is damaged: got block 0 at byte 16: its checksum does not match "
            "its bytes; "
            "expected the bytes as written; import the data again");
  std::string newer = bytes;
  newer[8] = 2;
  EXPECT_EQ(opened(newer).error().message(),
            "set.cache: the dataset cache has another version: got version 2; expected version 1; import the "
            "data again");
}

// With right checksums everywhere, no changed word leads to a crash or to a record that breaks rows.h.
TEST(Cache, SurvivesLies) {
  const std::string bytes = written(sample(11));
  int refused = 0;
  for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    for (const std::uint32_t lie : {0U, 1U, 5U, 255U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
      std::string bad = bytes;
      set(bad, at, lie);
      // A lie about where the footer lies cannot be sealed again.
      const auto trailer = get<cache::Trailer>(bad, bad.size() - sizeof(cache::Trailer));
      const bool sealable = trailer.footer_offset <= bad.size() - sizeof trailer && trailer.blocks < 10;
      const auto read = opened(sealable ? resealed(bad) : bad);
      if (!read.ok()) {
        ++refused;
        continue;
      }
      InMemoryDataset checked({.features = (*read)->features(), .labels = (*read)->labels()});
      for (std::uint64_t i = 0; i < (*read)->size(); ++i) checked.add((*read)->record(RecordIndex(i)));
    }
  }
  EXPECT_GT(refused, 100);
}

// Lies with right checksums are named.
TEST(Cache, NamesLies) {
  InMemoryDataset one({.features = 9, .labels = 2, .label_names = {"a", "bc"}});
  one.add({3, 8}, {1.0F, 2.0F}, {1});
  const std::string bytes = written(one);
  const auto lie = [&](std::size_t at, std::uint32_t value) {
    std::string bad = bytes;
    set(bad, at, value);
    const auto read = opened(resealed(bad));
    return read.ok() ? std::string("ok") : read.error().message();
  };
  EXPECT_THAT(lie(16, 2), HasSubstr("block 0 at byte 16: its size does not match its counts"));
  EXPECT_THAT(lie(36, 1), HasSubstr("its record offsets are out of order"));
  EXPECT_THAT(lie(48, 8), HasSubstr("a feature index is wrong"));
  EXPECT_THAT(lie(52, 9), HasSubstr("a feature index is wrong"));
  EXPECT_THAT(lie(56, 0x7F800000), HasSubstr("a feature value is not finite"));
  EXPECT_THAT(lie(64, 2), HasSubstr("a label is wrong"));
  EXPECT_THAT(lie(104, 7), HasSubstr("a table of names that contradicts itself"));
  EXPECT_THAT(lie(128 + 16, 2), HasSubstr("got blocks with 1 records; expected 2 records, 4 to a block"));
  EXPECT_THAT(lie(128 + 12, 3), HasSubstr("a trailer that contradicts the file"));
}

// Claim: names that are not distinct or not UTF-8 are refused, with the first such name, whatever the number
// of workers. A name of a label may be that of a feature.
TEST(Cache, RefusesNamesThatAreNotDistinct) {
  const auto read = [](const std::vector<std::string_view>& labels,
                       const std::vector<std::string_view>& features) {
    host::SimDisk disk;
    auto writer = CacheWriter::create(disk, "set.cache");
    EXPECT_TRUE((*writer)->add(CollectedRecord{{0}, {1}, {0}}.view()).ok());
    EXPECT_TRUE((*writer)
                    ->finish({.features = 4, .labels = 4, .feature_names = features, .label_names = labels})
                    .ok());
    std::string told;
    for (int workers = 1; workers <= 5; ++workers) {
      const auto opened_set = opened(*host::read_text(disk, "set.cache"), workers);
      const std::string now = opened_set.ok() ? "ok" : opened_set.error().got;
      EXPECT_TRUE(opened_set.ok() || opened_set.error().kind == ErrorKind::kBadData);
      EXPECT_TRUE(told.empty() || told == now) << told << ", and with " << workers << " workers " << now;
      told = now;
    }
    return told;
  };
  const std::vector<std::string_view> good = {"a", "", "\xc3\xa9", "d"};
  EXPECT_EQ(read(good, good), "ok");
  EXPECT_EQ(read({"L0", "L1", "L0", "L0"}, good),
            "the name of label 2, 'L0', which is that of an earlier one, too");
  EXPECT_EQ(read(good, {"x", "x", "y", "y"}),
            "the name of feature 1, 'x', which is that of an earlier one, too");
  EXPECT_EQ(read(good, {"x", "", "y", ""}),
            "the name of feature 3, '', which is that of an earlier one, too");
  EXPECT_EQ(read({"a", "b", "\xc3", "\xff"}, good), "the name of label 2, '\\xC3', which is not UTF-8");
  // Half a character in one name and half in the next are UTF-8 together.
  EXPECT_EQ(read(good, {"a", "b\xc3", "\xa9", "d"}), "the name of feature 1, 'b\\xC3', which is not UTF-8");
}

// A writer that is dropped before the end leaves nothing behind, and what was there stays.
TEST(Cache, DroppedWriterLeavesNothing) {
  host::SimDisk disk;
  ASSERT_TRUE(host::replace_file(disk, "set.cache", "old").ok());
  {
    auto writer = CacheWriter::create(disk, "set.cache");
    ASSERT_TRUE((*writer)->add(CollectedRecord{{1}, {1}, {}}.view()).ok());
  }
  EXPECT_EQ(*disk.list("."), std::vector<std::string>{"set.cache"});
  EXPECT_EQ(*host::read_text(disk, "set.cache"), "old");
}

// The writer's preconditions are checked: they are ours, not the user's.
TEST(CacheDeathTest, WriterChecksRecords) {
  host::SimDisk disk;
  auto writer = CacheWriter::create(disk, "set.cache");
  EXPECT_DEATH((void)(*writer)->add(CollectedRecord{{2, 2}, {1, 1}, {}}.view()).ok(), "CHECK failed");
  EXPECT_DEATH(
      (void)(*writer)->add(CollectedRecord{{2}, {std::numeric_limits<float>::infinity()}, {}}.view()).ok(),
      "CHECK failed");
  EXPECT_DEATH((void)(*writer)->add(CollectedRecord{{2}, {}, {}}.view()).ok(), "CHECK failed");
}

}  // namespace
}  // namespace gossamer::data
