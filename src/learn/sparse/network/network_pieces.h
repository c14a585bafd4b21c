// SPDX-License-Identifier: Apache-2.0
//
// Pieces of a network that move between nodes' parts of it: columns of the embedding, units of a dense layer,
// or output rows. A piece includes its moments, last steps and biases. It has the same bytes whatever part it
// lies in: docs/protocols/sparse-step.md.
//
// Thread rule: the caller owns the networks; nothing is shared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "host/api/compute.h"
#include "learn/sparse/network/adam.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse {

// Names a piece of the whole network, independent of which node holds it.
struct NetworkPiece {
  // A hidden layer: `range` are columns (of layer 0) or units (of others), multiples of kColumnBlock or
  // kUnitBlock. The number of hidden layers stands for the output rows.
  std::size_t layer = 0;
  host::Range range;
};

// Rows of the piece: features, units or output rows.
[[nodiscard]] std::size_t piece_rows(const NetworkShape& shape, const NetworkPiece& piece);
// Bytes of each row of the piece.
[[nodiscard]] std::uint64_t piece_row_bytes(const NetworkShape& shape, const TableMoments& moments,
                                            const NetworkPiece& piece);
[[nodiscard]] inline std::uint64_t piece_bytes(const NetworkShape& shape, const TableMoments& moments,
                                               const NetworkPiece& piece) {
  return piece_rows(shape, piece) * piece_row_bytes(shape, moments, piece);
}

// What is wrong with a row that no node can have.
enum class RowFault : std::uint8_t {
  kWeight,        // no number, or beyond the bound; a bias, too
  kFirstMoment,   // likewise
  kSecondMoment,  // negative, or no number
  kMoments,       // no gradients give both moments (MomentBound)
  kStep,          // no step has updated it, or one to come
};
// "a weight"
[[nodiscard]] std::string_view name(RowFault fault);

// Whether bytes can be a row of a piece, as another node has it. Its weights and first moments are numbers
// within bounds, its moments belong to each other, and some step has updated it.
class PieceRowCheck {
 public:
  struct Limits {
    float weights;        // the largest; biases, too
    float moments;        // the largest first moment
    std::uint64_t steps;  // a row was updated by a step below
  };
  PieceRowCheck(const NetworkShape& shape, const TableMoments& moments, const OptimizerOptions& optimizer,
                const NetworkPiece& piece, const Limits& limits);
  // Nothing: the row is possible. Requires piece_row_bytes() bytes.
  [[nodiscard]] std::optional<RowFault> fault(std::span<const std::byte> row) const;

 private:
  Limits limits_;
  Moments kind_;
  std::size_t columns_;
  bool biased_;
  MomentBound bound_;
  MomentBound bias_bound_;
};

// The rest requires that the network holds the piece, with moments.

// The rows of a piece where they lie in a network, which it borrows.
class PieceRows {
 public:
  PieceRows(Network& network, const NetworkPiece& piece);

  [[nodiscard]] std::size_t size() const { return rows_; }
  [[nodiscard]] std::size_t row_bytes() const { return row_bytes_; }
  // 1 + the step that last updated the row, below size(); 0 = never.
  [[nodiscard]] std::uint32_t last_step(std::size_t row) const { return last_steps_[row]; }
  // Both: `bytes` has row_bytes().
  void save(std::size_t row, std::span<std::byte> bytes) const;
  void load(std::size_t row, std::span<const std::byte> bytes);
  // Copies all rows from where the same piece lies in another network.
  void copy(const PieceRows& from);

 private:
  // What each row has in one array: a run of bytes.
  struct Run {
    std::byte* first = nullptr;  // of row 0
    std::size_t bytes = 0;
    std::size_t stride = 0;  // bytes from one row to the next
  };

  template <class T>
  void add(T* first, std::size_t count, std::size_t stride);
  void add_table(RowTable& table, std::size_t row, const host::Range& columns);
  void add_bias(const AdamScalar& bias);

  std::size_t rows_ = 0;
  std::size_t row_bytes_ = 0;
  std::uint32_t* last_steps_ = nullptr;
  std::array<Run, 7> runs_;  // weights, two moments and the last step; a bias and its moments
  std::size_t count_ = 0;    // of runs_
};

// Both: all rows one after the other, piece_bytes() in all.
void save_piece(Network& from, const NetworkPiece& piece, std::span<std::byte> bytes);
void load_piece(Network& to, const NetworkPiece& piece, std::span<const std::byte> bytes);
// Requires that both hold the piece.
void copy_piece(Network& to, Network& from, const NetworkPiece& piece);
// As load_piece(), but leaves out rows of zeros: no row that was ever updated is one.
void load_updated_rows(Network& to, const NetworkPiece& piece, std::span<const std::byte> bytes);

}  // namespace gossamer::sparse
