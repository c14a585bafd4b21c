// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/row_lists.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

namespace gossamer::sparse_engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// 40 labels in 5 shards of 8. The member holds the first and the fourth, and so rows 0..3 and 13..17 of 23.
sparse::HeldRows two_shards() {
  sparse::HeldRows held(40, 3);
  for (const std::size_t shard : {1U, 2U, 4U}) held.drop(shard);
  return held;
}

Result<void> add(std::vector<std::byte> bytes, std::size_t k, RankedBy by,
                 std::vector<std::vector<FoundRow>>& lists) {
  const sparse::HeldRows held = two_shards();
  return add_rows({Slice::of(std::move(bytes))}, k, by, {.rows = 23, .held = held}, lists);
}

// Claim: lists come back as they were, short ones too. Rows that cannot be ranked are left out.
TEST(RowLists, ComeBack) {
  const std::vector<FoundRow> first{{.row = 13, .input = 0.5F, .hidden = kNaN},
                                    {.row = 3, .input = 0.25F, .hidden = -1}};
  const std::vector<FoundRow> second{{.row = 17, .input = 0.5F, .hidden = 0.1F},
                                     {.row = 0, .input = kInfinity, .hidden = 0.1F}};
  std::vector<std::byte> bytes;
  append_rows(first, 3, RankedBy::kInput, bytes);
  append_rows(second, 3, RankedBy::kInput, bytes);
  ASSERT_EQ(bytes.size(), row_list_bytes(2, 3));
  std::vector<std::vector<FoundRow>> lists(2);
  ASSERT_TRUE(add(bytes, 3, RankedBy::kInput, lists).ok());
  ASSERT_EQ(lists[0].size(), 2U);
  EXPECT_EQ(lists[0][0].row, 13U);
  EXPECT_EQ(lists[0][1], first[1]);
  EXPECT_EQ(lists[1], (std::vector<FoundRow>{second[0]}));
}

// Claim: lists are ranked by either cosine, with ties by row, and cut to k rows.
TEST(RowLists, AreRanked) {
  const std::vector<FoundRow> rows{{.row = 4, .input = 1, .hidden = 2},
                                   {.row = 2, .input = 1, .hidden = 3},
                                   {.row = 9, .input = 2, .hidden = 2}};
  std::vector<FoundRow> list = rows;
  rank_rows(2, RankedBy::kInput, list);
  EXPECT_EQ(list, (std::vector<FoundRow>{rows[2], rows[1]}));
  list = rows;
  rank_rows(5, RankedBy::kHidden, list);
  EXPECT_EQ(list, (std::vector<FoundRow>{rows[1], rows[0], rows[2]}));
}

// Claim: a row that does not exist or that another member has is refused, and so is a cosine that is no
// number.
TEST(RowLists, RefusesWhatCannotBe) {
  for (const std::uint32_t row : {0U, 3U, 13U, 17U, 4U, 12U, 18U, 22U, 23U, 4'000'000'000U}) {
    const bool held = row <= 3 || (row >= 13 && row <= 17);
    std::vector<std::byte> bytes;
    append_rows(std::vector<FoundRow>{{.row = row, .input = 0.5F, .hidden = 0.5F}}, 1, RankedBy::kInput,
                bytes);
    std::vector<std::vector<FoundRow>> lists(1);
    EXPECT_EQ(add(bytes, 1, RankedBy::kInput, lists).ok(), held) << row;
    EXPECT_EQ(lists[0].size(), held ? 1U : 0U);
  }
  for (const float cosine : {kNaN, kInfinity}) {
    const std::vector<FoundRow> list{{.row = 0, .input = cosine, .hidden = 0.5F}};
    const auto bytes = std::as_bytes(std::span(list));
    std::vector<std::vector<FoundRow>> lists(1);
    EXPECT_FALSE(add({bytes.begin(), bytes.end()}, 1, RankedBy::kInput, lists).ok());
    EXPECT_TRUE(add({bytes.begin(), bytes.end()}, 1, RankedBy::kHidden, lists).ok());
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
