// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/value_bounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace gossamer::sparse_engine {
namespace {

constexpr float kEndless = std::numeric_limits<float>::infinity();
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

// Claim: every number up to the bound is within, of both signs. The next one is not, nor an infinite one, nor
// NaN. Where it stands among others does not matter.
TEST(ValueBounds, BoundsEveryNumber) {
  for (const std::size_t size : {1U, 2U, 7U, 16U, 33U}) {
    for (std::size_t at = 0; at < size; ++at) {
      std::vector<float> values(size, -0.5F);
      for (const float good : {0.0F, -0.0F, 1e-45F, kMostGiven, -kMostGiven}) {
        values[at] = good;
        EXPECT_TRUE(within(values, kMostGiven)) << good;
      }
      for (const float bad : {std::nextafter(kMostGiven, kEndless), -2 * kMostGiven, kEndless, -kEndless,
                              kNoNumber, -kNoNumber}) {
        values[at] = bad;
        EXPECT_FALSE(within(values, kMostGiven)) << bad << " at " << at << " of " << size;
      }
    }
  }
  EXPECT_TRUE(within(std::vector<float>{}, kMostGiven));
}

// Claim: of a matrix the named columns alone are looked at, in every row.
TEST(ValueBounds, BoundsColumns) {
  for (std::size_t at = 0; at < 15; ++at) {
    std::vector<float> matrix(15, 1);
    matrix[at] = kNoNumber;
    const bool inside = at % 5 >= 1 && at % 5 < 3;
    EXPECT_EQ(within(matrix, 5, {1, 3}, kMostTaken), !inside) << at;
    EXPECT_TRUE(within(matrix, 5, {2, 2}, kMostTaken));
  }
}

// Claim: a loss share has a finite sum, not below 0, and a shift within the bound. Without a sum its shift
// says nothing.
TEST(ValueBounds, BoundsLossShares) {
  using Shares = std::vector<sparse::PartitionShare>;
  EXPECT_TRUE(within(Shares{{1, 2}, {-1e9F, 1e30F}, {kNoNumber, 0}}, kMostTaken));
  for (const sparse::PartitionShare bad :
       {sparse::PartitionShare{0, -1}, {0, kNoNumber}, {0, kEndless}, {kNoNumber, 1}, {4 * kMostTaken, 1}})
    EXPECT_FALSE(within(Shares{{1, 2}, bad}, kMostTaken)) << bad.shift << " " << bad.sum;
}

// Claim: the bound leaves room: its square, 64 times, is a number, and all codecs keep within the other bound
// what is within the first.
TEST(ValueBounds, LeaveRoom) {
  EXPECT_TRUE(std::isfinite(64 * kMostGiven * kMostGiven));
  EXPECT_LE(kMostGiven * (1 + 1.0F / 127), kMostTaken);
}

}  // namespace
}  // namespace gossamer::sparse_engine
