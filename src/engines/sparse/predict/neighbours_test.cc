// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/neighbours.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

namespace gossamer::sparse_engine {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Claim: the mean of both cosines ranks. Ties go to the smaller row, and a row of both lists stands there
// once.
TEST(Neighbours, MixRanksByTheMean) {
  const std::vector<FoundRow> input{{.row = 9, .input = 0.75F, .hidden = 0.25F},
                                    {.row = 2, .input = 0.5F, .hidden = 0.5F},
                                    {.row = 5, .input = 0.25F, .hidden = -0.25F}};
  const std::vector<FoundRow> hidden{{.row = 7, .input = 0.0F, .hidden = 0.875F},
                                     {.row = 2, .input = 0.5F, .hidden = 0.5F}};
  std::vector<Scored> mixed{{.id = 99, .score = 99}};
  mix_neighbours(input, hidden, 10, mixed);
  EXPECT_EQ(mixed, (std::vector<Scored>{{2, 0.5F}, {9, 0.5F}, {7, 0.4375F}, {5, 0.0F}}));
  mix_neighbours(input, hidden, 2, mixed);
  EXPECT_EQ(mixed, (std::vector<Scored>{{2, 0.5F}, {9, 0.5F}}));
}

// Claim: a row without a place in the order is left out, and takes no place from others.
TEST(Neighbours, MixLeavesOutWhatIsNotFinite) {
  const std::vector<FoundRow> input{{.row = 1, .input = 0.5F, .hidden = kNaN},
                                    {.row = 3, .input = 0.25F, .hidden = 0.25F}};
  std::vector<Scored> mixed;
  mix_neighbours(input, {}, 1, mixed);
  EXPECT_EQ(mixed, (std::vector<Scored>{{3, 0.25F}}));
  mix_neighbours({}, {}, 1, mixed);
  EXPECT_TRUE(mixed.empty());
}

// Claim: a vector comes to length 1, the zero vector stays.
TEST(Neighbours, UnitLength) {
  std::array<float, 2> out{};
  to_unit_length(std::array{3.0F, -4.0F}, out.data());
  EXPECT_FLOAT_EQ(out[0], 0.6F);
  EXPECT_FLOAT_EQ(out[1], -0.8F);
  to_unit_length(std::array{3e-42F, -4e-42F}, out.data());
  EXPECT_NEAR(out[0], 0.6, 1e-3);
  EXPECT_NEAR(out[1], -0.8, 1e-3);
  to_unit_length(std::array{0.0F, 0.0F}, out.data());
  EXPECT_EQ(out, (std::array{0.0F, 0.0F}));
}

}  // namespace
}  // namespace gossamer::sparse_engine
