// SPDX-License-Identifier: Apache-2.0
//
// Every codec with the kernels of every instruction set of this CPU: docs/protocols/codec.md as tests.
#include "net/codec/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "base/rng.h"
#include "base/test_counting_new.h"

namespace gossamer::net {
namespace {

using kernels::Isa;
using ::testing::HasSubstr;

constexpr std::uint64_t kSeed = 4713;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kGap = -77;  // between rows
constexpr std::byte kGuard{0xa5};

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
double wide(float x) { return static_cast<double>(x); }

// NaN is NaN, whatever its bits; all else is compared by them.
bool same(float a, float b) { return bits(a) == bits(b) || (std::isnan(a) && std::isnan(b)); }

// Owns a matrix with gaps between its rows.
struct Matrix {
  Matrix(MatrixShape matrix_shape, std::size_t gap, float value = kGap)
      : shape(matrix_shape), stride(shape.columns + gap), floats(shape.rows * stride + gap, kGap) {
    for (std::size_t row = 0; row < shape.rows; ++row) {
      std::fill_n(floats.data() + row * stride, shape.columns, value);
    }
  }
  [[nodiscard]] float& at(std::size_t row, std::size_t column) { return floats[row * stride + column]; }
  [[nodiscard]] MatrixView view() const { return {.data = floats.data(), .shape = shape, .stride = stride}; }
  [[nodiscard]] MutableMatrixView view() { return {.data = floats.data(), .shape = shape, .stride = stride}; }
  void expect_gaps() const {
    for (std::size_t i = 0; i < floats.size(); ++i) {
      const bool inside = shape.columns > 0 && i / stride < shape.rows && i % stride < shape.columns;
      ASSERT_TRUE(inside || floats[i] == kGap) << i;
    }
  }

  MatrixShape shape;
  std::size_t stride;
  std::vector<float> floats;
};

// Normal numbers around 2^power; now and then a zero, or a number a thousand times larger.
Matrix random_matrix(MatrixShape shape, std::size_t gap, std::uint64_t stream, int power = 0) {
  Rng rng(kSeed, Purpose::kTest, stream);
  Matrix matrix(shape, gap);
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t column = 0; column < shape.columns; ++column) {
      const float x = std::ldexp(rng.normal(), power);
      const std::uint64_t kind = rng.below(40);
      matrix.at(row, column) = kind == 0 ? 0.0F : kind == 1 ? -0.0F : kind == 2 ? 1000 * x : x;
    }
  }
  return matrix;
}

// What the protocol allows y to differ from a finite x in a block of largest magnitude m.
double allowed(Codec codec, double x, double m) {
  switch (codec) {
    case Codec::kF32:
    case Codec::kF64: return 0;  // codec_f64_test.cc
    case Codec::kBf16: return std::max(0x1p-8 * std::abs(x), 0x1p-134);
    case Codec::kInt8: return m < 127 * 0x1p-126 ? m : (0.5 + 0x1p-14) * m / 127;
  }
  return 0;
}

class CodecOnIsa : public testing::TestWithParam<std::tuple<Codec, Isa>> {
 protected:
  void SetUp() override {
    if (!kernels::supported(isa())) GTEST_SKIP() << "this CPU has no " << kernels::name(isa());
  }
  [[nodiscard]] Codec which() const { return std::get<0>(GetParam()); }
  [[nodiscard]] Isa isa() const { return std::get<1>(GetParam()); }
  [[nodiscard]] MatrixCodec codec() const { return {which(), kernels::kernels_for(isa())}; }
  [[nodiscard]] MatrixCodec scalar() const { return {which(), kernels::kernels_for(Isa::kScalar)}; }

  // Encodes to an odd address, with a guard behind; scalar kernels must give the same.
  [[nodiscard]] std::vector<std::byte> encode(const Matrix& matrix) const {
    const std::size_t size = encoded_bytes(which(), matrix.shape);
    std::vector<std::byte> bytes(size + 2, kGuard);
    codec().encode(matrix.view(), std::span(bytes).subspan(1, size));
    std::vector<std::byte> expected(size + 2, kGuard);
    scalar().encode(matrix.view(), std::span(expected).subspan(1, size));
    EXPECT_EQ(bytes, expected);
    EXPECT_EQ(bytes.back(), kGuard);
    return {bytes.begin() + 1, bytes.end() - 1};
  }
  // Decodes from an odd address, between gaps; scalar kernels must give the same.
  [[nodiscard]] Matrix decode(const std::vector<std::byte>& bytes, MatrixShape shape) const {
    std::vector<std::byte> moved(bytes.size() + 1);
    std::copy(bytes.begin(), bytes.end(), moved.begin() + 1);
    Matrix matrix(shape, 5, 123);
    Matrix expected(shape, 5, 321);
    EXPECT_TRUE(codec().decode(std::span(moved).subspan(1), matrix.view()).ok());
    EXPECT_TRUE(scalar().decode(bytes, expected.view()).ok());
    EXPECT_TRUE(std::equal(matrix.floats.begin(), matrix.floats.end(), expected.floats.begin(), same));
    matrix.expect_gaps();
    return matrix;
  }
  // Finite numbers go there and back within the bound; zeros stay zeros.
  void expect_within_bounds(Matrix& matrix) const {
    Matrix back = decode(encode(matrix), matrix.shape);
    for (std::size_t row = 0; row < matrix.shape.rows; ++row) {
      for (std::size_t column = 0; column < matrix.shape.columns; ++column) {
        const std::size_t block = column / kCodecBlock * kCodecBlock;
        double m = 0;
        for (std::size_t i = block; i < std::min(block + kCodecBlock, matrix.shape.columns); ++i) {
          m = std::max(m, std::abs(wide(matrix.at(row, i))));
        }
        const float x = matrix.at(row, column);
        const float y = back.at(row, column);
        ASSERT_LE(std::abs(wide(x) - wide(y)), allowed(which(), wide(x), m))
            << x << " became " << y << " in row " << row << " of " << matrix.shape.columns << " columns";
      }
    }
  }
};

// The example of the protocol, byte by byte.
TEST_P(CodecOnIsa, GoldenBytes) {
  Matrix matrix({.rows = 2, .columns = 3}, 1);
  const std::vector<std::vector<float>> numbers = {{1, -0.5F, 0.25F}, {-0.0F, 1.00390625F, 3}};
  for (std::size_t row = 0; row < 2; ++row) std::copy_n(numbers[row].begin(), 3, &matrix.at(row, 0));
  const std::array<std::string_view, 3> golden = {"0000803f000000bf0000803e000000800080803f00004040",
                                                  "803f00bf803e0080803f4040", "0402013c7fc0200683c13c002a7f"};
  const std::vector<std::byte> bytes = encode(matrix);
  EXPECT_EQ(to_hex(bytes), golden[static_cast<std::size_t>(which())]);
}

// All small shapes, and blocks of all lengths: sizes are what the protocol says, within the bounds, with gaps
// between rows and at any address.
TEST_P(CodecOnIsa, AllSmallShapes) {
  for (std::size_t rows = 0; rows <= 3; ++rows) {
    for (std::size_t columns = 0; columns <= 3 * kCodecBlock; ++columns) {
      const MatrixShape shape{.rows = rows, .columns = columns};
      const std::size_t blocks = columns / 64 + (columns % 64 == 0 ? 0 : 1);
      const std::array<std::size_t, 3> sizes = {4 * rows * columns, 2 * rows * columns,
                                                rows * (columns + 4 * blocks)};
      ASSERT_EQ(encoded_bytes(which(), shape), sizes[static_cast<std::size_t>(which())]);
      Matrix matrix = random_matrix(shape, columns % 3, rows * 1000 + columns);
      expect_within_bounds(matrix);
    }
  }
}

// The bounds hold at all magnitudes at which bf16 is finite, and next to each other.
TEST_P(CodecOnIsa, BoundsAtAllMagnitudes) {
  for (int power = -149; power <= 114; ++power) {
    const std::uint64_t seed = static_cast<std::uint64_t>(power) + 200;
    Matrix matrix = random_matrix({.rows = 2, .columns = 100}, 0, seed, power);
    expect_within_bounds(matrix);
  }
  Matrix mixed({.rows = 1, .columns = 264}, 0);
  for (std::size_t at = 0; at < 264; ++at) {
    const float x = std::ldexp(1.99F, static_cast<int>(at) - 149);
    mixed.at(0, at) = at % 2 == 1 ? x : -x;
  }
  expect_within_bounds(mixed);
}

// What a finite number may become at the upper end: infinite in bf16, never anywhere else, and NaN nowhere.
TEST_P(CodecOnIsa, TheLargestNumbers) {
  const float last = std::bit_cast<float>(0x7f7f7fffU);  // below 2^128 - 2^119
  for (const float x : {kLargest, -kLargest, std::nextafter(last, kLargest), last, -last}) {
    Matrix matrix({.rows = 1, .columns = 70}, 0, x);
    matrix.at(0, 3) = 0;
    if (which() != Codec::kBf16 || std::abs(x) <= last) {
      expect_within_bounds(matrix);
      continue;
    }
    Matrix back = decode(encode(matrix), matrix.shape);
    EXPECT_EQ(back.at(0, 0), std::copysign(kInfinity, x));
    EXPECT_EQ(back.at(0, 3), 0.0F);
  }
}

// What is not finite stays visible: to the number in f32 and bf16, as NaN in its whole block, and nowhere
// else, in int8.
TEST_P(CodecOnIsa, WhatIsNotFiniteStaysVisible) {
  for (const float x : {kNan, kInfinity, -kInfinity}) {
    for (const std::size_t at : {0U, 63U, 64U, 100U, 128U, 129U}) {
      Matrix matrix = random_matrix({.rows = 3, .columns = 130}, 2, at);
      matrix.at(1, at) = x;
      Matrix back = decode(encode(matrix), matrix.shape);
      for (std::size_t row = 0; row < 3; ++row) {
        for (std::size_t column = 0; column < 130; ++column) {
          const bool block = row == 1 && column / kCodecBlock == at / kCodecBlock;
          const float y = back.at(row, column);
          if (which() == Codec::kInt8) {
            ASSERT_EQ(std::isnan(y), block) << row << " " << column;
          } else if (row == 1 && column == at) {
            ASSERT_TRUE(same(y, x)) << y;
          } else {
            ASSERT_TRUE(std::isfinite(y)) << row << " " << column;
          }
        }
      }
    }
  }
}

// A zero comes back as a zero, with its sign but for int8, which has none; f32 keeps every bit of a NaN.
TEST_P(CodecOnIsa, Zeros) {
  Matrix matrix = random_matrix({.rows = 2, .columns = 80}, 0, 1);
  const float signalling = std::bit_cast<float>(0xff800123U);
  for (std::size_t column = 0; column < 80; column += 7) {
    matrix.at(0, column) = 0.0F;
    matrix.at(1, column) = -0.0F;
  }
  Matrix back = decode(encode(matrix), matrix.shape);
  for (std::size_t column = 0; column < 80; column += 7) {
    EXPECT_EQ(bits(back.at(0, column)), 0U);
    EXPECT_EQ(bits(back.at(1, column)), which() == Codec::kInt8 ? 0U : 0x80000000U);
  }
  matrix.at(0, 0) = signalling;
  if (which() == Codec::kF32) {
    EXPECT_EQ(bits(decode(encode(matrix), matrix.shape).at(0, 0)), bits(signalling));
  }
}

// Rows are independent: some of the rows are some of the bytes.
TEST_P(CodecOnIsa, RowsAreIndependent) {
  const Matrix matrix = random_matrix({.rows = 7, .columns = 90}, 3, 1);
  const std::vector<std::byte> whole = encode(matrix);
  std::vector<std::byte> parts(whole.size());
  std::size_t begin = 0;
  for (const std::size_t rows : {3U, 0U, 1U, 3U}) {
    const MatrixShape shape{.rows = rows, .columns = 90};
    const std::size_t first = encoded_bytes(which(), {.rows = begin, .columns = 90});
    codec().encode(
        {.data = matrix.view().data + begin * matrix.stride, .shape = shape, .stride = matrix.stride},
        std::span(parts).subspan(first, encoded_bytes(which(), shape)));
    begin += rows;
  }
  EXPECT_EQ(parts, whole);
}

// Adding is decoding and one sum in f32, to the bit, and leaves the gaps alone.
TEST_P(CodecOnIsa, AddsWhatItDecodes) {
  for (const std::size_t columns : {1U, 15U, 16U, 64U, 65U, 200U}) {
    const MatrixShape shape{.rows = 3, .columns = columns};
    const std::vector<std::byte> bytes = encode(random_matrix(shape, 0, columns));
    Matrix decoded = decode(bytes, shape);
    Matrix sum = random_matrix(shape, 4, columns + 1);
    Matrix before = sum;
    ASSERT_TRUE(codec().decode_add(bytes, sum.view()).ok());
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        ASSERT_EQ(bits(sum.at(row, column)), bits(before.at(row, column) + decoded.at(row, column)));
      }
    }
    sum.expect_gaps();
  }
}

// A size that does not fit codec and shape is an error that says both, and nothing is written.
TEST_P(CodecOnIsa, RefusesAnotherSize) {
  const MatrixShape shape{.rows = 4, .columns = 30};
  const std::size_t size = encoded_bytes(which(), shape);
  for (const std::size_t wrong : {std::size_t{0}, size - 1, size + 1, 2 * size}) {
    const std::vector<std::byte> bytes(wrong);
    Matrix matrix(shape, 1, 42);
    for (const Result<void>& done :
         {codec().decode(bytes, matrix.view()), codec().decode_add(bytes, matrix.view())}) {
      ASSERT_FALSE(done.ok());
      EXPECT_EQ(done.error().kind, ErrorKind::kBadData);
      EXPECT_EQ(done.error().got, std::to_string(wrong) + " bytes");
      EXPECT_EQ(done.error().expected,
                std::to_string(size) + ": 4 rows of 30 columns as " + std::string(name(which())));
      EXPECT_THAT(done.error().what, HasSubstr("matrix"));
      EXPECT_THAT(done.error().fix, HasSubstr("configuration"));
    }
    EXPECT_EQ(matrix.floats, Matrix(shape, 1, 42).floats);
  }
  Matrix nothing({.rows = 5, .columns = 0}, 0);
  EXPECT_TRUE(codec().decode({}, nothing.view()).ok());
  EXPECT_FALSE(codec().decode(std::vector<std::byte>(4), nothing.view()).ok());
}

// Any bytes of the right size are numbers, the same with all kernels.
TEST_P(CodecOnIsa, AnyBytesAreNumbers) {
  const MatrixShape shape{.rows = 4, .columns = 77};
  std::vector<std::byte> bytes(encoded_bytes(which(), shape));
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(kSeed, Purpose::kTest, seed);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
    (void)decode(bytes, shape);
  }
  for (const std::byte all : {std::byte{0}, std::byte{0x7f}, std::byte{0x80}, std::byte{0xff}}) {
    std::fill(bytes.begin(), bytes.end(), all);
    (void)decode(bytes, shape);
  }
}

// Nothing is allocated.
TEST_P(CodecOnIsa, DoesNotAllocate) {
  Matrix matrix = random_matrix({.rows = 9, .columns = 100}, 1, 1);
  std::vector<std::byte> bytes(encoded_bytes(which(), matrix.shape));
  const MatrixCodec codec = this->codec();
  const std::uint64_t before = allocation_count();
  codec.encode(std::as_const(matrix).view(), bytes);
  const bool decoded = codec.decode(bytes, matrix.view()).ok() && codec.decode_add(bytes, matrix.view()).ok();
  EXPECT_EQ(allocation_count(), before);
  EXPECT_TRUE(decoded);
}

INSTANTIATE_TEST_SUITE_P(, CodecOnIsa,
                         testing::Combine(testing::Values(Codec::kF32, Codec::kBf16, Codec::kInt8),
                                          testing::ValuesIn(kernels::kAllIsas)),
                         [](const auto& test) {
                           std::string text(name(std::get<0>(test.param)));
                           text += kernels::name(std::get<1>(test.param));
                           std::erase(text, '-');
                           return text;
                         });

// What a step sends (the example of the protocol), and the names that users write.
TEST(Codecs, SizesAndNames) {
  const MatrixShape hidden{.rows = 256, .columns = 32};
  EXPECT_EQ(encoded_bytes(Codec::kF32, hidden), 32'768U);
  EXPECT_EQ(encoded_bytes(Codec::kBf16, hidden), 16'384U);
  EXPECT_EQ(encoded_bytes(Codec::kInt8, hidden), 9'216U);
  EXPECT_EQ(name(Codec::kF32), "f32");
  EXPECT_EQ(name(Codec::kBf16), "bf16");
  EXPECT_EQ(name(Codec::kInt8), "int8");
}

}  // namespace
}  // namespace gossamer::net
