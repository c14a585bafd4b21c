// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/step_log.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"

namespace gossamer::sparse_engine {
namespace {

std::size_t width_of(const host::Range& columns) { return columns.end - columns.begin; }

}  // namespace

Slices PieceCodec::contiguous(Slices bytes) const {
  if (bytes.size() <= 1) return bytes;
  const std::uint64_t size = total_bytes(bytes);
  auto memory = blocks_.take(size);
  const std::span<std::byte> all(memory.get(), size);
  copy_front(bytes, all);
  return {Slice(std::move(memory), all)};
}

void PieceCodec::add(const ColumnPiece& piece, host::Range columns, std::span<float> out) const {
  const std::size_t begin = std::max(piece.columns.begin, columns.begin);
  const std::size_t end = std::min(piece.columns.end, columns.end);
  if (begin >= end) return;
  const std::size_t to_width = width_of(columns);
  CHECK(out.size() == rows_ * to_width, out.size(), rows_, to_width);
  const Slices together = contiguous(piece.bytes);
  const std::span<const std::byte> bytes = together.front().bytes();
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
  const Slices together = contiguous(piece.bytes);
  const auto decoded =
      net::MatrixCodec(piece.codec, kernels_)
          .decode(together.front().bytes(), {.data = out.data() + piece.columns.begin,
                                             .shape = {.rows = rows_, .columns = width_of(piece.columns)},
                                             .stride = stride});
  CHECK(decoded.ok(), decoded.error().message());
}

ColumnPiece PieceCodec::encode(net::Codec codec, std::span<const float> matrix, std::size_t stride,
                               host::Range columns) const {
  ColumnPiece piece{.columns = columns, .codec = codec, .bytes = {}};
  const net::MatrixShape shape{.rows = rows_, .columns = width_of(columns)};
  if (shape.columns == 0) return piece;
  const std::size_t size = net::encoded_bytes(codec, shape);
  auto memory = blocks_.take(size);
  const std::span<std::byte> bytes(memory.get(), size);
  net::MatrixCodec(codec, kernels_)
      .encode({.data = matrix.data() + columns.begin, .shape = shape, .stride = stride}, bytes);
  piece.bytes.emplace_back(std::move(memory), bytes);
  return piece;
}

}  // namespace gossamer::sparse_engine
