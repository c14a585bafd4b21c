// SPDX-License-Identifier: Apache-2.0
//
// Codecs: matrices of f32 or f64 as bytes and back, docs/protocols/codec.md. A matrix may be some columns of
// a wider one. The bytes do not say which codec or shape they were made with.
//
//   const MatrixCodec codec(Codec::kInt8, kernels::kernels_for(kernels::best_isa()));
//   std::vector<std::byte> bytes(encoded_bytes(Codec::kInt8, {.rows = 256, .columns = 32}));
//   codec.encode({.data = hidden + 64, .shape = {.rows = 256, .columns = 32}, .stride = 128}, bytes);
//   ...
//   auto done = codec.decode(bytes, {.data = there, .shape = {.rows = 256, .columns = 32}, .stride = 32});
//
// Bytes and numbers are the same on every instruction set. Rows are independent: rows [a, b) are the bytes
// from encoded_bytes(codec, {a, columns}) to encoded_bytes(codec, {b, columns}). Nothing is allocated.
// Thread rule: immutable; functions write only what they are given, so threads may share a matrix by rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "kernels/kernels.h"

namespace gossamer::net {

enum class Codec {
  kF32,   // as it is
  kBf16,  // to nearest even: errs by 2^-8 of a number
  kInt8,  // a scale for each column block of a row: errs by 1/253 of its largest number
  kF64,   // as it is: the codec of all matrices of f64, and of no others
};

// By Codec.
inline constexpr std::array<std::string_view, 4> kCodecNames = {"f32", "bf16", "int8", "f64"};
[[nodiscard]] constexpr std::string_view name(Codec codec) {
  return kCodecNames[static_cast<std::size_t>(codec)];
}
// The names of those of f32, in the same order. An engine that computes in f32 lets its users choose among
// these.
inline constexpr std::array<std::string_view, 3> kF32CodecNames = {kCodecNames[0], kCodecNames[1],
                                                                   kCodecNames[2]};

// Bytes of one number of a matrix in memory, and of one column of a row on the way, without scales.
[[nodiscard]] constexpr std::size_t memory_bytes(Codec codec) {
  return codec == Codec::kF64 ? sizeof(double) : sizeof(float);
}
[[nodiscard]] constexpr std::size_t column_bytes(Codec codec) {
  switch (codec) {
    case Codec::kF32: return sizeof(float);
    case Codec::kBf16: return sizeof(kernels::Bf16);
    case Codec::kInt8: return sizeof(std::int8_t);
    case Codec::kF64: break;
  }
  return sizeof(double);
}

// Columns of a column block, which are rounded together. A row's last column block may be shorter.
inline constexpr std::size_t kCodecBlock = 64;

struct MatrixShape {
  std::size_t rows = 0;
  std::size_t columns = 0;
};

// A row-major matrix; from row to row it is `stride` numbers, at least as many as columns. Without rows or
// columns `data` may be null. Numbers between the columns and the stride are neither read nor written.
template <class Number>
struct MatrixOf {
  Number* data = nullptr;
  MatrixShape shape;
  std::size_t stride = 0;
};
using MatrixView = MatrixOf<const float>;
using MutableMatrixView = MatrixOf<float>;
using F64MatrixView = MatrixOf<const double>;
using MutableF64MatrixView = MatrixOf<double>;

// Bytes that a matrix of this shape becomes, whatever stands in it.
[[nodiscard]] std::size_t encoded_bytes(Codec codec, MatrixShape shape);

class MatrixCodec {
 public:
  // `kernels` outlives it.
  MatrixCodec(Codec codec, const kernels::Kernels& kernels) : codec_(codec), kernels_(&kernels) {}

  [[nodiscard]] Codec codec() const { return codec_; }

  // Require the numbers of the codec: f64 with kF64, f32 with any other.
  // Requires out.size() == encoded_bytes(codec(), matrix.shape), and that they do not overlap. `out` needs no
  // alignment.
  void encode(MatrixView matrix, std::span<std::byte> out) const;
  void encode(F64MatrixView matrix, std::span<std::byte> out) const;

  // Overwrites the matrix, or adds to each of its numbers what decode() would have written. kBadData, without
  // `where` and with the matrix as it was, if `bytes` are not encoded_bytes(codec(), matrix.shape). Otherwise
  // any bytes are numbers, NaN and infinities among them. `bytes` need no alignment.
  [[nodiscard]] Result<void> decode(std::span<const std::byte> bytes, MutableMatrixView matrix) const;
  [[nodiscard]] Result<void> decode(std::span<const std::byte> bytes, MutableF64MatrixView matrix) const;
  [[nodiscard]] Result<void> decode_add(std::span<const std::byte> bytes, MutableMatrixView matrix) const;
  [[nodiscard]] Result<void> decode_add(std::span<const std::byte> bytes, MutableF64MatrixView matrix) const;

 private:
  Codec codec_;
  const kernels::Kernels* kernels_;
};

}  // namespace gossamer::net
