// SPDX-License-Identifier: Apache-2.0
//
// StepLog: what a member keeps of the steps that it has applied, for those that will have to compute a lost
// part of the network anew (docs/protocols/sparse-step.md, "Nothing is lost"): with h and the partition sums
// lost output rows learn what they had learnt; with the parts of dh that were given, lost columns do.
//
// Matrices are [rows][columns of the piece] in f32, little endian. Thread rule: the thread that computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/slice.h"
#include "host/api/compute.h"
#include "learn/sparse/batch_state.h"

namespace gossamer::engine {

struct ColumnPiece {
  host::Range columns;
  Slices bytes;
};

struct LoggedStep {
  // By hidden layer: pieces that are all of h together.
  std::vector<std::vector<ColumnPiece>> hidden;
  std::vector<sparse::PartitionShare> sums;  // by sample, of all nodes
  // By hidden layer: what this member's part added to dh, of all columns; what a part added that it has
  // computed anew since comes on top.
  std::vector<std::vector<ColumnPiece>> gradients;
};

using StepLog = std::map<StepNumber, LoggedStep>;

// out[row][0..columns) += the piece's columns `columns`, as far as it has them.
void add_columns(const ColumnPiece& piece, std::size_t rows, host::Range columns, std::span<float> out);
// The same to a matrix of `stride`, whose columns are those of the layer, without adding.
void copy_columns(const ColumnPiece& piece, std::size_t rows, std::size_t stride, std::span<float> out);
// Columns of a matrix of `stride` as a piece of its own.
[[nodiscard]] ColumnPiece piece_of(std::span<const float> matrix, std::size_t rows, std::size_t stride,
                                   host::Range columns);

}  // namespace gossamer::engine
