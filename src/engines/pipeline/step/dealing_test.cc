// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/dealing.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "base/rng.h"

namespace gossamer::pipeline {
namespace {

using Counts = std::vector<std::uint64_t>;

Counts dealt(std::uint64_t count, const std::vector<double>& paces) { return deal(count, paces); }

// Claim: members get microbatches in proportion to their paces. What is left goes to the largest remainders,
// and of equal ones to the first member.
TEST(Dealing, FollowsPaces) {
  EXPECT_EQ(dealt(8, {1, 1}), (Counts{4, 4}));
  EXPECT_EQ(dealt(8, {3, 1}), (Counts{6, 2}));
  EXPECT_EQ(dealt(5, {1, 1}), (Counts{3, 2}));
  EXPECT_EQ(dealt(1, {1, 3, 3}), (Counts{0, 1, 0}));
  EXPECT_EQ(dealt(0, {1, 3}), (Counts{0, 0}));
  EXPECT_EQ(dealt(7, {5e-15}), (Counts{7}));
}

// Claim: a member that is not measured yet counts as the slowest of the others, and all alike if none is.
TEST(Dealing, UnknownPaces) {
  EXPECT_EQ(dealt(12, {0, 2, 4}), (Counts{3, 3, 6}));
  EXPECT_EQ(dealt(6, {0, 0, 0}), (Counts{2, 2, 2}));
  EXPECT_EQ(dealt(6, {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1}),
            (Counts{2, 2, 2}));
  EXPECT_EQ(dealt(4, {-1, 1}), (Counts{2, 2}));
}

// Claim: all are dealt, and no member has a whole one more or less than its pace says, for any paces.
TEST(Dealing, IsFair) {
  Rng rng(3, Purpose::kTest);
  for (int round = 0; round < 1000; ++round) {
    std::vector<double> paces(1 + rng.below(20));
    for (double& pace : paces) pace = 0.05 + static_cast<double>(rng.uniform());
    const std::uint64_t count = rng.below(1000);
    const Counts counts = dealt(count, paces);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), count);
    const double all = std::accumulate(paces.begin(), paces.end(), 0.0);
    for (std::size_t i = 0; i < paces.size(); ++i)
      EXPECT_NEAR(static_cast<double>(counts[i]), static_cast<double>(count) * paces[i] / all, 1.01);
  }
}

}  // namespace
}  // namespace gossamer::pipeline
