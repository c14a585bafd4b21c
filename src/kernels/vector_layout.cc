// SPDX-License-Identifier: Apache-2.0
//
// Compiled once per target of Highway, as vector_rows.cc.
#define HWY_DISABLE_PCLMUL_AES
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/vector_layout.cc"
// clang-format off
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include <cstring>
#include <type_traits>

#include "kernels/vector.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using Bits = hn::RebindToUnsigned<D>;
using Halves = hn::ScalableTag<std::uint16_t>;

constexpr D d;
constexpr std::size_t kWidth = HWY_MAX_BYTES / sizeof(float);

// Transpositions work on blocks of 16 bytes, on every target. The shuffles within such blocks are the cheap
// ones. A store of 16 bytes a cycle is a small part of the product that follows.
using Block16 = hn::FixedTag<std::uint16_t, 8>;
using Block32 = hn::FixedTag<std::uint32_t, 4>;
using Block64 = hn::FixedTag<std::uint64_t, 2>;
using Words = hn::Vec<Block32>;

// Four rows of four words become four columns.
void transpose_words(Words (&x)[4]) {
  const Block32 b32;
  const Block64 b64;
  const auto low01 = hn::BitCast(b64, hn::InterleaveLower(b32, x[0], x[1]));
  const auto high01 = hn::BitCast(b64, hn::InterleaveUpper(b32, x[0], x[1]));
  const auto low23 = hn::BitCast(b64, hn::InterleaveLower(b32, x[2], x[3]));
  const auto high23 = hn::BitCast(b64, hn::InterleaveUpper(b32, x[2], x[3]));
  x[0] = hn::BitCast(b32, hn::InterleaveLower(b64, low01, low23));
  x[1] = hn::BitCast(b32, hn::InterleaveUpper(b64, low01, low23));
  x[2] = hn::BitCast(b32, hn::InterleaveLower(b64, high01, high23));
  x[3] = hn::BitCast(b32, hn::InterleaveUpper(b64, high01, high23));
}

// Words of 32 bits, whatever they hold; strides in words of in and out.
struct WordMatrix {
  const std::uint32_t* in;
  std::uint32_t* out;
  std::size_t rows, columns;
  std::size_t in_stride, out_stride;
};

// Tiles of 16 x 16 words: a cache line of every row of in and of out, so that each line is met once.
void transpose_matrix(const WordMatrix& t) {
  const Block32 block;
  for (std::size_t tile = 0; tile < t.rows * t.columns; tile += kLanes * kLanes) {
    const std::size_t row0 = tile / (t.columns * kLanes) * kLanes;
    const std::size_t column0 = tile / kLanes % t.columns;
    for (std::size_t c = column0; c < column0 + kLanes; c += 4) {
      for (std::size_t r = row0; r < row0 + kLanes; r += 4) {
        Words x[4];
        for (std::size_t i = 0; i < 4; ++i) x[i] = hn::LoadU(block, t.in + (r + i) * t.in_stride + c);
        transpose_words(x);
        for (std::size_t i = 0; i < 4; ++i) hn::StoreU(x[i], block, t.out + (c + i) * t.out_stride + r);
      }
    }
  }
}

// Highway's loads and stores may alias any type.
void transpose(const Transpose<float>& t) {
  transpose_matrix({.in = reinterpret_cast<const std::uint32_t*>(t.in),
                    .out = reinterpret_cast<std::uint32_t*>(t.out),
                    .rows = t.rows,
                    .columns = t.columns,
                    .in_stride = t.in_stride,
                    .out_stride = t.out_stride});
}

void transpose_pairs(const Transpose<Bf16>& t) {
  transpose_matrix({.in = reinterpret_cast<const std::uint32_t*>(t.in),
                    .out = reinterpret_cast<std::uint32_t*>(t.out),
                    .rows = t.rows,
                    .columns = t.columns / 2,
                    .in_stride = t.in_stride / 2,
                    .out_stride = t.out_stride / 2});
}

// Eight rows of eight halves: pairs of rows are interleaved into words, then words are transposed.
void transpose_bf16(const Transpose<Bf16>& t) {
  const Block16 b16;
  const Block32 b32;
  for (std::size_t r = 0; r < t.rows; r += 8) {
    for (std::size_t c = 0; c < t.columns; c += 8) {
      Words low[4];
      Words high[4];
      for (std::size_t i = 0; i < 4; ++i) {
        const Bf16* row = t.in + (r + 2 * i) * t.in_stride + c;
        const auto even = hn::LoadU(b16, &row->bits);
        const auto odd = hn::LoadU(b16, &(row + t.in_stride)->bits);
        low[i] = hn::BitCast(b32, hn::InterleaveLower(b16, even, odd));
        high[i] = hn::BitCast(b32, hn::InterleaveUpper(b16, even, odd));
      }
      transpose_words(low);
      transpose_words(high);
      for (std::size_t i = 0; i < 4; ++i) {
        hn::StoreU(hn::BitCast(b16, low[i]), b16, &(t.out + (c + i) * t.out_stride + r)->bits);
        hn::StoreU(hn::BitCast(b16, high[i]), b16, &(t.out + (c + 4 + i) * t.out_stride + r)->bits);
      }
    }
  }
}

void interleave_pairs(const Bf16* row0, const Bf16* row1, Bf16* out, std::size_t n) {
  const Block16 block;
  for (std::size_t i = 0; i < n; i += 8) {
    const auto even = hn::LoadU(block, &(row0 + i)->bits);
    const auto odd = hn::LoadU(block, &(row1 + i)->bits);
    hn::StoreU(hn::InterleaveLower(block, even, odd), block, &(out + 2 * i)->bits);
    hn::StoreU(hn::InterleaveUpper(block, even, odd), block, &(out + 2 * i + 8)->bits);
  }
}

// A tile of C: kTileVectors vectors down, kTileColumns columns across, held in registers over all of k.
// Products of integers pass through a register before they are added: with four columns GCC 12 spills sums of
// AVX2.
constexpr std::size_t kTileVectors = kLanes / kWidth < 2 ? kLanes / kWidth : 2;
template <class E>
constexpr std::size_t kTileColumns = std::is_same_v<E, std::int16_t> ? 2 : 4;
template <class E>
using Sums = hn::ScalableTag<SumOf<E>>;
template <class E>
using Tile = hn::Vec<Sums<E>>[kTileColumns<E>][kTileVectors];

void accumulate(const Multiply<float>& p, std::size_t row, std::size_t column, Tile<float>& tile) {
  for (std::size_t q = 0; q < p.k; ++q) {
    V a[kTileVectors];
    for (std::size_t i = 0; i < kTileVectors; ++i) a[i] = hn::LoadU(d, p.a + q * p.lda + row + i * kWidth);
    for (std::size_t j = 0; j < kTileColumns<float>; ++j) {
      const V b = hn::Set(d, p.b[(column + j) * p.ldb + q]);
      for (std::size_t i = 0; i < kTileVectors; ++i) tile[j][i] = hn::MulAdd(a[i], b, tile[j][i]);
    }
  }
}

// A word holds elements k and k + 1 of one row: its lower half shifted up and its upper half alone are
// floats.
void accumulate(const Multiply<Bf16>& p, std::size_t row, std::size_t column, Tile<Bf16>& tile) {
  const Bits words;
  const auto upper = hn::Set(words, 0xffff0000U);
  for (std::size_t q = 0; q < p.k; q += 2) {
    V even[kTileVectors];
    V odd[kTileVectors];
    for (std::size_t i = 0; i < kTileVectors; ++i) {
      const Bf16* pairs = p.a + (q / 2 * p.lda + row + i * kWidth) * 2;
      const auto a = hn::BitCast(words, hn::LoadU(Halves(), &pairs->bits));
      even[i] = hn::BitCast(d, hn::ShiftLeft<16>(a));
      odd[i] = hn::BitCast(d, hn::And(a, upper));
    }
    for (std::size_t j = 0; j < kTileColumns<Bf16>; ++j) {
      std::uint32_t pair = 0;
      std::memcpy(&pair, p.b + (column + j) * p.ldb + q, sizeof pair);
      const auto b = hn::Set(words, pair);
      const V b_even = hn::BitCast(d, hn::ShiftLeft<16>(b));
      const V b_odd = hn::BitCast(d, hn::And(b, upper));
      for (std::size_t i = 0; i < kTileVectors; ++i) {
        tile[j][i] = hn::MulAdd(even[i], b_even, tile[j][i]);
        tile[j][i] = hn::MulAdd(odd[i], b_odd, tile[j][i]);
      }
    }
  }
}

// A word holds elements k and k + 1 of one row, which are multiplied by those of a column and added up at
// once. The tests hold Highway to summing adjacent pairs in place, as it does on all targets built here.
void accumulate(const Multiply<std::int16_t>& p, std::size_t row, std::size_t column,
                Tile<std::int16_t>& tile) {
  const hn::ScalableTag<std::int16_t> words;
  const Sums<std::int16_t> sums;
  for (std::size_t q = 0; q < p.k; q += 2) {
    hn::Vec<decltype(words)> a[kTileVectors];
    for (std::size_t i = 0; i < kTileVectors; ++i) {
      a[i] = hn::LoadU(words, p.a + (q / 2 * p.lda + row + i * kWidth) * 2);
    }
    for (std::size_t j = 0; j < kTileColumns<std::int16_t>; ++j) {
      std::int32_t pair = 0;
      std::memcpy(&pair, p.b + (column + j) * p.ldb + q, sizeof pair);
      const auto b = hn::BitCast(words, hn::Set(sums, pair));
      auto unused = hn::Zero(sums);
      for (std::size_t i = 0; i < kTileVectors; ++i) {
        tile[j][i] = hn::ReorderWidenMulAccumulate(sums, a[i], b, tile[j][i], unused);
      }
    }
  }
}

template <class E>
void multiply(const Multiply<E>& p) {
  const Sums<E> sums;
  for (std::size_t column = 0; column < p.n; column += kTileColumns<E>) {
    for (std::size_t row = 0; row < p.m; row += kTileVectors * kWidth) {
      Tile<E> tile;
      for (auto& vectors : tile) {
        for (auto& v : vectors) v = hn::Zero(sums);
      }
      accumulate(p, row, column, tile);
      for (std::size_t j = 0; j < kTileColumns<E>; ++j) {
        auto* c = p.c + (column + j) * p.ldc + row;
        for (std::size_t i = 0; i < kTileVectors; ++i) {
          hn::StoreU(hn::Add(hn::LoadU(sums, c + i * kWidth), tile[j][i]), sums, c + i * kWidth);
        }
      }
    }
  }
}

}  // namespace

void fill_layout(Kernels& table) {
  table.interleave_pairs = interleave_pairs;
  table.transpose = transpose;
  table.transpose_bf16 = transpose_bf16;
  table.transpose_pairs = transpose_pairs;
  table.multiply = multiply<float>;
  table.multiply_bf16 = multiply<Bf16>;
  table.multiply_int16 = multiply<std::int16_t>;
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gossamer::kernels {

static_assert((HWY_TARGETS) == (HWY_SSE4 | HWY_AVX2 | HWY_AVX3), "Isa and Highway's targets must agree");

void register_layout(Isa isa, Kernels& table) {
  register_for(isa, {N_SSE4::fill_layout, N_AVX2::fill_layout, N_AVX3::fill_layout}, table);
}

}  // namespace gossamer::kernels
#endif
