// SPDX-License-Identifier: Apache-2.0
//
// Label lists on their way between members: of each record the best labels among the rows that a member
// holds, and how the lists of all members become that of the whole network (docs/protocols/sparse-step.md,
// "Evaluation"). The best k of the whole are among the best k of its parts, so nothing is lost, and the order
// is strict, so it does not matter in which order lists are merged.
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
#include "engines/sparse/ranking.h"
#include "learn/sparse/network_shape.h"
#include "learn/sparse/row_order.h"

namespace gossamer::engine {

// Of `records` lists.
[[nodiscard]] constexpr std::uint64_t list_bytes(std::size_t records, std::size_t k) {
  return std::uint64_t{records} * k * sizeof(Scored);
}

// Labels per list that a member can name of the `wished` ones.
[[nodiscard]] std::size_t list_limit(const sparse::HeldRows& rows, std::size_t wished);

// Appends a list of at most `k`. Scores that are not finite stay behind: they have no place in an order.
void append_list(std::span<const Scored> list, std::size_t k, std::vector<std::byte>& out);

// Adds to lists[i] what `bytes` has for record i. kBadData for what no member with these rows can have given:
// a label beyond the network's, or in a row that it does not hold; a score that is no number. Requires
// list_bytes(lists.size(), k) bytes.
[[nodiscard]] Result<void> add_lists(const Slices& bytes, std::size_t k, const sparse::HeldRows& rows,
                                     const sparse::RowOrder& order, std::span<std::vector<Scored>> lists);

// Best first, and no more than k.
void rank_list(std::size_t k, std::vector<Scored>& list);

}  // namespace gossamer::engine
