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
      for (const float good : {0.0F, -0.0F, 1e-45F, kMostScore, -kMostScore}) {
        values[at] = good;
        EXPECT_TRUE(within(values, kMostScore)) << good;
      }
      for (const float bad : {std::nextafter(kMostScore, kEndless), -2 * kMostScore, kEndless, -kEndless,
                              kNoNumber, -kNoNumber}) {
        values[at] = bad;
        EXPECT_FALSE(within(values, kMostScore)) << bad << " at " << at << " of " << size;
      }
    }
  }
  EXPECT_TRUE(within(std::vector<float>{}, kMostScore));
}

// Claim: of a matrix the named columns alone are looked at, in every row.
TEST(ValueBounds, BoundsColumns) {
  for (std::size_t at = 0; at < 15; ++at) {
    std::vector<float> matrix(15, 1);
    matrix[at] = kNoNumber;
    const bool inside = at % 5 >= 1 && at % 5 < 3;
    EXPECT_EQ(within(matrix, 5, {1, 3}, taken(kMostScore)), !inside) << at;
    EXPECT_TRUE(within(matrix, 5, {2, 2}, taken(kMostScore)));
  }
}

// Claim: a loss share has a sum from 0 to its bound, and a shift within the bound. Without a sum its shift
// says nothing. Many shares together have a finite sum, which is a partition sum.
TEST(ValueBounds, BoundsLossShares) {
  using Shares = std::vector<sparse::PartitionShare>;
  EXPECT_TRUE(within(Shares{{1, 2}, {-1e9F, 1e30F}, {kNoNumber, 0}}, taken(kMostScore)));
  for (const sparse::PartitionShare bad : {sparse::PartitionShare{0, -1},
                                           {0, kNoNumber},
                                           {0, kEndless},
                                           {kNoNumber, 1},
                                           {4 * taken(kMostScore), 1},
                                           {0, 2 * kMostSum}})
    EXPECT_FALSE(within(Shares{{1, 2}, bad}, taken(kMostScore))) << bad.shift << " " << bad.sum;
  sparse::PartitionShare all;
  for (std::size_t member = 0; member < 256; ++member) sparse::add_share(all, {1, kMostSum});
  EXPECT_TRUE(are_sums({&all, 1}));
  for (const sparse::PartitionShare bad :
       {sparse::PartitionShare{0, -1}, {0, kNoNumber}, {0, kEndless}, {4 * taken(kMostScore), 1}})
    EXPECT_FALSE(are_sums({&bad, 1})) << bad.shift << " " << bad.sum;
}

// Claim: what is taken has room for all codecs to round what is given.
TEST(ValueBounds, LeaveRoom) {
  for (const float given : {kMostWeight, kMostScore, kMostMoment}) {
    EXPECT_LE(given * (1 + 1.0F / 127), taken(given));
    EXPECT_TRUE(std::isfinite(32 * taken(given)));
  }
}

// Claim: what a member computes of taken numbers is within what it may give, with as many layers as a network
// can have. So it does not take itself for diverged because of another member. There is room for 2^7 in each
// layer: the sum of the magnitudes of a unit's weights. A gradient of a weight is a sum over 2^12 samples.
TEST(ValueBounds, RiseInTheOrderOfComputing) {
  const float own = 0x1p7F;
  const float samples = 0x1p12F;
  EXPECT_LE(taken(kMostWeight) * own, most_hidden(0));
  for (std::size_t layers = 1; layers <= kMostLayers; ++layers) {
    SCOPED_TRACE(::testing::Message() << layers << " layers");
    EXPECT_LE(taken(most_hidden(layers - 1)) * own, kMostScore);
    EXPECT_LE(taken(most_hidden(layers - 1)) * samples, kMostMoment);
    EXPECT_LE(taken(most_gradient(0, layers)) * samples, kMostMoment);
    for (std::size_t layer = 1; layer < layers; ++layer) {
      EXPECT_LE(taken(most_hidden(layer - 1)) * own, most_hidden(layer)) << layer;
      EXPECT_LE(taken(most_gradient(layer, layers)) * own, most_gradient(layer - 1, layers)) << layer;
      EXPECT_LE(taken(most_gradient(layer, layers)) * taken(most_hidden(layer - 1)) * samples, kMostMoment)
          << layer;
    }
  }
  EXPECT_TRUE(std::isfinite(most_hidden(1000)) && std::isfinite(most_gradient(0, 1000)));
}

}  // namespace
}  // namespace gossamer::sparse_engine
