// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network/row_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "learn/sparse/network/network_shape.h"

namespace gossamer::sparse {
namespace {

// Label counts with few different values, zeros among them.
std::vector<std::uint32_t> counts_with_ties(std::size_t labels) {
  Rng rng(3, Purpose::kTest, labels);
  std::vector<std::uint32_t> counts(labels);
  for (std::uint32_t& count : counts) count = static_cast<std::uint32_t>(rng.below(9));
  return counts;
}

// The labels of each shard, as a hand deals cards: to the next shard that has room.
std::vector<std::vector<std::uint32_t>> dealt(const std::vector<std::uint32_t>& counts,
                                              const HeldRows& shards) {
  std::vector<std::uint32_t> ranked(counts.size());
  std::iota(ranked.begin(), ranked.end(), 0U);
  std::ranges::sort(ranked, {}, [&](std::uint32_t label) {
    return std::pair(-static_cast<std::int64_t>(counts[label]), label);
  });
  std::vector<std::vector<std::uint32_t>> hands(shards.shards());
  const auto full = [&](std::size_t shard) {
    return hands[shard].size() == shards.rows_of(shard).end - shards.rows_of(shard).begin;
  };
  std::size_t next = 0;
  for (const std::uint32_t label : ranked) {
    while (full(next)) next = (next + 1) % hands.size();
    hands[next].push_back(label);
    next = (next + 1) % hands.size();
  }
  return hands;
}

// At every size and shift rows are the labels, each once, dealt by frequency; the last shard may be short.
TEST(RowOrder, DealsByFrequency) {
  for (const std::size_t labels :
       {1U, 2U, 7U, 8U, 9U, 15U, 16U, 17U, 63U, 64U, 65U, 100U, 127U, 1000U, 4097U}) {
    const std::vector<std::uint32_t> counts = counts_with_ties(labels);
    for (unsigned shift = 0; shift <= 12; ++shift) {
      SCOPED_TRACE(testing::Message() << labels << " labels, shift " << shift);
      const RowOrder order(counts, shift);
      const HeldRows shards(labels, shift);
      const auto hands = dealt(counts, shards);
      for (std::size_t shard = 0; shard < hands.size() && shards.shards() > 1; ++shard) {
        for (std::size_t i = 0; i < hands[shard].size(); ++i) {
          const auto row = static_cast<std::uint32_t>(shards.rows_of(shard).begin + i);
          ASSERT_EQ(order.label_of(row), hands[shard][i]);
          ASSERT_EQ(order.row_of(hands[shard][i]), row);
        }
      }
    }
  }
}

// One shard changes nothing.
TEST(RowOrder, OneShardIsTheOrderOfLabels) {
  const std::vector<std::uint32_t> counts = counts_with_ties(1000);
  for (const RowOrder& order : {RowOrder(), RowOrder(counts, 10), RowOrder(counts, kOneShardShift)}) {
    EXPECT_TRUE(order.identity());
    EXPECT_TRUE(order.labels().empty());
    for (const std::uint32_t i : {0U, 1U, 999U}) {
      EXPECT_EQ(order.row_of(i), i);
      EXPECT_EQ(order.label_of(i), i);
    }
  }
  EXPECT_FALSE(RowOrder(counts, 9).identity());
}

// Shards are as large as the wish allows, and never smaller than eight rows.
TEST(RowOrder, ChoosesTheSizeOfShards) {
  for (const std::size_t labels : {1U, 8U, 9U, 100U, 2047U, 2048U, 2049U, 670'091U, 10'000'000U}) {
    for (const std::size_t wished : {1U, 2U, 3U, 16U, 255U, 256U, 257U}) {
      SCOPED_TRACE(testing::Message() << labels << " labels, " << wished << " wished");
      const unsigned shift = shard_shift(labels, wished);
      ASSERT_GE(shift, kSmallestShardShift);
      ASSERT_LE(shift, kOneShardShift);
      const std::size_t shards = HeldRows(labels, shift).shards();
      EXPECT_TRUE(shards >= wished || shift == kSmallestShardShift) << shards;
      if (shift < kOneShardShift) {
        EXPECT_LT(HeldRows(labels, shift + 1).shards(), wished);
      }
      EXPECT_EQ(wished == 1, shift == kOneShardShift);
    }
  }
}

// The rows that a step is expected to touch, by shard, where the labels' counts follow Zipf's law.
std::vector<double> expected_rows(std::size_t labels, double zipf, unsigned shift, double batch) {
  std::vector<std::uint32_t> counts(labels);
  double total = 0;
  for (std::size_t i = 0; i < labels; ++i) {
    // Frequent labels stand anywhere among the numbers.
    const std::size_t label = i * 7919 % labels;
    counts[label] = static_cast<std::uint32_t>(1 + 1e6 * std::pow(static_cast<double>(i + 1), -zipf));
    total += counts[label];
  }
  const RowOrder order(counts, shift);
  const HeldRows shards(labels, shift);
  std::vector<double> expected(shards.shards());
  for (std::size_t shard = 0; shard < expected.size(); ++shard) {
    for (std::size_t row = shards.rows_of(shard).begin; row < shards.rows_of(shard).end; ++row) {
      const double share = counts[order.label_of(static_cast<std::uint32_t>(row))] / total;
      expected[shard] -= std::expm1(batch * std::log1p(-share));
    }
  }
  return expected;
}

// No two full shards differ by more than one row. Large ones are within two percent of the mean. A short last
// shard has less to do. Four nodes that hold every fourth shard each are within a percent of a fourth.
TEST(RowOrder, ShardsAreEquallyBusy) {
  for (const double zipf : {0.6, 1.0, 1.2}) {
    for (const std::size_t labels : {131'072U, 670'091U}) {
      for (const std::size_t wished : {16U, 256U}) {
        SCOPED_TRACE(testing::Message() << labels << " labels, " << wished << " shards, skew " << zipf);
        const unsigned shift = shard_shift(labels, wished);
        const std::vector<double> expected = expected_rows(labels, zipf, shift, 256 * 5);
        const double all = std::accumulate(expected.begin(), expected.end(), 0.0);
        const auto full = std::span(expected).first(labels >> shift);
        const auto [least, most] = std::ranges::minmax(full);
        EXPECT_LE(most - least, 1.0);
        EXPECT_LE(expected.back(), most);
        const double mean = std::accumulate(full.begin(), full.end(), 0.0) / static_cast<double>(full.size());
        if (wished == 16) {
          EXPECT_LE(std::max(most - mean, mean - least), 0.02 * mean);
          continue;
        }
        for (std::size_t node = 0; node < 4; ++node) {
          double own = 0;
          for (std::size_t shard = node; shard < expected.size(); shard += 4) own += expected[shard];
          EXPECT_NEAR(own, all / 4, 0.01 * all / 4) << "node " << node;
        }
      }
    }
  }
}

}  // namespace
}  // namespace gossamer::sparse
