// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network/network_pieces.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace gossamer::sparse {
namespace {

std::size_t size_of(const host::Range& range) { return range.end - range.begin; }

// The part of the range that is no padding.
host::Range within(const host::Range& range, std::size_t width) {
  return {std::min(range.begin, width), std::min(range.end, width)};
}

// The number of second moments of so many columns, which begin with a moment block; the last block may be
// short.
std::size_t moment_blocks(std::size_t columns) {
  return (columns + kernels::kMomentBlock - 1) / kernels::kMomentBlock;
}

// Columns of a row of the piece, padding in them.
std::size_t columns_of_row(const NetworkShape& shape, const NetworkPiece& piece) {
  if (piece.layer == 0) return size_of(within(piece.range, shape.hidden));
  const std::size_t below =
      piece.layer == 1 ? shape.hidden : shape.dense[std::min(piece.layer - 2, shape.dense.size() - 1)];
  return row_stride(below);
}

Moments kind_of(const NetworkShape& shape, const TableMoments& moments, const NetworkPiece& piece) {
  if (piece.layer == 0) return moments.embedding;
  return piece.layer <= shape.dense.size() ? Moments::kElement : moments.output;
}

// The largest number of a run of a row, which may lie at any address. Without their signs, floats are in the
// order of their bits, and NaNs come last.
template <class T, T kMask>
T largest(std::span<const std::byte> run) {
  T most = 0;
  for (std::size_t at = 0; at < run.size(); at += sizeof(T)) {
    T value = 0;
    std::memcpy(&value, run.data() + at, sizeof(T));
    most = std::max(most, static_cast<T>(value & kMask));
  }
  return most;
}

bool within(std::span<const std::byte> floats, float most) {
  return largest<std::uint32_t, 0x7fffffff>(floats) <= std::bit_cast<std::uint32_t>(most);
}

// First moments of a block. The upper half of a float is its value in bf16, rounded towards 0.
bool halves_within(std::span<const std::byte> halves, float most) {
  return largest<std::uint16_t, 0x7fff>(halves) <= std::bit_cast<std::uint32_t>(most) >> 16;
}

// Squares are not negative. An infinite one stops its weight, and harms nothing.
bool squares(std::span<const std::byte> floats) {
  return largest<std::uint32_t, 0xffffffff>(floats) <=
         std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity());
}

float float_at(std::span<const std::byte> floats, std::size_t i) {
  float value = 0;
  std::memcpy(&value, floats.data() + i * sizeof(float), sizeof(float));
  return value;
}

float half_at(std::span<const std::byte> halves, std::size_t i) {
  std::uint16_t upper = 0;
  std::memcpy(&upper, halves.data() + i * sizeof(upper), sizeof(upper));
  return std::bit_cast<float>(std::uint32_t{upper} << 16);
}

// Takes the front of a row.
std::span<const std::byte> take(std::span<const std::byte>& row, std::size_t bytes) {
  const auto front = row.first(bytes);
  row = row.subspan(bytes);
  return front;
}

}  // namespace

std::size_t piece_rows(const NetworkShape& shape, const NetworkPiece& piece) {
  if (piece.layer == 0) return size_of(within(piece.range, shape.hidden)) == 0 ? 0 : shape.features;
  if (piece.layer <= shape.dense.size()) return size_of(within(piece.range, shape.dense[piece.layer - 1]));
  CHECK(piece.layer == shape.dense.size() + 1, piece.layer, shape.dense.size());
  return size_of(piece.range);
}

std::uint64_t piece_row_bytes(const NetworkShape& shape, const TableMoments& moments,
                              const NetworkPiece& piece) {
  const std::uint64_t columns = columns_of_row(shape, piece);
  const std::uint64_t kept = kind_of(shape, moments, piece) == Moments::kBlock
                                 ? columns * sizeof(kernels::Bf16) + moment_blocks(columns) * sizeof(float)
                                 : 2 * columns * sizeof(float);
  const std::uint64_t bias = piece.layer == 0 ? 0 : 3 * sizeof(float);
  return columns * sizeof(float) + kept + sizeof(std::uint32_t) + bias;
}

std::string_view name(RowFault fault) {
  switch (fault) {
    case RowFault::kWeight: return "a weight";
    case RowFault::kFirstMoment: return "a first moment";
    case RowFault::kSecondMoment: return "a second moment";
    case RowFault::kMoments: return "a first moment beside a second one";
    case RowFault::kStep: return "the step of an update";
  }
  return "";
}

PieceRowCheck::PieceRowCheck(const NetworkShape& shape, const TableMoments& moments,
                             const OptimizerOptions& optimizer, const NetworkPiece& piece,
                             const Limits& limits)
    : limits_(limits),
      kind_(kind_of(shape, moments, piece)),
      columns_(columns_of_row(shape, piece)),
      biased_(piece.layer > 0),
      bound_(optimizer, kind_, limits.steps),
      bias_bound_(optimizer, Moments::kElement, limits.steps) {}

// The order of PieceRows: weights, two moments and the last step; a bias and its moments.
std::optional<RowFault> PieceRowCheck::fault(std::span<const std::byte> row) const {
  const bool block = kind_ == Moments::kBlock;
  const auto weights = take(row, columns_ * sizeof(float));
  const auto first = take(row, columns_ * (block ? sizeof(kernels::Bf16) : sizeof(float)));
  const auto second = take(row, (block ? moment_blocks(columns_) : columns_) * sizeof(float));
  const auto last = largest<std::uint32_t, 0xffffffff>(take(row, sizeof(std::uint32_t)));
  if (!within(weights, limits_.weights)) return RowFault::kWeight;
  if (!(block ? halves_within(first, limits_.moments) : within(first, limits_.moments)))
    return RowFault::kFirstMoment;
  if (!squares(second)) return RowFault::kSecondMoment;
  bool good = true;
  for (std::size_t i = 0; i < columns_; ++i) {
    const float m = block ? half_at(first, i) : float_at(first, i);
    good = bound_.possible(m, float_at(second, block ? i / kernels::kMomentBlock : i)) && good;
  }
  if (!good) return RowFault::kMoments;
  if (last == 0 || last > limits_.steps) return RowFault::kStep;
  if (!biased_) return std::nullopt;
  if (!within(take(row, sizeof(float)), limits_.weights)) return RowFault::kWeight;
  if (!within(row.first(sizeof(float)), limits_.moments)) return RowFault::kFirstMoment;
  if (!squares(row.subspan(sizeof(float)))) return RowFault::kSecondMoment;
  if (!bias_bound_.possible(float_at(row, 0), float_at(row, 1))) return RowFault::kMoments;
  return std::nullopt;
}

PieceRows::PieceRows(Network& network, const NetworkPiece& piece) : rows_(piece_rows(network.shape, piece)) {
  if (rows_ == 0) return;
  if (piece.layer == 0) {
    const host::Range columns = within(piece.range, network.shape.hidden);
    const std::size_t first = network.part.columns.begin;
    add_table(network.embedding, 0, {columns.begin - first, columns.end - first});
  } else if (piece.layer <= network.shape.dense.size()) {
    DenseLayer& layer = network.dense[piece.layer - 1];
    const std::size_t unit = piece.range.begin - network.part.units[piece.layer - 1].begin;
    add_table(layer.weights, unit, {0, layer.weights.stride()});
    add_bias(layer.bias_scalar(unit));
  } else {
    add_table(network.output, piece.range.begin, {0, network.output.stride()});
    add_bias(network.bias_scalar(static_cast<std::uint32_t>(piece.range.begin)));
  }
}

template <class T>
void PieceRows::add(T* first, std::size_t count, std::size_t stride) {
  runs_[count_++] = {reinterpret_cast<std::byte*>(first), count * sizeof(T), stride * sizeof(T)};
  row_bytes_ += count * sizeof(T);
}

void PieceRows::add_table(RowTable& table, std::size_t row, const host::Range& columns) {
  CHECK(table.moments() != Moments::kNone);
  CHECK(row + rows_ <= table.rows() && columns.end <= table.stride(), row, rows_, columns.end);
  const std::size_t begin = columns.begin;
  const std::size_t count = size_of(columns);
  const std::size_t stride = table.stride();
  add(table.weights(row) + begin, count, stride);
  if (table.moments() == Moments::kBlock) {
    add(table.block_moment1(row) + begin, count, stride);
    add(table.block_moment2(row) + begin / kernels::kMomentBlock, moment_blocks(count),
        moment_blocks(stride));
  } else {
    add(table.moment1(row) + begin, count, stride);
    add(table.moment2(row) + begin, count, stride);
  }
  last_steps_ = &table.last_step(row);
  add(last_steps_, 1, 1);
}

void PieceRows::add_bias(const AdamScalar& bias) {
  for (float* const one : {bias.w, bias.m, bias.v}) add(one, 1, 1);
}

void PieceRows::save(std::size_t row, std::span<std::byte> bytes) const {
  CHECK(row < rows_ && bytes.size() == row_bytes_, row, rows_, bytes.size(), row_bytes_);
  std::byte* to = bytes.data();
  for (std::size_t i = 0; i < count_; ++i) {
    std::memcpy(to, runs_[i].first + row * runs_[i].stride, runs_[i].bytes);
    to += runs_[i].bytes;
  }
}

void PieceRows::load(std::size_t row, std::span<const std::byte> bytes) {
  CHECK(row < rows_ && bytes.size() == row_bytes_, row, rows_, bytes.size(), row_bytes_);
  const std::byte* from = bytes.data();
  for (std::size_t i = 0; i < count_; ++i) {
    std::memcpy(runs_[i].first + row * runs_[i].stride, from, runs_[i].bytes);
    from += runs_[i].bytes;
  }
}

// Where rows follow each other without gaps on both sides, copies all of them at once.
void PieceRows::copy(const PieceRows& from) {
  CHECK(rows_ == from.rows_ && count_ == from.count_, rows_, from.rows_, count_, from.count_);
  for (std::size_t i = 0; i < count_; ++i) {
    const Run& target = runs_[i];
    const Run& source = from.runs_[i];
    CHECK(target.bytes == source.bytes, i, target.bytes, source.bytes);
    if (target.bytes == target.stride && source.bytes == source.stride) {
      std::memcpy(target.first, source.first, rows_ * target.bytes);
      continue;
    }
    for (std::size_t row = 0; row < rows_; ++row)
      std::memcpy(target.first + row * target.stride, source.first + row * source.stride, target.bytes);
  }
}

void save_piece(Network& from, const NetworkPiece& piece, std::span<std::byte> bytes) {
  const PieceRows rows(from, piece);
  CHECK(bytes.size() == rows.size() * rows.row_bytes(), bytes.size(), rows.size(), rows.row_bytes());
  for (std::size_t row = 0; row < rows.size(); ++row)
    rows.save(row, bytes.subspan(row * rows.row_bytes(), rows.row_bytes()));
}

void load_piece(Network& to, const NetworkPiece& piece, std::span<const std::byte> bytes) {
  PieceRows rows(to, piece);
  CHECK(bytes.size() == rows.size() * rows.row_bytes(), bytes.size(), rows.size(), rows.row_bytes());
  for (std::size_t row = 0; row < rows.size(); ++row)
    rows.load(row, bytes.subspan(row * rows.row_bytes(), rows.row_bytes()));
}

void copy_piece(Network& to, Network& from, const NetworkPiece& piece) {
  PieceRows(to, piece).copy(PieceRows(from, piece));
}

void load_updated_rows(Network& to, const NetworkPiece& piece, std::span<const std::byte> bytes) {
  PieceRows rows(to, piece);
  CHECK(bytes.size() == rows.size() * rows.row_bytes(), bytes.size(), rows.size(), rows.row_bytes());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto saved = bytes.subspan(row * rows.row_bytes(), rows.row_bytes());
    const bool updated = std::ranges::any_of(saved, [](std::byte byte) { return byte != std::byte{}; });
    if (updated) rows.load(row, saved);
  }
}

}  // namespace gossamer::sparse
