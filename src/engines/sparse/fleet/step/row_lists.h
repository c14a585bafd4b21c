// SPDX-License-Identifier: Apache-2.0
//
// Lists of near training rows on their way to the lead from a member that holds a share of the rows
// (docs/protocols/sparse-serving.md). label_lists.h does the same for labels.
//
//   k entries a query: u32 row, f32 input cosine, f32 hidden cosine; best first by the one that ranks the
//   list; that one minus infinity: there is none
//
// Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/slice.h"
#include "engines/sparse/predict/neighbours.h"
#include "learn/sparse/network/network_shape.h"

namespace gossamer::sparse_engine {

// By which cosine a list is ranked.
enum class RankedBy { kInput, kHidden };

// Bytes of `queries` lists.
[[nodiscard]] constexpr std::uint64_t row_list_bytes(std::size_t queries, std::size_t k) {
  return std::uint64_t{queries} * k * sizeof(FoundRow);
}

// Appends a list of at most `k`. Rows whose ranking cosine is not finite are left out.
void append_rows(std::span<const FoundRow> list, std::size_t k, RankedBy by, std::vector<std::byte>& out);

// What a member with these output rows can name: its share of the model's `rows` training rows.
struct RowShare {
  std::size_t rows = 0;
  const sparse::HeldRows& held;
};
// Adds the rows of `bytes` for query q to lists[q]. kBadData for rows that no such member can have given.
// Requires row_list_bytes(lists.size(), k) bytes.
[[nodiscard]] Result<void> add_rows(const Slices& bytes, std::size_t k, RankedBy by, const RowShare& share,
                                    std::span<std::vector<FoundRow>> lists);

// Sorts the list, best first, and cuts it to k rows.
void rank_rows(std::size_t k, RankedBy by, std::vector<FoundRow>& list);

}  // namespace gossamer::sparse_engine
