// SPDX-License-Identifier: Apache-2.0
//
// Rounding to signed bytes and back. Every table that this CPU runs must agree with the reference to the bit.
// The reference must keep the promises of kernels.h in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/rng.h"
#include "kernels/kernels.h"
#include "kernels/reference.h"
#include "kernels/test_inputs.h"

namespace gossamer::kernels {
namespace {

constexpr RandomInputs kRoundingInputs{.seed = 4712};
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr std::int8_t kUntouched = 99;
const std::vector<std::size_t> kRoundingSizes = {16, 32, 48, 64, 80, 128, 144, 1024};

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

float magnitude(const std::vector<float>& row) {
  float largest = 0;
  for (const float x : row) largest = std::max(largest, std::abs(x));
  return largest;
}

struct Rounded {
  float scale;
  std::vector<std::int8_t> bytes;
};

class RoundingOnIsa : public OnIsa {
 protected:
  // Rounds with this ISA's table. Checks that the reference gives the same to the bit and that nothing is
  // written behind the row.
  [[nodiscard]] Rounded round(const std::vector<float>& row) const {
    const std::size_t n = row.size();
    std::vector<std::int8_t> expected(n + 1, kUntouched);
    Rounded rounded{.scale = 0, .bytes = expected};
    const float scale = reference::table().to_int8(row.data(), expected.data(), n);
    rounded.scale = kernels().to_int8(row.data(), rounded.bytes.data(), n);
    EXPECT_EQ(bits(rounded.scale), bits(scale));
    EXPECT_EQ(rounded.bytes, expected);
    EXPECT_EQ(rounded.bytes.back(), kUntouched);
    rounded.bytes.pop_back();
    return rounded;
  }
  [[nodiscard]] std::vector<float> back(const Rounded& rounded) const {
    std::vector<float> values(rounded.bytes.size());
    kernels().from_int8(rounded.bytes.data(), rounded.scale, values.data(), values.size());
    return values;
  }
  void expect_within_bound(const std::vector<float>& row) const {
    const double m = wide(magnitude(row));
    const std::vector<float> values = back(round(row));
    for (std::size_t i = 0; i < row.size(); ++i) {
      ASSERT_TRUE(std::isfinite(values[i])) << i << " of " << row.size() << ", largest " << m;
      ASSERT_LE(std::abs(wide(row[i]) - wide(values[i])), (0.5 + 0x1p-14) * m / 127) << row[i] << " of " << m;
      if (row[i] == 0.0F) {
        ASSERT_EQ(bits(values[i]), 0U);
      }
    }
  }
};

// Rows of all sizes and magnitudes keep the bound, and zeros stay zeros.
TEST_P(RoundingOnIsa, KeepsTheBound) {
  for (const std::size_t n : kRoundingSizes) {
    for (int power = -119; power <= 125; power += 4) {
      std::vector<float> row = kRoundingInputs.row(n, n, std::ldexp(1.0F, power));
      row[n / 3] = 0.0F;
      row[n / 2] = -0.0F;
      if (magnitude(row) >= kSmallestByteRow) expect_within_bound(row);
    }
  }
}

// At the largest numbers, and at the smallest that have a scale, one float after the other, the bound holds.
// 127 times a scale is never infinite, and no bit is lost to numbers below the normal ones.
TEST_P(RoundingOnIsa, KeepsTheBoundAtTheEnds) {
  float high = kLargest;
  float low = kSmallestByteRow;
  for (int i = 0; i < 1000; ++i) {
    for (const float m : {high, low}) {
      std::vector<float> row = kRoundingInputs.row(16, static_cast<std::uint64_t>(i), 0.3F);
      for (float& x : row) x = std::clamp(x, -1.0F, 1.0F) * m;
      row[5] = -m;
      expect_within_bound(row);
      EXPECT_EQ(round(row).bytes[5], -127);
    }
    high = std::nextafter(high, 0.0F);
    low = std::nextafter(low, 1.0F);
  }
  EXPECT_TRUE(std::isfinite(127 * kLargestByteScale));
  EXPECT_FALSE(std::isfinite(127 * std::nextafter(kLargestByteScale, kInfinity)));
  EXPECT_EQ(kSmallestByteRow / 127, std::numeric_limits<float>::min());
}

// Whole numbers come back as they are, and halves go to the even neighbour.
TEST_P(RoundingOnIsa, IsExactOnWholeNumbersAndEvenOnTies) {
  std::vector<float> whole(256);
  std::vector<float> halves(256);
  for (std::size_t i = 0; i < 256; ++i) {
    whole[i] = static_cast<float>(std::min<std::size_t>(i, 254)) - 127;
    halves[i] = std::min(whole[i] + 0.5F, 127.0F);
  }
  EXPECT_EQ(round(whole).scale, 1.0F);
  EXPECT_EQ(back(round(whole)), whole);
  const Rounded rounded = round(halves);
  EXPECT_EQ(rounded.scale, 1.0F);
  for (std::size_t i = 0; i < 254; ++i) {
    EXPECT_EQ(rounded.bytes[i] % 2, 0) << halves[i];
    EXPECT_EQ(std::abs(wide(halves[i]) - rounded.bytes[i]), 0.5) << halves[i];
  }
}

// Rows too small for a scale become zeros; one more bit, and they have one.
TEST_P(RoundingOnIsa, TinyRowsBecomeZero) {
  for (const float m : {0.0F, -0.0F, std::numeric_limits<float>::denorm_min(),
                        std::numeric_limits<float>::min(), std::nextafter(kSmallestByteRow, 0.0F)}) {
    std::vector<float> row(48, -m);
    row[7] = m / 2;
    const Rounded rounded = round(row);
    EXPECT_EQ(bits(rounded.scale), 0U) << m;
    EXPECT_EQ(rounded.bytes, std::vector<std::int8_t>(48, 0)) << m;
    EXPECT_EQ(back(rounded), std::vector<float>(48, 0.0F)) << m;
  }
  EXPECT_EQ(round(std::vector<float>(16, kSmallestByteRow)).bytes, std::vector<std::int8_t>(16, 127));
}

// A row that has diverged anywhere comes back as NaN everywhere: what is lost is seen.
TEST_P(RoundingOnIsa, WhatIsNotFiniteIsSeen) {
  for (const float x : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (std::size_t at = 0; at < 80; ++at) {
      std::vector<float> row = kRoundingInputs.row(80, at, 1);
      row[at] = x;
      const Rounded rounded = round(row);
      ASSERT_TRUE(std::isnan(rounded.scale)) << x << " at " << at;
      ASSERT_EQ(rounded.bytes, std::vector<std::int8_t>(80, 0)) << x << " at " << at;
      for (const float value : back(rounded)) ASSERT_TRUE(std::isnan(value));
    }
  }
}

// All bytes under all kinds of scales come back as one product in f32 each; nothing is written behind the
// row.
TEST_P(RoundingOnIsa, FromBytesIsOneProduct) {
  std::vector<std::int8_t> all(256);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int8_t>(static_cast<int>(i) - 128);
  for (const float scale :
       {0.1F, -3.7F, 0.0F, 0x1p-149F, 0x1.8p-127F, kLargestByteScale, kLargest, kInfinity}) {
    std::vector<float> values(all.size() + 1, 5.0F);
    kernels().from_int8(all.data(), scale, values.data(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const float expected = scale * static_cast<float>(all[i]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(values[i]));
      } else {
        EXPECT_EQ(bits(values[i]), bits(expected)) << scale << " * " << int{all[i]};
      }
    }
    EXPECT_EQ(values.back(), 5.0F);
  }
}

INSTANTIATE_TEST_SUITE_P(, RoundingOnIsa, testing::ValuesIn(kAllIsas), isa_word);

}  // namespace
}  // namespace gossamer::kernels
