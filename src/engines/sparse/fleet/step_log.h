// SPDX-License-Identifier: Apache-2.0
//
// StepLog: what a member keeps of the steps that it has applied, for those that will have to compute a lost
// part of the network anew (docs/protocols/sparse-step.md, "Nothing is lost"): with h and the partition sums
// lost output rows learn what they had learnt; with the parts of dh that were given, lost columns do.
//
// Matrices are [rows][columns of the piece], as net/codec makes bytes of them: kept as they travelled. Thread
// rule: the thread that computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/block_pool.h"
#include "base/ids.h"
#include "base/slice.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/sparse/batch_state.h"
#include "learn/sparse/found_rows.h"
#include "net/codec/codec.h"

namespace gossamer::engine {

struct ColumnPiece {
  host::Range columns;
  net::Codec codec = net::Codec::kF32;
  Slices bytes;
};

struct LoggedStep {
  bool fresh = true;  // begun when all steps before it were applied (step_order.h)
  // By hidden layer: pieces that are all of h together.
  std::vector<std::vector<ColumnPiece>> hidden;
  std::vector<sparse::PartitionShare> sums;  // by sample, of all nodes
  std::optional<sparse::FoundRows> found;    // by all nodes; nothing without hash tables
  // By hidden layer: what this member's part added to dh, of all columns; what a part added that it has
  // computed anew since comes on top.
  std::vector<std::vector<ColumnPiece>> gradients;
};

using StepLog = std::map<StepNumber, LoggedStep>;

// How pieces become numbers and back. Requires pieces of the right size.
class PieceCodec {
 public:
  PieceCodec(const kernels::Kernels& kernels, std::size_t rows) : kernels_(kernels), rows_(rows) {}

  // The same bytes in one piece of memory.
  [[nodiscard]] Slices contiguous(Slices bytes) const;

  // out[row][column - columns.begin] += the piece, as far as it has these columns.
  void add(const ColumnPiece& piece, host::Range columns, std::span<float> out) const;
  // Overwrites the piece's columns of a matrix of `stride`, which has all columns of the layer.
  void copy(const ColumnPiece& piece, std::size_t stride, std::span<float> out) const;
  // Columns of a matrix of `stride`, which has all of the layer.
  [[nodiscard]] ColumnPiece encode(net::Codec codec, std::span<const float> matrix, std::size_t stride,
                                   host::Range columns) const;

 private:
  const kernels::Kernels& kernels_;
  const std::size_t rows_;
  BlockPool blocks_;
};

}  // namespace gossamer::engine
