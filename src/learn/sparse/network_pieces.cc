// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network_pieces.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/function_ref.h"

namespace gossamer::sparse {
namespace {

using Visit = FunctionRef<void(std::span<std::byte>)>;

std::size_t size_of(const host::Range& range) { return range.end - range.begin; }

// What of the range is no padding.
host::Range within(const host::Range& range, std::size_t width) {
  return {std::min(range.begin, width), std::min(range.end, width)};
}

// Where a row of a piece lies in a part of the network.
struct Place {
  RowTable* table;
  std::size_t row;
  host::Range columns;  // of the table
  DenseLayer* layer = nullptr;
};

Place place_of(Network& network, const NetworkPiece& piece, std::size_t row) {
  const std::size_t dense = network.shape.dense.size();
  if (piece.layer == 0) {
    const host::Range columns = within(piece.range, network.shape.hidden);
    const std::size_t first = network.part.columns.begin;
    return {.table = &network.embedding, .row = row, .columns = {columns.begin - first, columns.end - first}};
  }
  if (piece.layer <= dense) {
    DenseLayer& layer = network.dense[piece.layer - 1];
    const std::size_t unit = piece.range.begin + row - network.part.units[piece.layer - 1].begin;
    return {.table = &layer.weights, .row = unit, .columns = {0, layer.weights.stride()}, .layer = &layer};
  }
  return {.table = &network.output, .row = piece.range.begin + row, .columns = {0, network.output.stride()}};
}

// Second moments of so many columns, which begin with a block; the last block may be short.
std::size_t moment_blocks(std::size_t columns) {
  return (columns + kernels::kMomentBlock - 1) / kernels::kMomentBlock;
}

template <class T>
void visit_run(T* begin, std::size_t count, Visit visit) {
  visit(std::as_writable_bytes(std::span(begin, count)));
}

void visit_row(Network& network, const NetworkPiece& piece, std::size_t row, Visit visit) {
  const Place place = place_of(network, piece, row);
  RowTable& table = *place.table;
  CHECK(table.moments() != Moments::kNone);
  CHECK(place.row < table.rows() && place.columns.end <= table.stride(), place.row, place.columns.end);
  const std::size_t begin = place.columns.begin;
  const std::size_t columns = size_of(place.columns);
  visit_run(table.weights(place.row) + begin, columns, visit);
  if (table.moments() == Moments::kBlock) {
    visit_run(table.block_moment1(place.row) + begin, columns, visit);
    visit_run(table.block_moment2(place.row) + begin / kernels::kMomentBlock, moment_blocks(columns), visit);
  } else {
    visit_run(table.moment1(place.row) + begin, columns, visit);
    visit_run(table.moment2(place.row) + begin, columns, visit);
  }
  visit(std::as_writable_bytes(std::span(&table.last_step(place.row), 1)));
  if (piece.layer == 0) return;
  const AdamScalar bias = place.layer != nullptr ? place.layer->bias_scalar(place.row)
                                                 : network.bias_scalar(static_cast<std::uint32_t>(place.row));
  for (float* const one : {bias.w, bias.m, bias.v}) visit_run(one, 1, visit);
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
  const auto bytes = [](Moments kind, std::uint64_t columns) {
    const std::uint64_t kept = kind == Moments::kBlock
                                   ? columns * sizeof(kernels::Bf16) + moment_blocks(columns) * sizeof(float)
                                   : 2 * columns * sizeof(float);
    return columns * sizeof(float) + kept + sizeof(std::uint32_t);
  };
  if (piece.layer == 0) return bytes(moments.embedding, size_of(within(piece.range, shape.hidden)));
  const std::size_t below =
      piece.layer == 1 ? shape.hidden : shape.dense[std::min(piece.layer - 2, shape.dense.size() - 1)];
  const Moments kind = piece.layer <= shape.dense.size() ? Moments::kElement : moments.output;
  return bytes(kind, row_stride(below)) + 3 * sizeof(float);
}

void save_row(Network& from, const NetworkPiece& piece, std::size_t row, std::span<std::byte> bytes) {
  visit_row(from, piece, row, [&](std::span<std::byte> run) {
    CHECK(run.size() <= bytes.size(), run.size(), bytes.size());
    std::memcpy(bytes.data(), run.data(), run.size());
    bytes = bytes.subspan(run.size());
  });
  CHECK(bytes.empty(), bytes.size());
}

void load_row(Network& to, const NetworkPiece& piece, std::size_t row, std::span<const std::byte> bytes) {
  visit_row(to, piece, row, [&](std::span<std::byte> run) {
    CHECK(run.size() <= bytes.size(), run.size(), bytes.size());
    std::memcpy(run.data(), bytes.data(), run.size());
    bytes = bytes.subspan(run.size());
  });
  CHECK(bytes.empty(), bytes.size());
}

std::uint32_t last_step_of(Network& network, const NetworkPiece& piece, std::size_t row) {
  const Place place = place_of(network, piece, row);
  return place.table->last_step(place.row);
}

void save_piece(Network& from, const NetworkPiece& piece, std::span<std::byte> bytes) {
  const std::size_t rows = piece_rows(from.shape, piece);
  CHECK(rows == 0 ? bytes.empty() : bytes.size() % rows == 0, bytes.size(), rows);
  for (std::size_t row = 0; row < rows; ++row)
    save_row(from, piece, row, bytes.subspan(row * (bytes.size() / rows), bytes.size() / rows));
}

void load_piece(Network& to, const NetworkPiece& piece, std::span<const std::byte> bytes) {
  const std::size_t rows = piece_rows(to.shape, piece);
  CHECK(rows == 0 ? bytes.empty() : bytes.size() % rows == 0, bytes.size(), rows);
  for (std::size_t row = 0; row < rows; ++row)
    load_row(to, piece, row, bytes.subspan(row * (bytes.size() / rows), bytes.size() / rows));
}

void copy_piece(Network& to, Network& from, const NetworkPiece& piece) {
  const TableMoments moments{.embedding = from.embedding.moments(), .output = from.output.moments()};
  std::vector<std::byte> bytes(piece_row_bytes(from.shape, moments, piece));
  for (std::size_t row = 0; row < piece_rows(from.shape, piece); ++row) {
    save_row(from, piece, row, bytes);
    load_row(to, piece, row, bytes);
  }
}

void load_updated_rows(Network& to, const NetworkPiece& piece, std::span<const std::byte> bytes) {
  const std::size_t rows = piece_rows(to.shape, piece);
  CHECK(rows == 0 ? bytes.empty() : bytes.size() % rows == 0, bytes.size(), rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto saved = bytes.subspan(row * (bytes.size() / rows), bytes.size() / rows);
    const bool updated = std::ranges::any_of(saved, [](std::byte byte) { return byte != std::byte{}; });
    if (updated) load_row(to, piece, row, saved);
  }
}

}  // namespace gossamer::sparse
