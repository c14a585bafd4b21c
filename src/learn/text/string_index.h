// SPDX-License-Identifier: Apache-2.0
//
// StringIndex: strings to ids 0, 1, 2, ... in the order they are added, made for millions of look-ups. It
// uses open addressing with linear probing over 8-byte slots. The strings stand back to back in one block;
// find() allocates nothing. About 14 bytes per string beside its own bytes.
//
// Owner: one. Thread rule: the owner; find() and string() from any thread while nobody adds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer::text {

class StringIndex {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFU;

  // The id of a string, a new one if it was not there. Requires fewer than 2^32 - 1 strings.
  std::uint32_t add(std::string_view string);
  // The id, or kNone.
  [[nodiscard]] std::uint32_t find(std::string_view string) const;

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(begin_.size() - 1); }
  // Requires id < size(). The view lives until the next add().
  [[nodiscard]] std::string_view string(std::uint32_t id) const {
    return std::string_view(bytes_).substr(begin_[id], begin_[id + 1] - begin_[id]);
  }

 private:
  // `id` is kNone in a free slot; `tag` is a part of the hash that spares most comparisons.
  struct Slot {
    std::uint32_t id = kNone;
    std::uint32_t tag = 0;
  };
  // The slot of the string, or the free one where it belongs.
  [[nodiscard]] std::size_t locate(std::string_view string, std::uint64_t hash) const;
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two, at most half full
  std::vector<std::uint64_t> begin_ = {0};
  std::string bytes_;
};

}  // namespace gossamer::text
