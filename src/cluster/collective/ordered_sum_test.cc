// SPDX-License-Identifier: Apache-2.0
#include "cluster/collective/ordered_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "cluster/collective/test_members.h"

namespace gossamer::cluster {
namespace {

// The sum of a chunk, also where it is formed elsewhere.
std::string summed(OrderedSum& sum, const OrderedSum::Chunk& chunk) {
  if (chunk.terms.empty()) return joined(chunk.sum);
  SumWork work{.numbers = SumNumbers::kF32, .terms = chunk.terms};
  work.run();
  sum.worked();
  return joined(work.sum);
}

// The sum equals the sum by rank to the last bit, in all orders in which two chunks of each rank can come.
// This holds for 2 to 4 ranks with each of them as `me`. A chunk comes out with its last contribution, and
// then nothing waits.
TEST(OrderedSum, AllOrdersOfArrival) {
  constexpr StreamShape kShape{28, 16};
  for (std::size_t both = 4; both <= 9; ++both) {
    const std::size_t ranks = both / 2;
    const SumsFormed formed = both % 2 == 0 ? SumsFormed::kAtOnce : SumsFormed::kAside;
    Rng rng(ranks, Purpose::kTest);
    std::vector<std::string> inputs;
    for (std::size_t rank = 0; rank < ranks; ++rank) inputs.push_back(random_floats(7, rng));
    const std::string expected = sum_by_rank(inputs);
    for (std::size_t me = 0; me < ranks; ++me) {
      std::vector<std::size_t> order;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        if (rank != me) order.insert(order.end(), {rank, rank});
      }
      do {
        OrderedSum sum(SumNumbers::kF32, ranks, me, {Slice::of(inputs[me])}, kShape, formed);
        std::vector<std::uint64_t> given(ranks, 0);
        std::string result;
        for (const std::size_t rank : order) {
          const std::uint64_t chunk = given[rank]++;
          const auto done = [&] {
            std::uint64_t least = 2;
            for (std::size_t other = 0; other < ranks; ++other) {
              if (other != me) least = std::min(least, given[other]);
            }
            return least;
          }();
          const std::string bytes = inputs[rank].substr(chunk * 16, kShape.size_of(chunk));
          result += summed(sum, sum.add(rank, {Slice::of(bytes)}));
          ASSERT_EQ(sum.finished(), done);
        }
        ASSERT_EQ(result, expected);
        ASSERT_EQ(sum.waiting_bytes(), 0U);
      } while (std::ranges::next_permutation(order).found);
    }
  }
}

// A chunk that cannot be added yet is kept and counted. The chunk of the lowest rank frees it.
TEST(OrderedSum, WaitsForLowerRanks) {
  OrderedSum sum(SumNumbers::kF32, 3, 2, {Slice::of(std::string(32, '\0'))}, {32, 16});
  EXPECT_TRUE(sum.add(1, {Slice::of(std::string(16, '\0'))}).sum.empty());
  EXPECT_TRUE(sum.add(1, {Slice::of(std::string(16, '\0'))}).sum.empty());
  EXPECT_EQ(sum.waiting_bytes(), 32U);
  EXPECT_EQ(sum.add(0, {Slice::of(std::string(16, '\0'))}).sum.size(), 1U);
  EXPECT_EQ(sum.waiting_bytes(), 16U);
}

// Claim: what is summed elsewhere waits until that is done, and counts as finished only then. Chunks are done
// in their order.
TEST(OrderedSum, WaitsForItsWork) {
  OrderedSum sum(SumNumbers::kF32, 2, 0, {Slice::of(std::string(28, '\0'))}, {28, 16}, SumsFormed::kAside);
  EXPECT_EQ(sum.add(1, {Slice::of(std::string(16, '\0'))}).terms.size(), 2U);
  EXPECT_EQ(sum.add(1, {Slice::of(std::string(12, '\0'))}).terms.size(), 2U);
  EXPECT_EQ(sum.finished(), 0U);
  EXPECT_EQ(sum.waiting_bytes(), 28U);
  sum.worked();
  EXPECT_EQ(sum.finished(), 1U);
  EXPECT_EQ(sum.waiting_bytes(), 12U);
  sum.worked();
  EXPECT_EQ(sum.waiting_bytes(), 0U);
}

}  // namespace
}  // namespace gossamer::cluster
