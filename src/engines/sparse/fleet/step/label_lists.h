// SPDX-License-Identifier: Apache-2.0
//
// Label lists on their way from members to the lead (docs/protocols/sparse-serving.md). For each query a
// member lists the best labels among the rows that it holds. The lists of all members become the list of the
// whole network. The best k of the whole are among the best k of its parts, so nothing is lost. The order is
// strict, so lists can be merged in any order.
//
//   k entries a record: u32 label, f32 score; best first; score minus infinity: there is none
//
// Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/slice.h"
#include "engines/sparse/model/ranking.h"
#include "learn/sparse/network/network_shape.h"
#include "learn/sparse/network/row_order.h"

namespace gossamer::sparse_engine {

// Bytes of `records` lists.
[[nodiscard]] constexpr std::uint64_t list_bytes(std::size_t records, std::size_t k) {
  return std::uint64_t{records} * k * sizeof(Scored);
}

// Labels per list that a member can name, at most `wished`.
[[nodiscard]] std::size_t list_limit(const sparse::HeldRows& rows, std::size_t wished);

// Appends a list of at most `k`. Scores that are not finite are left out: they have no place in an order.
void append_list(std::span<const Scored> list, std::size_t k, std::vector<std::byte>& out);

// Adds the entries of `bytes` for record i to lists[i]. kBadData for entries that no member with these rows
// can have given. Such an entry has a label beyond the network's, or a row that it does not hold, or no
// number as score. Requires list_bytes(lists.size(), k) bytes.
[[nodiscard]] Result<void> add_lists(const Slices& bytes, std::size_t k, const sparse::HeldRows& rows,
                                     const sparse::RowOrder& order, std::span<std::vector<Scored>> lists);

// Sorts the list, best first, and cuts it to k entries.
void rank_list(std::size_t k, std::vector<Scored>& list);

}  // namespace gossamer::sparse_engine
