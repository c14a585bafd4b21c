// SPDX-License-Identifier: Apache-2.0
//
// NetworkShape: the widths of a network. NetworkPart: what one node holds of it when no node holds it whole
// (docs/protocols/sparse-step.md):
// - a run of columns of the first hidden layer (of every embedding row);
// - a run of units of each dense layer;
// - shards of the output layer: runs of 2^shift rows with their biases.
//
//   NetworkPart part = whole(shape);  // for a node that is alone
//   part.columns = {0, 64};           // for a node that is not
//   part.rows.drop(3);
//
// Thread rule: plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/sparse/network/row_order.h"

namespace gossamer::sparse {

// Columns and units are held in runs of multiples of these. Weights that share a second moment stay together.
inline constexpr std::size_t kColumnBlock = kernels::kMomentBlock;
inline constexpr std::size_t kUnitBlock = 32;

// The stride of rows of `width` values.
[[nodiscard]] constexpr std::size_t row_stride(std::size_t width) { return (width + 31) / 32 * 32; }

struct NetworkShape {
  std::size_t features = 0;
  std::size_t labels = 0;
  std::size_t hidden = 0;               // width of the first hidden layer: what the embedding becomes
  std::vector<std::size_t> dense = {};  // widths of the hidden layers after it, multiples of 16

  // Width of the last hidden layer: what the output layer sees.
  [[nodiscard]] std::size_t last_hidden() const { return dense.empty() ? hidden : dense.back(); }
};

// The shards of the output rows that are here. Labels are dealt to rows by row_order.h.
class HeldRows {
 public:
  HeldRows() = default;
  // All of `rows` rows, in shards of 2^shift.
  HeldRows(std::size_t rows, unsigned shift)
      : rows_(rows), shift_(shift), held_((rows + (std::size_t{1} << shift) - 1) >> shift, std::uint8_t{1}) {}

  [[nodiscard]] std::size_t shards() const { return held_.size(); }
  // Shards have 2^shift() rows.
  [[nodiscard]] unsigned shift() const { return shift_; }
  // The rows of a shard; the last one may be short.
  [[nodiscard]] host::Range rows_of(std::size_t shard) const {
    const std::size_t begin = shard << shift_;
    return {begin, std::min(rows_, begin + (std::size_t{1} << shift_))};
  }
  [[nodiscard]] bool holds(std::size_t shard) const { return held_[shard] != 0; }
  [[nodiscard]] bool contains(std::uint32_t row) const { return held_[row >> shift_] != 0; }
  void add(std::size_t shard) { held_[shard] = 1; }
  void drop(std::size_t shard) { held_[shard] = 0; }

 private:
  std::size_t rows_ = 0;
  unsigned shift_ = 0;
  std::vector<std::uint8_t> held_;  // by shard
};

struct NetworkPart {
  host::Range columns;             // in 0..row_stride(hidden), multiples of kColumnBlock
  std::vector<host::Range> units;  // of each dense layer, in 0..row_stride(width), multiples of kUnitBlock
  HeldRows rows;
};

// Everything, the output rows in shards of 2^shard_shift.
[[nodiscard]] NetworkPart whole(const NetworkShape& shape, unsigned shard_shift = kOneShardShift);

}  // namespace gossamer::sparse
