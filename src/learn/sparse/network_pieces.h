// SPDX-License-Identifier: Apache-2.0
//
// Pieces of a network that move between nodes' parts of it: columns of the embedding, units of a dense layer,
// output rows; each with its moments, last steps and biases. A piece has the same bytes whatever part it lies
// in: docs/protocols/sparse-step.md.
//
// Thread rule: the caller owns the networks; nothing is shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "host/api/compute.h"
#include "learn/sparse/network.h"

namespace gossamer::sparse {

// Of the whole network, whoever holds it.
struct NetworkPiece {
  // A hidden layer: `range` are columns (of layer 0) or units (of others), multiples of kColumnBlock or
  // kUnitBlock. The number of hidden layers: output rows.
  std::size_t layer = 0;
  host::Range range;
};

// Rows of the piece: features, units or output rows.
[[nodiscard]] std::size_t piece_rows(const NetworkShape& shape, const NetworkPiece& piece);
// Bytes of each.
[[nodiscard]] std::uint64_t piece_row_bytes(const NetworkShape& shape, const TableMoments& moments,
                                            const NetworkPiece& piece);
[[nodiscard]] inline std::uint64_t piece_bytes(const NetworkShape& shape, const TableMoments& moments,
                                               const NetworkPiece& piece) {
  return piece_rows(shape, piece) * piece_row_bytes(shape, moments, piece);
}

// The rest requires that the network holds the piece, with moments. `row` is one of piece_rows(), `bytes` has
// piece_row_bytes().
void save_row(Network& from, const NetworkPiece& piece, std::size_t row, std::span<std::byte> bytes);
void load_row(Network& to, const NetworkPiece& piece, std::size_t row, std::span<const std::byte> bytes);
// 1 + the step that last updated the row; 0 = never.
[[nodiscard]] std::uint32_t last_step_of(Network& network, const NetworkPiece& piece, std::size_t row);

// All rows one after the other: piece_bytes().
void save_piece(Network& from, const NetworkPiece& piece, std::span<std::byte> bytes);
void load_piece(Network& to, const NetworkPiece& piece, std::span<const std::byte> bytes);
// Requires that both hold the piece.
void copy_piece(Network& to, Network& from, const NetworkPiece& piece);
// Leaves out rows of zeros, which no row is that was ever updated.
void load_updated_rows(Network& to, const NetworkPiece& piece, std::span<const std::byte> bytes);

}  // namespace gossamer::sparse
