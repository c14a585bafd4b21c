// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/fleet/boundary_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace gossamer::pipeline {
namespace {

constexpr std::uint64_t kTokens = 5;
constexpr std::uint32_t kWidth = 70;  // more than a block of a codec

template <class T>
std::vector<T> boundary_numbers() {
  Rng rng(3, Purpose::kTest);
  std::vector<T> numbers;
  for (std::uint64_t i = 0; i < kTokens * kWidth; ++i)
    numbers.push_back(static_cast<T>(rng.uniform()) - T{0.5});
  return numbers;
}

BoundaryShape shape(bool is_f64, net::Codec codec) {
  return {.is_f64 = is_f64, .codec = codec, .tokens = kTokens, .width = kWidth};
}

// The largest difference between numbers and what comes back of them.
template <class T>
double error_of(const BoundaryShape& shape, const std::vector<T>& numbers) {
  const WrittenBoundary written = write_boundary(shape, std::span<const T>(numbers));
  EXPECT_FALSE(written.zeros);
  EXPECT_EQ(written.bytes.size(), boundary_bytes(shape));
  const auto read =
      ReadBoundary::read(shape, {written.bytes.part(0, 3), written.bytes.part(3, written.bytes.size() - 3)});
  if (!read) return std::numeric_limits<double>::infinity();
  const auto back = std::get<std::span<const T>>(read->numbers());
  double most = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    most = std::max(most, static_cast<double>(std::abs(back[i] - numbers[i])));
  return most;
}

// Claim: f64 and f32 come back as they were, bf16 to 2^-9 of the largest number, int8 to a 253rd of it.
TEST(BoundaryCodec, ComesBack) {
  EXPECT_EQ(error_of(shape(true, net::Codec::kInt8), boundary_numbers<double>()), 0) << "no codec for f64";
  EXPECT_EQ(error_of(shape(false, net::Codec::kF32), boundary_numbers<float>()), 0);
  const double bf16 = error_of(shape(false, net::Codec::kBf16), boundary_numbers<float>());
  const double int8 = error_of(shape(false, net::Codec::kInt8), boundary_numbers<float>());
  EXPECT_GT(bf16, 0);
  EXPECT_LE(bf16, 0.5 / 512);
  EXPECT_GT(int8, bf16);
  EXPECT_LE(int8, 0.5 / 253);
}

// Claim: a number that is not finite, or would not be after rounding to bf16, becomes zeros, and its writer
// knows.
TEST(BoundaryCodec, ZerosInPlaceOfWhatIsNotFinite) {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const net::Codec codec : {net::Codec::kF32, net::Codec::kBf16, net::Codec::kInt8}) {
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), -kMost}) {
      std::vector<float> numbers = boundary_numbers<float>();
      numbers[17] = bad;
      const BoundaryShape one = shape(false, codec);
      const WrittenBoundary written = write_boundary(one, std::span<const float>(numbers));
      const bool is_bad = !std::isfinite(bad) || codec == net::Codec::kBf16;
      EXPECT_EQ(written.zeros, is_bad) << static_cast<int>(codec) << " " << bad;
      const auto read = ReadBoundary::read(one, {written.bytes});
      ASSERT_TRUE(read.has_value());
      for (const float number : std::get<std::span<const float>>(read->numbers())) {
        EXPECT_TRUE(!is_bad || number == 0) << number;
      }
    }
  }
}

// Claim: bytes of another size, or with a number that is not finite, are no boundary.
TEST(BoundaryCodec, RefusesWhatNobodyWrites) {
  const BoundaryShape exact = shape(true, net::Codec::kF32);
  std::vector<double> numbers = boundary_numbers<double>();
  const Slice good = Slice::copy_of(std::as_bytes(std::span<const double>(numbers)));
  EXPECT_TRUE(ReadBoundary::read(exact, {good}).has_value());
  EXPECT_FALSE(ReadBoundary::read(exact, {good.part(1, good.size() - 1)}).has_value());
  EXPECT_FALSE(ReadBoundary::read(exact, {good, good.part(0, 1)}).has_value());
  numbers[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(ReadBoundary::read(exact, {Slice::copy_of(std::as_bytes(std::span<const double>(numbers)))})
                   .has_value());
}

}  // namespace
}  // namespace gossamer::pipeline
