// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/slot_map.h"

#include <algorithm>
#include <bit>

namespace gossamer::sparse {

SlotMap::SlotMap(std::size_t ids) {
  const std::size_t size = std::bit_ceil(2 * std::max<std::size_t>(ids, 8));
  table_.resize(size);
  mask_ = size - 1;
  shift_ = static_cast<unsigned>(std::max(0, 32 - std::countr_zero(size)));
  ids_.reserve(size / 2);
}

void SlotMap::clear() {
  ids_.clear();
  std::fill(table_.begin(), table_.end(), Entry{});
}

std::uint32_t SlotMap::append(std::size_t at, std::uint32_t id) {
  const auto slot = static_cast<std::uint32_t>(ids_.size());
  table_[at] = {.id = id, .slot = slot};
  ids_.push_back(id);
  if (2 * ids_.size() >= table_.size()) grow();
  return slot;
}

void SlotMap::grow() {
  SlotMap larger(table_.size());
  for (const std::uint32_t id : ids_) larger.insert(id);
  *this = std::move(larger);
}

}  // namespace gossamer::sparse
