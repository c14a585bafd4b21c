// SPDX-License-Identifier: Apache-2.0
#include "learn/data/unit_length.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "base/rng.h"

namespace gossamer::data {
namespace {

double squares_of(std::span<const float> x) {
  double squares = 0;
  for (const float v : x) squares += static_cast<double>(v) * static_cast<double>(v);
  return squares;
}

// Claim: the length is 1, from the smallest to the largest float. The zero vector stays.
TEST(UnitLength, WhateverTheSizes) {
  for (const float size : {1e-45F, 1e-40F, 2.9e-39F, 1e-38F, 1e-20F, 1.0F, 1e20F, 8e37F,
                           std::numeric_limits<float>::max() / 4}) {
    std::array x = {3 * size, -4 * size, 0.0F};
    to_unit_length(x, squares_of(x), x.data());
    EXPECT_NEAR(x[0], 0.6, 1e-6) << size;
    EXPECT_NEAR(x[1], -0.8, 1e-6) << size;
    EXPECT_EQ(x[2], 0) << size;
  }
  std::array zero = {0.0F, 0.0F};
  to_unit_length(zero, 0, zero.data());
  EXPECT_EQ(zero, (std::array{0.0F, 0.0F}));
}

// Claim: vectors of usual lengths are multiplied by one float, as they always were: models stay the same
// bytes.
TEST(UnitLength, UsualLengthsKeepTheirBits) {
  Rng rng(3, Purpose::kTest);
  for (int round = 0; round < 1000; ++round) {
    std::vector<float> x(20);
    for (float& v : x) v = std::exp(8 * rng.normal());
    std::vector<float> out(x.size());
    to_unit_length(x, squares_of(x), out.data());
    const auto factor = static_cast<float>(1 / std::sqrt(squares_of(x)));
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(out[i], x[i] * factor);
  }
}

}  // namespace
}  // namespace gossamer::data
