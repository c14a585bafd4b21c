// SPDX-License-Identifier: Apache-2.0
//
// Ranked lists: the results of every search and every prediction, and the one order that all of them keep.
//
// Thread rule: plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gossamer::sparse_engine {

// A label or a training row with its score or cosine.
struct Scored {
  std::uint32_t id = 0;
  float score = 0;
  bool operator==(const Scored&) const = default;
};

// Higher score first, then smaller id. The order is strict as long as no score is NaN. So the best k of a set
// do not depend on the order in which it was searched.
[[nodiscard]] inline bool ranks_before(const Scored& a, const Scored& b) {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
}

// Keeps the best `count` of a list, in no particular order, the last of them at the back. Requires 1 <= count
// < list.size().
inline void keep_best(std::vector<Scored>& list, std::size_t count) {
  const auto last = list.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::nth_element(list.begin(), last, list.end(), ranks_before);
  list.resize(count);
}

}  // namespace gossamer::sparse_engine
