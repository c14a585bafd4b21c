// SPDX-License-Identifier: Apache-2.0
#include "exact/exact_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "base/rng.h"

namespace gossamer::exact {
namespace {

constexpr double kError = 4e-16;

long double wide_cosine(double turns) {
  return std::cos(2 * std::numbers::pi_v<long double> * static_cast<long double>(turns));
}
long double wide_sine(double turns) {
  return std::sin(2 * std::numbers::pi_v<long double> * static_cast<long double>(turns));
}

// Claim: cosine and sine are those of 80-bit libm to 4e-16, over several turns of both signs and at the ends
// of all octants.
TEST(ExactMath, CosineAndSineOverSeveralTurns) {
  Rng random(1, Purpose::kTest);
  for (int i = 0; i < 200'000; ++i) {
    const double turns = (static_cast<double>(random.next_u32()) * 0x1p-32 - 0.5) * 6;
    EXPECT_NEAR(cosine(turns), static_cast<double>(wide_cosine(turns)), kError) << turns;
    EXPECT_NEAR(sine(turns), static_cast<double>(wide_sine(turns)), kError) << turns;
  }
  for (int eighth = -16; eighth <= 16; ++eighth) {
    for (const double beside : {-1e-12, 0.0, 1e-12}) {
      const double turns = eighth / 8.0 + beside;
      EXPECT_NEAR(cosine(turns), static_cast<double>(wide_cosine(turns)), kError) << turns;
      EXPECT_NEAR(sine(turns), static_cast<double>(wide_sine(turns)), kError) << turns;
    }
  }
}

// Claim: the ends that schedules rest on are exact: a whole turn, half of one, a quarter of one.
TEST(ExactMath, QuartersOfATurnAreExact) {
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(cosine(0.5), -1);
  EXPECT_EQ(cosine(0.25), 0);
  EXPECT_EQ(cosine(1), 1);
  EXPECT_EQ(sine(0), 0);
  EXPECT_EQ(sine(0.25), 1);
  EXPECT_EQ(sine(-0.25), -1);
}

// Claim: the logarithm is that of 80-bit libm over the whole range of normal numbers, near 1 and at powers
// of 2.
TEST(ExactMath, LogarithmOverTheWholeRange) {
  Rng random(2, Purpose::kTest);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t bits = random.next_u64();
    const std::uint64_t exponent = 1 + (bits >> 52U) % 2046;
    const auto x = std::bit_cast<double>((bits & ((std::uint64_t{1} << 52U) - 1)) | (exponent << 52U));
    const auto right = static_cast<double>(std::log(static_cast<long double>(x)));
    EXPECT_NEAR(logarithm(x), right, kError * std::max(1.0, std::abs(right))) << x;
    const double near = 0.5 + static_cast<double>(bits >> 11U) * 0x1p-53 * 1.5;
    EXPECT_NEAR(logarithm(near), static_cast<double>(std::log(static_cast<long double>(near))), kError)
        << near;
  }
  EXPECT_EQ(logarithm(1), 0);
  EXPECT_EQ(logarithm(2), std::numbers::ln2);
}

// Claim: the exponential is that of 80-bit libm over the whole range of normal results, near 0, and where the
// nearest multiple of ln 2 changes. It is 0 where the result would be no normal number.
TEST(ExactMath, ExponentialOverTheWholeRange) {
  Rng random(3, Purpose::kTest);
  const auto check = [](double x) {
    const long double right = std::exp(static_cast<long double>(x));
    EXPECT_LT(std::abs(static_cast<long double>(exponential(x)) / right - 1), kError) << x;
  };
  for (int i = 0; i < 200'000; ++i) {
    const double part = static_cast<double>(random.next_u64() >> 11U) * 0x1p-53;
    check(-708 + part * 1417);
    check(2 * part - 1);
  }
  for (int k = -1020; k <= 1021; ++k) {
    for (const double beside : {-1e-13, 0.0, 1e-13}) check((k + 0.5) * std::numbers::ln2 + beside);
  }
  for (const double end : {-708.0, 709.0}) check(end);
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(exponential(-708.5), 0);
  EXPECT_EQ(exponential(-1e300), 0);
  EXPECT_EQ(exponential(-std::numeric_limits<double>::infinity()), 0);
}

// Claim: power is the product, for exponents as large as the steps of a long run.
TEST(ExactMath, Power) {
  EXPECT_EQ(power(0.9, 0), 1);
  EXPECT_EQ(power(0.9, 1), 0.9);
  EXPECT_EQ(power(3, 5), 243);
  EXPECT_EQ(power(-2, 3), -8);
  EXPECT_NEAR(power(0.999, 100'000) / static_cast<double>(std::pow(0.999L, 100'000)), 1, 1e-11);
  EXPECT_NEAR(power(0.999999, 1'000'000) / static_cast<double>(std::pow(0.999999L, 1'000'000)), 1, 1e-10);
  EXPECT_EQ(power(0.9, std::uint64_t{1} << 40U), 0);
}

}  // namespace
}  // namespace gossamer::exact
