// SPDX-License-Identifier: Apache-2.0
//
// Finds the first place where records of a model file break its format (docs/protocols/model.md), so that a
// message can name it. Records are read by functions of a position, wherever their numbers lie.
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace gossamer::sparse_engine {

// The first of `count` offsets into `entries` things that does not fit. Offsets run from 0 to all things and
// never fall. Requires count >= 1.
template <class Offset>
[[nodiscard]] std::optional<std::size_t> wrong_offset(std::size_t count, std::uint64_t entries,
                                                      const Offset& offset) {
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t own = offset(i);
    const bool fits =
        own >= last && own <= entries && (i > 0 || own == 0) && (i + 1 < count || own == entries);
    if (!fits) return i;
    last = own;
  }
  return std::nullopt;
}

// The first entry that breaks the order of its row or reaches `bound`; indices of a row rise strictly.
// Requires offsets that fit.
template <class Offset, class Index>
[[nodiscard]] std::optional<std::size_t> wrong_index(std::size_t rows, std::uint64_t bound,
                                                     const Offset& offset, const Index& index) {
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t begin = offset(r);
    const std::size_t end = offset(r + 1);
    for (std::size_t i = begin; i < end; ++i) {
      if (index(i) >= bound || (i > begin && index(i) <= index(i - 1))) return i;
    }
  }
  return std::nullopt;
}

// The row to which an entry belongs. Requires offsets that fit.
template <class Offset>
[[nodiscard]] std::size_t row_of_entry(std::size_t rows, std::size_t entry, const Offset& offset) {
  std::size_t row = 0;
  while (row + 1 < rows && offset(row + 1) <= entry) ++row;
  return row;
}

}  // namespace gossamer::sparse_engine
