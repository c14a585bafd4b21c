// SPDX-License-Identifier: Apache-2.0
//
// FoundRows: the output rows that the samples of a step have found by asking hash tables (hash_negatives.h).
// A step that may have to be computed anew, when the tables have changed, keeps them.
//
// Thread rule: a plain value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gossamer::sparse {

enum class HashSets {
  kShared,  // what one sample finds is scored for all
  kOwn,     // each sample scores its own labels and what it found itself (SLIDE); requires LogQ::kNone
};

struct FoundRows {
  FoundRows() = default;
  FoundRows(HashSets how, std::size_t queries, std::size_t most)
      : sets(how), limit(most), rows(queries * most), count(queries) {}

  // The number of samples of a batch that ask: the first ones.
  [[nodiscard]] std::size_t asking(std::size_t batch) const { return std::min(batch, count.size()); }
  // The rows that a sample found, all different, in the order of selection.
  [[nodiscard]] std::span<const std::uint32_t> of(std::size_t sample) const {
    return {rows.data() + sample * limit, count[sample]};
  }
  // Adds a row that the sample found. Requires that it has fewer than `limit`.
  void add(std::size_t sample, std::uint32_t row) { rows[sample * limit + count[sample]++] = row; }

  HashSets sets = HashSets::kShared;
  std::size_t limit = 0;             // rows that a sample finds at most
  std::vector<std::uint32_t> rows;   // [queries][limit]
  std::vector<std::uint32_t> count;  // [queries]
};

}  // namespace gossamer::sparse
