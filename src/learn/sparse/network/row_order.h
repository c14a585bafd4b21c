// SPDX-License-Identifier: Apache-2.0
//
// RowOrder: the output row of a label. Nodes hold shards of the output layer, runs of 2^shift rows
// (network_shape.h). A step works on a label's row as often as the label comes. So labels are ranked by
// falling count, equal ones by number, and dealt like cards. Rank r goes to shard r mod S, as its next row,
// with S = ceil(labels / 2^shift). When the last shard, which may be short, is full, the others go on among
// themselves. Rows have no holes, and each shard has its rows in order of frequency.
//
// Balance: in two shards of the same length, the numbers of rows that a step is expected to touch differ by
// at most one. A short last shard has no rare labels; it has less to do than the others.
//
// One shard needs no order: row = label, and nothing is kept. Else 8 bytes a label, which copies share.
// Whatever the order, training ends with the same network to rounding: random streams go by label. Thread
// rule: immutable after construction, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gossamer::sparse {

// Shards have at least 2^3 rows, unless there are fewer. Placement, ledger and transport treat each shard as
// a thing of its own, which would cost more than a handful of rows do.
inline constexpr unsigned kSmallestShardShift = 3;
// The shift of one shard for all rows that there can be.
inline constexpr unsigned kOneShardShift = 31;

// The largest shift that gives at least `wished` shards, between these two; 1 gives one shard.
[[nodiscard]] unsigned shard_shift(std::size_t labels, std::size_t wished);

class RowOrder {
 public:
  // row = label.
  RowOrder() = default;
  // label_count is [labels]; shards have 2^shift rows, shift <= kOneShardShift.
  RowOrder(std::span<const std::uint32_t> label_count, unsigned shift);

  [[nodiscard]] bool identity() const { return dealt_ == nullptr; }
  [[nodiscard]] std::uint32_t row_of(std::uint32_t label) const {
    return identity() ? label : dealt_->row[label];
  }
  [[nodiscard]] std::uint32_t label_of(std::uint32_t row) const {
    return identity() ? row : dealt_->label[row];
  }
  // label_of() of all rows; empty where identity().
  [[nodiscard]] std::span<const std::uint32_t> labels() const {
    return identity() ? std::span<const std::uint32_t>() : dealt_->label;
  }

 private:
  struct Dealt {
    std::vector<std::uint32_t> row;    // [labels]
    std::vector<std::uint32_t> label;  // [rows]
  };
  std::shared_ptr<const Dealt> dealt_;  // none: row = label
};

}  // namespace gossamer::sparse
