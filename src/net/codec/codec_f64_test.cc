// SPDX-License-Identifier: Apache-2.0
//
// The codec of matrices of f64, as docs/protocols/codec.md has it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "base/rng.h"
#include "base/test_counting_new.h"
#include "net/codec/codec.h"

namespace gossamer::net {
namespace {

constexpr double kBetween = -77;  // what stands between rows

std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }

MatrixCodec f64_codec() { return {Codec::kF64, kernels::kernels_for(kernels::best_isa())}; }

// Owns a matrix with gaps between its rows.
struct WideMatrix {
  WideMatrix(MatrixShape matrix_shape, std::size_t gap)
      : shape(matrix_shape), stride(shape.columns + gap), numbers(shape.rows * stride + gap, kBetween) {}
  [[nodiscard]] double& at(std::size_t row, std::size_t column) { return numbers[row * stride + column]; }
  [[nodiscard]] F64MatrixView view() const {
    return {.data = numbers.data(), .shape = shape, .stride = stride};
  }
  [[nodiscard]] MutableF64MatrixView view() {
    return {.data = numbers.data(), .shape = shape, .stride = stride};
  }
  // Any bits: NaN of all kinds, infinities and the smallest numbers among them.
  void fill(std::uint64_t stream) {
    Rng rng(4713, Purpose::kTest, stream);
    for (std::size_t row = 0; row < shape.rows; ++row) {
      for (std::size_t column = 0; column < shape.columns; ++column) {
        at(row, column) = std::bit_cast<double>((rng.below(1ULL << 32) << 32) | rng.below(1ULL << 32));
      }
    }
  }
  [[nodiscard]] std::vector<std::uint64_t> all_bits() const {
    std::vector<std::uint64_t> all;
    for (const double x : numbers) all.push_back(bits_of(x));
    return all;
  }

  MatrixShape shape;
  std::size_t stride;
  std::vector<double> numbers;
};

// Encodes to an odd address.
std::vector<std::byte> encoded(const WideMatrix& matrix) {
  const std::size_t size = encoded_bytes(Codec::kF64, matrix.shape);
  std::vector<std::byte> bytes(size + 2, std::byte{0xa5});
  f64_codec().encode(matrix.view(), std::span(bytes).subspan(1, size));
  EXPECT_EQ(bytes.front(), std::byte{0xa5});
  EXPECT_EQ(bytes.back(), std::byte{0xa5});
  return {bytes.begin() + 1, bytes.end() - 1};
}

// The example of the page, byte by byte.
TEST(CodecOfF64, GoldenBytes) {
  WideMatrix matrix({.rows = 2, .columns = 3}, 1);
  const std::vector<std::vector<double>> numbers = {{1, -0.5, 0.25}, {-0.0, 1.00390625, 3}};
  for (std::size_t row = 0; row < 2; ++row) std::copy_n(numbers[row].begin(), 3, &matrix.at(row, 0));
  EXPECT_EQ(to_hex(encoded(matrix)),
            "000000000000f03f000000000000e0bf000000000000d03f"
            "0000000000000080000000000010f03f0000000000000840");
}

// Every bit comes back, in all small shapes, and nothing between the rows is written.
TEST(CodecOfF64, EveryBitComesBack) {
  for (std::size_t rows = 0; rows <= 3; ++rows) {
    for (std::size_t columns = 0; columns <= 2 * kCodecBlock + 3; ++columns) {
      const MatrixShape shape{.rows = rows, .columns = columns};
      ASSERT_EQ(encoded_bytes(Codec::kF64, shape), 8 * rows * columns);
      WideMatrix matrix(shape, columns % 3);
      matrix.fill(rows * 1000 + columns);
      WideMatrix back(shape, columns % 3);
      std::vector<std::byte> moved = encoded(matrix);
      moved.insert(moved.begin(), std::byte{});
      ASSERT_TRUE(f64_codec().decode(std::span(moved).subspan(1), back.view()).ok());
      ASSERT_EQ(back.all_bits(), matrix.all_bits()) << rows << " " << columns;
    }
  }
}

// Digits that f32 has not are kept in a sum, too: it is formed in f64, rounded once.
TEST(CodecOfF64, AddsInF64) {
  const MatrixShape shape{.rows = 2, .columns = 70};
  WideMatrix given(shape, 2);
  WideMatrix sum(shape, 2);
  Rng rng(4713, Purpose::kTest, 1);
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t column = 0; column < shape.columns; ++column) {
      given.at(row, column) = 1 + static_cast<double>(rng.below(1U << 20)) * 0x1p-50;
      sum.at(row, column) = static_cast<double>(rng.below(1U << 20)) * 0x1p-52;
    }
  }
  WideMatrix expected = sum;
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t column = 0; column < shape.columns; ++column) {
      expected.at(row, column) += given.at(row, column);
    }
  }
  ASSERT_TRUE(f64_codec().decode_add(encoded(given), sum.view()).ok());
  EXPECT_EQ(sum.all_bits(), expected.all_bits());
}

// A size that does not fit the shape is an error that says both, and nothing is written.
TEST(CodecOfF64, RefusesAnotherSize) {
  const MatrixShape shape{.rows = 4, .columns = 30};
  for (const std::size_t wrong : {0U, 959U, 961U, 480U}) {
    WideMatrix matrix(shape, 1);
    const WideMatrix before = matrix;
    const std::vector<std::byte> bytes(wrong);
    for (const Result<void>& done :
         {f64_codec().decode(bytes, matrix.view()), f64_codec().decode_add(bytes, matrix.view())}) {
      ASSERT_FALSE(done.ok());
      EXPECT_EQ(done.error().kind, ErrorKind::kBadData);
      EXPECT_EQ(done.error().got, std::to_string(wrong) + " bytes");
      EXPECT_EQ(done.error().expected, "960: 4 rows of 30 columns as f64");
    }
    EXPECT_EQ(matrix.all_bits(), before.all_bits());
  }
}

// Nothing is allocated.
TEST(CodecOfF64, DoesNotAllocate) {
  WideMatrix matrix({.rows = 9, .columns = 100}, 1);
  matrix.fill(1);
  std::vector<std::byte> bytes(encoded_bytes(Codec::kF64, matrix.shape));
  const MatrixCodec codec = f64_codec();
  const std::uint64_t before = allocation_count();
  codec.encode(std::as_const(matrix).view(), bytes);
  const bool decoded = codec.decode(bytes, matrix.view()).ok() && codec.decode_add(bytes, matrix.view()).ok();
  EXPECT_EQ(allocation_count(), before);
  EXPECT_TRUE(decoded);
}

// A codec has the numbers of one type. A matrix of the other one is an error of the program.
TEST(CodecOfF64Death, TakesNoF32) {
  std::vector<std::byte> bytes(8);
  const float narrow = 1;
  const double wide = 1;
  const MatrixShape one{.rows = 1, .columns = 1};
  EXPECT_DEATH(f64_codec().encode(MatrixView{.data = &narrow, .shape = one, .stride = 1}, bytes), "f64");
  const MatrixCodec f32(Codec::kF32, kernels::kernels_for(kernels::Isa::kScalar));
  EXPECT_DEATH(f32.encode(F64MatrixView{.data = &wide, .shape = one, .stride = 1}, std::span(bytes).first(4)),
               "f32");
}

// The names, and those among which an engine in f32 lets its users choose: no f64 is there.
TEST(CodecOfF64, HasItsNameAndIsNoneOfF32) {
  EXPECT_EQ(name(Codec::kF64), "f64");
  for (const std::string_view one : kF32CodecNames) EXPECT_NE(one, "f64");
  for (std::size_t i = 0; i < kF32CodecNames.size(); ++i) {
    EXPECT_EQ(kF32CodecNames[i], kCodecNames[i]);
    EXPECT_EQ(memory_bytes(static_cast<Codec>(i)), sizeof(float));
  }
  EXPECT_EQ(memory_bytes(Codec::kF64), sizeof(double));
}

}  // namespace
}  // namespace gossamer::net
