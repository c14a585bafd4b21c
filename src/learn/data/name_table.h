// SPDX-License-Identifier: Apache-2.0
//
// NameTable: names (of labels, of features) and their numbers, 0-based, given in the order of first
// appearance. Names are compared byte by byte. To read test data with a trained model's names, start from a
// copy of its table. Known names keep their numbers, and unknown ones get numbers beyond the known ones.
//
// Owner: one. Thread rule: the owner; find() from any thread while nobody calls id().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gossamer::data {

class NameTable {
 public:
  NameTable() = default;
  NameTable(NameTable&&) noexcept = default;
  NameTable& operator=(NameTable&&) noexcept = default;
  [[nodiscard]] NameTable copy() const;

  // The number of a name, a new one if it was not there. Requires fewer than 2^32 - 1 names.
  std::uint32_t id(std::string_view name);
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const;

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(names_.size()); }
  // Requires id < size(). The view lives as long as the table.
  [[nodiscard]] std::string_view name(std::uint32_t id) const { return names_[id]; }
  // All names by number.
  [[nodiscard]] const std::vector<std::string_view>& names() const { return names_; }

 private:
  std::string_view keep(std::string_view name);

  std::vector<std::unique_ptr<char[]>> slabs_;  // the names' bytes; slabs never move
  std::size_t slab_used_ = 0;
  std::size_t slab_size_ = 0;
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;
};

}  // namespace gossamer::data
