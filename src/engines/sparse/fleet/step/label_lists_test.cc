// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/label_lists.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/rng.h"

namespace gossamer::sparse_engine {
namespace {

// Claim: the merged list is the best k of all, and ties go to the smaller label. It does not matter how
// labels are divided, or in what order lists come. Members may have fewer than k rows, or none.
TEST(LabelLists, MergedListsAreThoseOfTheWhole) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed, Purpose::kTest);
    const std::size_t labels = 1 + rng.below(60);
    const std::size_t k = 1 + rng.below(30);
    const std::size_t members = 1 + rng.below(6);
    std::vector<Scored> all;
    std::vector<std::vector<Scored>> of(members);
    std::vector<sparse::HeldRows> rows(members, sparse::HeldRows(labels, 0));
    for (auto& held : rows) {
      for (std::size_t label = 0; label < labels; ++label) held.drop(label);
    }
    for (std::uint32_t label = 0; label < labels; ++label) {
      const std::size_t holder = rng.below(members);
      rows[holder].add(label);
      all.push_back({label, static_cast<float>(rng.below(4))});
      of[holder].push_back(all.back());
    }
    std::vector<std::vector<Scored>> merged(1);
    for (std::size_t member = 0; member < members; ++member) {
      const std::size_t limit = list_limit(rows[member], k);
      ASSERT_EQ(limit, std::min(k, of[member].size()));
      rank_list(limit, of[member]);
      of[member].resize(limit);
      std::vector<std::byte> bytes;
      append_list(of[member], limit, bytes);
      ASSERT_EQ(bytes.size(), list_bytes(1, limit));
      ASSERT_TRUE(
          add_lists({Slice::of(std::move(bytes))}, limit, rows[member], sparse::RowOrder(), merged).ok());
    }
    rank_list(k, merged.front());
    rank_list(k, all);
    EXPECT_EQ(merged.front(), all) << "seed " << seed;
  }
}

// Claim: scores that are not finite do not travel. The unused end of a list makes no entries.
TEST(LabelLists, OnlyFiniteScoresTravel) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  std::vector<std::byte> bytes;
  append_list(std::vector<Scored>{{1, kInfinite}, {2, 3.0F}, {0, 1.0F}}, 5, bytes);
  std::vector<std::vector<Scored>> lists(1);
  ASSERT_TRUE(
      add_lists({Slice::of(std::move(bytes))}, 5, sparse::HeldRows(4, 1), sparse::RowOrder(), lists).ok());
  EXPECT_EQ(lists.front(), (std::vector<Scored>{{2, 3.0F}, {0, 1.0F}}));
}

// Claim: an entry is refused whose label is beyond the network's, or in a row that the member does not hold.
// So is a score that is no finite number; minus infinity means that there is none.
TEST(LabelLists, RefusesWhatNoMemberHas) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  sparse::HeldRows rows(10, 1);
  rows.drop(1);
  rows.drop(4);
  const auto taken = [&rows](std::uint32_t label, float score) {
    const Scored one{.id = label, .score = score};
    std::vector<std::vector<Scored>> lists(1);
    return add_lists({Slice::copy_of(std::as_bytes(std::span(&one, 1)))}, 1, rows, sparse::RowOrder(), lists)
        .ok();
  };
  for (const std::uint32_t label : {0U, 1U, 4U, 7U}) EXPECT_TRUE(taken(label, 1.0F)) << label;
  for (const std::uint32_t label : {2U, 3U, 8U, 9U}) EXPECT_FALSE(taken(label, 1.0F)) << label;
  for (const std::uint32_t label : {10U, 4'000'000'000U}) EXPECT_FALSE(taken(label, 1.0F)) << label;
  EXPECT_FALSE(taken(0, kInfinite));
  EXPECT_FALSE(taken(0, std::numeric_limits<float>::quiet_NaN()));
  EXPECT_TRUE(taken(0, -kInfinite));
}

}  // namespace
}  // namespace gossamer::sparse_engine
