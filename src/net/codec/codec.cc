// SPDX-License-Identifier: Apache-2.0
#include "net/codec/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/check.h"

namespace gossamer::net {
namespace {

using kernels::Bf16;
using kernels::Kernels;

static_assert(std::endian::native == std::endian::little, "numbers travel as they lie in memory");
static_assert(kCodecBlock % kernels::kLanes == 0);

// Kernels work on whole lanes.
std::size_t padded(std::size_t columns) {
  return (columns + kernels::kLanes - 1) / kernels::kLanes * kernels::kLanes;
}

// How a column block of n <= kCodecBlock columns becomes bytes and numbers again. Numbers go up to padded(n):
// zeros behind n to be encoded, anything when decoded. Bytes have no alignment, so numbers pass through
// arrays of their own.
template <class T>
struct ExactBlock {
  using Number = T;
  static constexpr Codec kCodec = sizeof(T) == sizeof(double) ? Codec::kF64 : Codec::kF32;
  static constexpr std::size_t kScaleBytes = 0;

  static void encode(const Kernels& /*kernels*/, const T* x, std::size_t n, std::byte* out) {
    std::memcpy(out, x, n * sizeof *x);
  }
  static void decode(const Kernels& /*kernels*/, const std::byte* in, std::size_t n, T* x) {
    std::memcpy(x, in, n * sizeof *x);
  }
};

struct Bf16Block {
  using Number = float;
  static constexpr Codec kCodec = Codec::kBf16;
  static constexpr std::size_t kScaleBytes = 0;

  static void encode(const Kernels& kernels, const float* x, std::size_t n, std::byte* out) {
    std::array<Bf16, kCodecBlock> halves;
    kernels.to_bf16(x, halves.data(), padded(n));
    std::memcpy(out, halves.data(), n * sizeof(Bf16));
  }
  static void decode(const Kernels& kernels, const std::byte* in, std::size_t n, float* x) {
    std::array<Bf16, kCodecBlock> halves{};
    std::memcpy(halves.data(), in, n * sizeof(Bf16));
    kernels.from_bf16(halves.data(), x, padded(n));
  }
};

struct Int8Block {
  using Number = float;
  static constexpr Codec kCodec = Codec::kInt8;
  static constexpr std::size_t kScaleBytes = sizeof(float);

  static void encode(const Kernels& kernels, const float* x, std::size_t n, std::byte* out) {
    std::array<std::int8_t, kCodecBlock> rounded;
    const float scale = kernels.to_int8(x, rounded.data(), padded(n));
    std::memcpy(out, &scale, sizeof scale);
    std::memcpy(out + sizeof scale, rounded.data(), n);
  }
  static void decode(const Kernels& kernels, const std::byte* in, std::size_t n, float* x) {
    float scale = 0;
    std::array<std::int8_t, kCodecBlock> rounded{};
    std::memcpy(&scale, in, sizeof scale);
    std::memcpy(rounded.data(), in + sizeof scale, n);
    kernels.from_int8(rounded.data(), scale, x, padded(n));
  }
};

// Calls use(block) with the block of the codec.
template <class Use>
auto with_block(Codec codec, const Use& use) {
  switch (codec) {
    case Codec::kBf16: return use(Bf16Block());
    case Codec::kInt8: return use(Int8Block());
    case Codec::kF64: return use(ExactBlock<double>());
    case Codec::kF32: break;
  }
  return use(ExactBlock<float>());
}

// The same for a matrix of such numbers. Requires a codec of these.
template <class Number, class Use>
void with_block_of(Codec codec, const Use& use) {
  CHECK(memory_bytes(codec) == sizeof(Number), name(codec), sizeof(Number));
  with_block(codec, [&]<class Block>(Block block) {
    if constexpr (std::is_same_v<typename Block::Number, Number>) use(block);
  });
}

// Calls use(row, column, columns) for each block of the matrix, in the order of their bytes.
template <class Use>
void each_block(MatrixShape shape, const Use& use) {
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t column = 0; column < shape.columns; column += kCodecBlock) {
      use(row, column, std::min(kCodecBlock, shape.columns - column));
    }
  }
}

enum class Into { kMatrix, kSum };

template <Into kInto, class Number>
void decode_blocks(Codec codec, const Kernels& kernels, std::span<const std::byte> bytes,
                   const MatrixOf<Number>& matrix) {
  with_block_of<Number>(codec, [&]<class Block>(Block) {
    std::array<Number, kCodecBlock> decoded;
    const std::byte* in = bytes.data();
    each_block(matrix.shape, [&](std::size_t row, std::size_t column, std::size_t n) {
      Number* const to = matrix.data + row * matrix.stride + column;
      const bool directly = kInto == Into::kMatrix && n % kernels::kLanes == 0;
      Block::decode(kernels, in, n, directly ? to : decoded.data());
      if constexpr (kInto == Into::kSum) {
        for (std::size_t i = 0; i < n; ++i) to[i] += decoded[i];
      } else if (!directly) {
        std::memcpy(to, decoded.data(), n * sizeof *to);
      }
      in += Block::kScaleBytes + n * column_bytes(Block::kCodec);
    });
  });
}

template <class Number>
Result<void> check(Codec codec, std::span<const std::byte> bytes, const MatrixOf<Number>& matrix) {
  CHECK(matrix.stride >= matrix.shape.columns, matrix.stride, matrix.shape.columns);
  const std::size_t expected = encoded_bytes(codec, matrix.shape);
  if (bytes.size() == expected) return {};
  return Error{.kind = ErrorKind::kBadData,
               .what = "cannot decode a matrix",
               .got = fmt::format("{} bytes", bytes.size()),
               .expected = fmt::format("{}: {} rows of {} columns as {}", expected, matrix.shape.rows,
                                       matrix.shape.columns, name(codec)),
               .fix = "look whether both nodes run the same version and configuration"};
}

template <Into kInto, class Number>
Result<void> decode_into(Codec codec, const Kernels& kernels, std::span<const std::byte> bytes,
                         const MatrixOf<Number>& matrix) {
  if (auto right = check(codec, bytes, matrix); !right.ok()) return right;
  decode_blocks<kInto>(codec, kernels, bytes, matrix);
  return {};
}

template <class Number>
void encode_blocks(Codec codec, const Kernels& kernels, const MatrixOf<const Number>& matrix,
                   std::span<std::byte> out) {
  CHECK(matrix.stride >= matrix.shape.columns, matrix.stride, matrix.shape.columns);
  CHECK(out.size() == encoded_bytes(codec, matrix.shape), out.size(), name(codec), matrix.shape.rows,
        matrix.shape.columns);
  with_block_of<Number>(codec, [&]<class Block>(Block) {
    // For column blocks that do not fill their lanes. All such blocks of a matrix are the ends of its rows
    // and equally long, so what stands behind them stays 0.
    std::array<Number, kCodecBlock> end{};
    std::byte* at = out.data();
    each_block(matrix.shape, [&](std::size_t row, std::size_t column, std::size_t n) {
      const Number* x = matrix.data + row * matrix.stride + column;
      if (n % kernels::kLanes != 0) {
        std::memcpy(end.data(), x, n * sizeof *x);
        x = end.data();
      }
      Block::encode(kernels, x, n, at);
      at += Block::kScaleBytes + n * column_bytes(Block::kCodec);
    });
  });
}

}  // namespace

std::size_t encoded_bytes(Codec codec, MatrixShape shape) {
  return with_block(codec, [&]<class Block>(Block) {
    const std::size_t blocks = (shape.columns + kCodecBlock - 1) / kCodecBlock;
    return shape.rows * (blocks * Block::kScaleBytes + shape.columns * column_bytes(codec));
  });
}

void MatrixCodec::encode(MatrixView matrix, std::span<std::byte> out) const {
  encode_blocks(codec_, *kernels_, matrix, out);
}
void MatrixCodec::encode(F64MatrixView matrix, std::span<std::byte> out) const {
  encode_blocks(codec_, *kernels_, matrix, out);
}

Result<void> MatrixCodec::decode(std::span<const std::byte> bytes, MutableMatrixView matrix) const {
  return decode_into<Into::kMatrix>(codec_, *kernels_, bytes, matrix);
}
Result<void> MatrixCodec::decode(std::span<const std::byte> bytes, MutableF64MatrixView matrix) const {
  return decode_into<Into::kMatrix>(codec_, *kernels_, bytes, matrix);
}

Result<void> MatrixCodec::decode_add(std::span<const std::byte> bytes, MutableMatrixView matrix) const {
  return decode_into<Into::kSum>(codec_, *kernels_, bytes, matrix);
}
Result<void> MatrixCodec::decode_add(std::span<const std::byte> bytes, MutableF64MatrixView matrix) const {
  return decode_into<Into::kSum>(codec_, *kernels_, bytes, matrix);
}

}  // namespace gossamer::net
