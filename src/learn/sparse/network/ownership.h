// SPDX-License-Identifier: Apache-2.0
//
// The worker that owns a row. Rows are dealt out by a multiplicative hash of their id. So every worker finds
// its own rows by itself (no serial part), and the work is balanced whatever the order of ids. The answer
// depends on nothing but the id and the number of workers. Rows that other nodes hold have no owner here.
//
// Thread rule: pure function.
#pragma once

#include <cstdint>

#include "learn/sparse/network/network_shape.h"

namespace gossamer::sparse {

// The owner of a row, in 0..workers-1. Requires workers >= 1.
[[nodiscard]] constexpr std::uint32_t owner_of(std::uint32_t row, std::uint32_t workers) {
  const std::uint32_t mixed = row * 0x9E3779B1U;
  return static_cast<std::uint32_t>((std::uint64_t{mixed} * workers) >> 32);
}

// One worker's part in the dealing.
struct Ownership {
  std::uint32_t worker = 0;
  std::uint32_t workers = 1;
  const HeldRows* held = nullptr;  // null: all rows are here
  [[nodiscard]] constexpr bool owns(std::uint32_t row) const {
    return owner_of(row, workers) == worker && (held == nullptr || held->contains(row));
  }
};

}  // namespace gossamer::sparse
