// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network_pieces.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace gossamer::sparse {
namespace {

using Visit = FunctionRef<void(std::span<std::byte>)>;

struct Block {
  host::Range rows;
  host::Range columns;
};

template <class T>
void visit_run(T* begin, std::size_t count, Visit visit) {
  if (count > 0) visit(std::as_writable_bytes(std::span(begin, count)));
}

std::size_t size_of(const host::Range& range) { return range.end - range.begin; }

// Of a table, what is at these places of it.
void visit_block(RowTable& table, const Block& block, Visit visit) {
  CHECK(table.moments() == Moments::kElement);
  CHECK(block.rows.end <= table.rows() && block.columns.end <= table.stride());
  const std::size_t begin = block.columns.begin;
  const std::size_t columns = size_of(block.columns);
  for (std::size_t row = block.rows.begin; row < block.rows.end; ++row) {
    visit_run(table.weights(row) + begin, columns, visit);
    visit_run(table.moment1(row) + begin, columns, visit);
    visit_run(table.moment2(row) + begin, columns, visit);
    visit_run(&table.last_step(row), 1, visit);
  }
}

void visit_biases(AlignedArray<float>& bias, AlignedArray<float>& moment1, AlignedArray<float>& moment2,
                  const host::Range& range, Visit visit) {
  for (AlignedArray<float>* const one : {&bias, &moment1, &moment2})
    visit_run(one->data() + range.begin, size_of(range), visit);
}

// What of the piece is no padding, as places of a part that begins at `first`.
host::Range within(const host::Range& range, std::size_t width, std::size_t first) {
  const std::size_t begin = std::min(range.begin, width);
  const std::size_t end = std::min(range.end, width);
  if (begin == end) return {};
  return {begin - first, end - first};
}

}  // namespace

void visit_piece(Network& network, const NetworkPiece& piece, Visit visit) {
  const std::size_t dense = network.shape.dense.size();
  if (piece.layer == 0) {
    const host::Range columns = within(piece.range, network.shape.hidden, network.part.columns.begin);
    if (size_of(columns) == 0) return;
    return visit_block(network.embedding, {.rows = {0, network.embedding.rows()}, .columns = columns}, visit);
  }
  if (piece.layer <= dense) {
    const std::size_t i = piece.layer - 1;
    DenseLayer& layer = network.dense[i];
    const host::Range units = within(piece.range, network.shape.dense[i], network.part.units[i].begin);
    visit_block(layer.weights, {.rows = units, .columns = {0, layer.weights.stride()}}, visit);
    return visit_biases(layer.bias, layer.bias_moment1, layer.bias_moment2, units, visit);
  }
  CHECK(piece.layer == dense + 1, piece.layer, dense);
  visit_block(network.output, {.rows = piece.range, .columns = {0, network.output.stride()}}, visit);
  visit_biases(network.bias, network.bias_moment1, network.bias_moment2, piece.range, visit);
}

std::uint64_t piece_bytes(const NetworkShape& shape, const TableMoments& moments, const NetworkPiece& piece) {
  CHECK(moments.embedding == Moments::kElement && moments.output == Moments::kElement);
  const auto bytes = [](std::uint64_t rows, std::uint64_t columns) {
    return rows * (3 * columns * sizeof(float) + sizeof(std::uint32_t));
  };
  if (piece.layer == 0) {
    const std::uint64_t columns = size_of(within(piece.range, shape.hidden, 0));
    return columns == 0 ? 0 : bytes(shape.features, columns);
  }
  const bool output = piece.layer > shape.dense.size();
  const std::uint64_t rows =
      output ? size_of(piece.range) : size_of(within(piece.range, shape.dense[piece.layer - 1], 0));
  const std::size_t below = piece.layer == 1 ? shape.hidden : shape.dense[piece.layer - 2];
  return bytes(rows, row_stride(below)) + rows * 3 * sizeof(float);
}

void save_piece(Network& from, const NetworkPiece& piece, std::span<std::byte> bytes) {
  visit_piece(from, piece, [&](std::span<std::byte> run) {
    CHECK(run.size() <= bytes.size(), run.size(), bytes.size());
    std::memcpy(bytes.data(), run.data(), run.size());
    bytes = bytes.subspan(run.size());
  });
  CHECK(bytes.empty(), bytes.size());
}

void load_piece(Network& to, const NetworkPiece& piece, std::span<const std::byte> bytes) {
  visit_piece(to, piece, [&](std::span<std::byte> run) {
    CHECK(run.size() <= bytes.size(), run.size(), bytes.size());
    std::memcpy(run.data(), bytes.data(), run.size());
    bytes = bytes.subspan(run.size());
  });
  CHECK(bytes.empty(), bytes.size());
}

}  // namespace gossamer::sparse
