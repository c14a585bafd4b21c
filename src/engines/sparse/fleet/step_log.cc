// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step_log.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/aligned_array.h"
#include "base/check.h"

namespace gossamer::engine {
namespace {

std::vector<float> values_of(const ColumnPiece& piece, std::size_t rows) {
  const std::size_t width = piece.columns.end - piece.columns.begin;
  std::vector<float> values(rows * width);
  CHECK(total_bytes(piece.bytes) == values.size() * sizeof(float), total_bytes(piece.bytes), values.size());
  copy_front(piece.bytes, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

void add_columns(const ColumnPiece& piece, std::size_t rows, host::Range columns, std::span<float> out) {
  const std::size_t begin = std::max(piece.columns.begin, columns.begin);
  const std::size_t end = std::min(piece.columns.end, columns.end);
  if (begin >= end) return;
  const std::vector<float> values = values_of(piece, rows);
  const std::size_t from_width = piece.columns.end - piece.columns.begin;
  const std::size_t to_width = columns.end - columns.begin;
  CHECK(out.size() == rows * to_width, out.size(), rows, to_width);
  for (std::size_t row = 0; row < rows; ++row) {
    const float* const from = values.data() + row * from_width + (begin - piece.columns.begin);
    float* const to = out.data() + row * to_width + (begin - columns.begin);
    for (std::size_t i = 0; i < end - begin; ++i) to[i] += from[i];
  }
}

void copy_columns(const ColumnPiece& piece, std::size_t rows, std::size_t stride, std::span<float> out) {
  const std::size_t width = piece.columns.end - piece.columns.begin;
  if (width == 0) return;
  const std::vector<float> values = values_of(piece, rows);
  CHECK(piece.columns.end <= stride && rows * stride <= out.size(), piece.columns.end, stride, out.size());
  for (std::size_t row = 0; row < rows; ++row) {
    std::copy_n(values.data() + row * width, width, out.data() + row * stride + piece.columns.begin);
  }
}

ColumnPiece piece_of(std::span<const float> matrix, std::size_t rows, std::size_t stride,
                     host::Range columns) {
  const std::size_t width = columns.end - columns.begin;
  if (width == 0) return {.columns = columns, .bytes = {}};
  auto values = std::make_shared<AlignedArray<float>>(rows * width);
  for (std::size_t row = 0; row < rows; ++row) {
    std::copy_n(matrix.data() + row * stride + columns.begin, width, values->data() + row * width);
  }
  const auto bytes = std::as_bytes(std::as_const(*values).span());
  return {.columns = columns, .bytes = {Slice(std::move(values), bytes)}};
}

}  // namespace gossamer::engine
