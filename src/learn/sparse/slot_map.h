// SPDX-License-Identifier: Apache-2.0
//
// SlotMap: numbers distinct ids 0, 1, 2... in order of first appearance. An open-addressing table sized by
// the ids of a step, not by the layer, so that it stays in the cache at 10^7 labels.
//
// Owner: one worker's lists (inverted_lists.h). Thread rule: one owner. Grows (allocates) only when it sees
// more ids than ever before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gossamer::sparse {

class SlotMap {
 public:
  // Makes room for `ids` distinct ids.
  explicit SlotMap(std::size_t ids = 512);

  void clear();
  // The slot of `id`, a new one (== size() before the call) if it is new.
  std::uint32_t insert(std::uint32_t id) {
    std::size_t at = place(id);
    while (table_[at].slot != kEmpty) {
      if (table_[at].id == id) return table_[at].slot;
      at = (at + 1) & mask_;
    }
    return append(at, id);
  }
  // Fetches the place of an id that is to be inserted soon.
  void prefetch(std::uint32_t id) const { __builtin_prefetch(&table_[place(id)]); }
  // ids()[slot] is the id in that slot.
  [[nodiscard]] std::span<const std::uint32_t> ids() const { return ids_; }
  [[nodiscard]] std::size_t size() const { return ids_.size(); }

 private:
  static constexpr std::uint32_t kEmpty = UINT32_MAX;
  struct Entry {
    std::uint32_t id = 0;
    std::uint32_t slot = kEmpty;
  };

  // A multiplier that differs from ownership.h: all ids here have one owner.
  [[nodiscard]] std::size_t place(std::uint32_t id) const {
    return static_cast<std::size_t>((id * 0x85EBCA77U) >> shift_) & mask_;
  }
  std::uint32_t append(std::size_t at, std::uint32_t id);
  void grow();

  std::vector<Entry> table_;
  std::vector<std::uint32_t> ids_;
  std::size_t mask_ = 0;
  unsigned shift_ = 0;
};

}  // namespace gossamer::sparse
