// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step_log.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/aligned_array.h"
#include "base/check.h"

namespace gossamer::engine {
namespace {

std::size_t width_of(const host::Range& columns) { return columns.end - columns.begin; }

// In one piece of memory: their own, or a copy in `memory`.
std::span<const std::byte> contiguous(const Slices& slices, std::vector<std::byte>& memory) {
  if (slices.size() == 1) return slices.front().bytes();
  memory.resize(total_bytes(slices));
  copy_front(slices, memory);
  return memory;
}

}  // namespace

void PieceCodec::add(const ColumnPiece& piece, host::Range columns, std::span<float> out) const {
  const std::size_t begin = std::max(piece.columns.begin, columns.begin);
  const std::size_t end = std::min(piece.columns.end, columns.end);
  if (begin >= end) return;
  const std::size_t to_width = width_of(columns);
  CHECK(out.size() == rows_ * to_width, out.size(), rows_, to_width);
  std::vector<std::byte> memory;
  const std::span<const std::byte> bytes = contiguous(piece.bytes, memory);
  const net::MatrixCodec codec(piece.codec, kernels_);
  const net::MatrixShape shape{.rows = rows_, .columns = width_of(piece.columns)};
  if (piece.columns.begin >= columns.begin && piece.columns.end <= columns.end) {
    const auto added = codec.decode_add(
        bytes, {.data = out.data() + (begin - columns.begin), .shape = shape, .stride = to_width});
    CHECK(added.ok(), added.error().message());
    return;
  }
  std::vector<float> values(shape.rows * shape.columns);
  const auto decoded = codec.decode(bytes, {.data = values.data(), .shape = shape, .stride = shape.columns});
  CHECK(decoded.ok(), decoded.error().message());
  for (std::size_t row = 0; row < rows_; ++row) {
    const float* const from = values.data() + row * shape.columns + (begin - piece.columns.begin);
    float* const to = out.data() + row * to_width + (begin - columns.begin);
    for (std::size_t i = 0; i < end - begin; ++i) to[i] += from[i];
  }
}

void PieceCodec::copy(const ColumnPiece& piece, std::size_t stride, std::span<float> out) const {
  if (width_of(piece.columns) == 0) return;
  CHECK(piece.columns.end <= stride && rows_ * stride <= out.size(), piece.columns.end, stride, out.size());
  std::vector<std::byte> memory;
  const auto decoded = net::MatrixCodec(piece.codec, kernels_)
                           .decode(contiguous(piece.bytes, memory),
                                   {.data = out.data() + piece.columns.begin,
                                    .shape = {.rows = rows_, .columns = width_of(piece.columns)},
                                    .stride = stride});
  CHECK(decoded.ok(), decoded.error().message());
}

ColumnPiece PieceCodec::encode(net::Codec codec, std::span<const float> matrix, std::size_t stride,
                               host::Range columns) const {
  ColumnPiece piece{.columns = columns, .codec = codec, .bytes = {}};
  const net::MatrixShape shape{.rows = rows_, .columns = width_of(columns)};
  if (shape.columns == 0) return piece;
  auto bytes = std::make_shared<AlignedArray<std::byte>>(net::encoded_bytes(codec, shape));
  net::MatrixCodec(codec, kernels_)
      .encode({.data = matrix.data() + columns.begin, .shape = shape, .stride = stride}, bytes->span());
  const std::span<const std::byte> view = std::as_const(*bytes).span();
  piece.bytes.emplace_back(std::move(bytes), view);
  return piece;
}

}  // namespace gossamer::engine
