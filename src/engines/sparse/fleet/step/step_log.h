// SPDX-License-Identifier: Apache-2.0
//
// StepLog: what a member keeps of the steps that it has applied. Members that must compute a lost part anew
// need it (docs/protocols/sparse-step.md, "Nothing is lost"). From h and the partition sums lost output rows
// learn again what they had learnt. From the given parts of dh lost columns do.
//
// Matrices are [rows][columns of the piece]. They are kept in the bytes of net/codec in which they travelled.
// Thread rule: the thread that computes.
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
#include "learn/sparse/negatives/found_rows.h"
#include "learn/sparse/network/batch_state.h"
#include "net/codec/codec.h"

namespace gossamer::sparse_engine {

struct ColumnPiece {
  host::Range columns;
  net::Codec codec = net::Codec::kF32;
  Slices bytes;
};

struct LoggedStep {
  bool fresh = true;  // begun when all steps before it were applied (step_order.h)
  // By hidden layer: pieces that together are all of h.
  std::vector<std::vector<ColumnPiece>> hidden;
  std::vector<sparse::PartitionShare> sums;  // by sample, over all nodes
  std::optional<sparse::FoundRows> found;    // by all nodes' hash tables; nothing without them
  // By hidden layer: what this member's part added to dh, in all columns. Pieces for the parts that this
  // member has computed anew since come behind.
  std::vector<std::vector<ColumnPiece>> gradients;
};

using StepLog = std::map<StepNumber, LoggedStep>;

// Turns pieces into numbers and back. Requires pieces of the right size.
class PieceCodec {
 public:
  PieceCodec(const kernels::Kernels& kernels, std::size_t rows) : kernels_(kernels), rows_(rows) {}

  // The same bytes in one piece of memory.
  [[nodiscard]] Slices contiguous(Slices bytes) const;

  // Adds the piece to `out`, as far as it has these columns: out[row][column - columns.begin] += piece.
  void add(const ColumnPiece& piece, host::Range columns, std::span<float> out) const;
  // Overwrites the piece's columns in a matrix of `stride` that has all columns of the layer.
  void copy(const ColumnPiece& piece, std::size_t stride, std::span<float> out) const;
  // Encodes columns of a matrix of `stride` that has all columns of the layer.
  [[nodiscard]] ColumnPiece encode(net::Codec codec, std::span<const float> matrix, std::size_t stride,
                                   host::Range columns) const;

 private:
  const kernels::Kernels& kernels_;
  const std::size_t rows_;
  BlockPool blocks_;
};

}  // namespace gossamer::sparse_engine
