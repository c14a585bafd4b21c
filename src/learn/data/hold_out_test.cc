// SPDX-License-Identifier: Apache-2.0
#include "learn/data/hold_out.h"

#include <gtest/gtest.h>

#include <vector>

#include "learn/data/in_memory_dataset.h"

namespace gossamer::data {
namespace {

// Every record is either held or kept, once, in rising order, whatever the sizes.
TEST(HoldOut, SplitsEveryRecord) {
  for (std::uint64_t records = 1; records <= 200; ++records) {
    for (std::uint64_t wanted = 0; wanted <= records / 2; ++wanted) {
      const HoldOut split(records, wanted);
      SCOPED_TRACE(::testing::Message() << records << " records, " << wanted << " wanted");
      std::vector<int> seen(records);
      for (std::uint64_t i = 0; i < split.held(); ++i) {
        const std::uint64_t at = split.held_record(i).value;
        ASSERT_LT(at, records);
        ++seen[at];
      }
      std::uint64_t before = 0;
      for (std::uint64_t i = 0; i < split.kept(); ++i) {
        const std::uint64_t at = split.kept_record(i).value;
        ASSERT_LT(at, records);
        ASSERT_TRUE(i == 0 || at > before);
        before = at;
        ++seen[at];
      }
      EXPECT_EQ(seen, std::vector<int>(records, 1));
    }
  }
}

// The share is right to a block and an eighth.
TEST(HoldOut, HoldsAboutAsManyAsWanted) {
  EXPECT_EQ(HoldOut(100'000, 0).held(), 0U);
  for (const std::uint64_t wanted : {160U, 2000U, 5000U}) {
    const std::uint64_t held = HoldOut(97'404, wanted).held();
    EXPECT_GE(held + HoldOut::kBlock, wanted);
    EXPECT_LE(held, wanted + wanted / 8 + 2 * HoldOut::kBlock);
  }
}

// Claim: as many are held as are wanted, and never more than half. Where whole blocks are wanted, at most as
// many again come beside them.
TEST(HoldOut, HoldsAtMostHalf) {
  for (std::uint64_t records = 1; records <= 200; ++records) {
    EXPECT_EQ(HoldOut(records, 0).held(), 0U);
    for (std::uint64_t wanted = 1; wanted <= records / 2; ++wanted) {
      SCOPED_TRACE(::testing::Message() << records << " records, " << wanted << " wanted");
      const HoldOut split(records, wanted);
      const std::uint64_t blocks = (wanted + HoldOut::kBlock - 1) / HoldOut::kBlock;
      EXPECT_GE(split.held(), wanted);
      EXPECT_LE(split.held(), records / 2);
      EXPECT_LE(split.held(), wanted < HoldOut::kBlock ? wanted : 2 * blocks * HoldOut::kBlock);
    }
  }
}

// Two forms of one text stand side by side; they never come to lie on both sides of the split.
TEST(HoldOut, KeepsNeighboursTogether) {
  const HoldOut split(4096, 256);
  for (std::uint64_t i = 0; i < split.held(); i += 2) {
    EXPECT_EQ(split.held_record(i).value % 2, 0U);
    EXPECT_EQ(split.held_record(i + 1).value, split.held_record(i).value + 1);
  }
}

// Sizes, sums and records are those of the kept ones alone.
TEST(KeptRecords, IsTheDatasetOfTheOthers) {
  InMemoryDataset base({.features = 100, .labels = 100});
  for (std::uint32_t i = 0; i < 100; ++i) base.add({i}, {1.0F}, {i});
  const HoldOut split(base.size(), 20);
  const KeptRecords kept(base, split);
  ASSERT_EQ(kept.size(), 100 - split.held());
  EXPECT_EQ(kept.feature_entries(), kept.size());
  EXPECT_EQ(kept.label_entries(), kept.size());
  EXPECT_EQ(kept.features(), 100U);
  EXPECT_EQ(kept.labels(), 100U);
  for (std::uint64_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept.record(RecordIndex{i}).labels[0], split.kept_record(i).value);
  }
}

}  // namespace
}  // namespace gossamer::data
