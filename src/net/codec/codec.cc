// SPDX-License-Identifier: Apache-2.0
#include "net/codec/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

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

// How a column block of n <= kCodecBlock columns becomes bytes and floats again. Floats go up to padded(n):
// zeros behind n to be encoded, anything when decoded. Bytes have no alignment, so numbers pass through
// arrays of their own.
struct F32Block {
  static constexpr std::size_t kScaleBytes = 0;
  static constexpr std::size_t kColumnBytes = sizeof(float);

  static void encode(const Kernels& /*kernels*/, const float* x, std::size_t n, std::byte* out) {
    std::memcpy(out, x, n * sizeof *x);
  }
  static void decode(const Kernels& /*kernels*/, const std::byte* in, std::size_t n, float* x) {
    std::memcpy(x, in, n * sizeof *x);
  }
};

struct Bf16Block {
  static constexpr std::size_t kScaleBytes = 0;
  static constexpr std::size_t kColumnBytes = sizeof(Bf16);

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
  static constexpr std::size_t kScaleBytes = sizeof(float);
  static constexpr std::size_t kColumnBytes = 1;

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
    case Codec::kF32: break;
  }
  return use(F32Block());
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

template <Into kInto>
void decode_blocks(Codec codec, const Kernels& kernels, std::span<const std::byte> bytes,
                   const MutableMatrixView& matrix) {
  with_block(codec, [&]<class Block>(Block) {
    std::array<float, kCodecBlock> decoded;
    const std::byte* in = bytes.data();
    each_block(matrix.shape, [&](std::size_t row, std::size_t column, std::size_t n) {
      float* const to = matrix.data + row * matrix.stride + column;
      const bool directly = kInto == Into::kMatrix && n % kernels::kLanes == 0;
      Block::decode(kernels, in, n, directly ? to : decoded.data());
      if constexpr (kInto == Into::kSum) {
        for (std::size_t i = 0; i < n; ++i) to[i] += decoded[i];
      } else if (!directly) {
        std::memcpy(to, decoded.data(), n * sizeof *to);
      }
      in += Block::kScaleBytes + n * Block::kColumnBytes;
    });
  });
}

}  // namespace

std::size_t encoded_bytes(Codec codec, MatrixShape shape) {
  return with_block(codec, [&]<class Block>(Block) {
    const std::size_t blocks = (shape.columns + kCodecBlock - 1) / kCodecBlock;
    return shape.rows * (blocks * Block::kScaleBytes + shape.columns * Block::kColumnBytes);
  });
}

void MatrixCodec::encode(MatrixView matrix, std::span<std::byte> out) const {
  CHECK(matrix.stride >= matrix.shape.columns, matrix.stride, matrix.shape.columns);
  CHECK(out.size() == encoded_bytes(codec_, matrix.shape), out.size(), name(codec_), matrix.shape.rows,
        matrix.shape.columns);
  with_block(codec_, [&]<class Block>(Block) {
    // For column blocks that do not fill their lanes. All such blocks of a matrix are the ends of its rows
    // and equally long, so what stands behind them stays 0.
    std::array<float, kCodecBlock> end{};
    std::byte* at = out.data();
    each_block(matrix.shape, [&](std::size_t row, std::size_t column, std::size_t n) {
      const float* x = matrix.data + row * matrix.stride + column;
      if (n % kernels::kLanes != 0) {
        std::memcpy(end.data(), x, n * sizeof *x);
        x = end.data();
      }
      Block::encode(*kernels_, x, n, at);
      at += Block::kScaleBytes + n * Block::kColumnBytes;
    });
  });
}

Result<void> MatrixCodec::decode(std::span<const std::byte> bytes, MutableMatrixView matrix) const {
  if (auto right = check(bytes, matrix); !right.ok()) return right;
  decode_blocks<Into::kMatrix>(codec_, *kernels_, bytes, matrix);
  return {};
}

Result<void> MatrixCodec::decode_add(std::span<const std::byte> bytes, MutableMatrixView matrix) const {
  if (auto right = check(bytes, matrix); !right.ok()) return right;
  decode_blocks<Into::kSum>(codec_, *kernels_, bytes, matrix);
  return {};
}

Result<void> MatrixCodec::check(std::span<const std::byte> bytes, const MutableMatrixView& matrix) const {
  CHECK(matrix.stride >= matrix.shape.columns, matrix.stride, matrix.shape.columns);
  const std::size_t expected = encoded_bytes(codec_, matrix.shape);
  if (bytes.size() == expected) return {};
  return Error{.kind = ErrorKind::kBadData,
               .what = "cannot decode a matrix",
               .got = fmt::format("{} bytes", bytes.size()),
               .expected = fmt::format("{}: {} rows of {} columns as {}", expected, matrix.shape.rows,
                                       matrix.shape.columns, name(codec_)),
               .fix = "look whether both nodes run the same version and configuration"};
}

}  // namespace gossamer::net
