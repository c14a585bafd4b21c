// SPDX-License-Identifier: Apache-2.0
//
// PackedRows: the output rows that a node holds, numbered 0, 1, 2... as they rise. So what is kept beside
// each of them (hash tables) has no holes. A shard stays one run: only the last of all shards may be short,
// and it is the last here too.
//
// Thread rule: immutable after construction, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "learn/sparse/network/network_shape.h"

namespace gossamer::sparse {

class PackedRows {
 public:
  // Numbers the rows of the shards that are held now.
  explicit PackedRows(const HeldRows& held) : shift_(held.shift()), place_(held.shards()) {
    for (std::size_t shard = 0; shard < held.shards(); ++shard) {
      if (!held.holds(shard)) continue;
      place_[shard] = static_cast<std::uint32_t>(shards_.size());
      shards_.push_back(static_cast<std::uint32_t>(shard));
      size_ += held.rows_of(shard).end - held.rows_of(shard).begin;
    }
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] unsigned shift() const { return shift_; }
  // The held shards, rising.
  [[nodiscard]] std::span<const std::uint32_t> shards() const { return shards_; }
  // Requires number < size().
  [[nodiscard]] std::uint32_t row(std::uint32_t number) const {
    return (shards_[number >> shift_] << shift_) + (number & mask());
  }
  // Requires a row that is held.
  [[nodiscard]] std::uint32_t number_of(std::uint32_t row) const {
    return (place_[row >> shift_] << shift_) + (row & mask());
  }

 private:
  [[nodiscard]] std::uint32_t mask() const { return (std::uint32_t{1} << shift_) - 1; }

  unsigned shift_;
  std::size_t size_ = 0;
  std::vector<std::uint32_t> shards_;
  std::vector<std::uint32_t> place_;  // by shard: which of shards_ it is
};

}  // namespace gossamer::sparse
