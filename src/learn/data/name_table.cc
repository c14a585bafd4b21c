// SPDX-License-Identifier: Apache-2.0
#include "learn/data/name_table.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace gossamer::data {

NameTable NameTable::copy() const {
  NameTable other;
  for (const std::string_view name : names_) other.id(name);
  return other;
}

std::uint32_t NameTable::id(std::string_view name) {
  if (const auto known = ids_.find(name); known != ids_.end()) return known->second;
  CHECK(names_.size() < 0xFFFFFFFEU, names_.size());
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.push_back(keep(name));
  ids_.emplace(names_.back(), number);
  return number;
}

std::optional<std::uint32_t> NameTable::find(std::string_view name) const {
  const auto known = ids_.find(name);
  if (known == ids_.end()) return std::nullopt;
  return known->second;
}

std::string_view NameTable::keep(std::string_view name) {
  constexpr std::size_t kSlabBytes = std::size_t{64} << 10;
  if (name.empty()) return {};
  if (slab_size_ - slab_used_ < name.size()) {
    slab_size_ = std::max(kSlabBytes, name.size());
    slab_used_ = 0;
    slabs_.push_back(std::make_unique<char[]>(slab_size_));
  }
  char* at = slabs_.back().get() + slab_used_;
  std::memcpy(at, name.data(), name.size());
  slab_used_ += name.size();
  return {at, name.size()};
}

}  // namespace gossamer::data
