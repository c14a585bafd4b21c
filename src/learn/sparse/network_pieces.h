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

#include "base/function_ref.h"
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

// All memory of the piece, in the same order everywhere. Requires that the network holds it, with moments.
void visit_piece(Network& network, const NetworkPiece& piece, FunctionRef<void(std::span<std::byte>)> visit);
[[nodiscard]] std::uint64_t piece_bytes(const NetworkShape& shape, const TableMoments& moments,
                                        const NetworkPiece& piece);
// `bytes` has piece_bytes().
void save_piece(Network& from, const NetworkPiece& piece, std::span<std::byte> bytes);
void load_piece(Network& to, const NetworkPiece& piece, std::span<const std::byte> bytes);

}  // namespace gossamer::sparse
