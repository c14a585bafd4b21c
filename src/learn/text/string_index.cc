// SPDX-License-Identifier: Apache-2.0
#include "learn/text/string_index.h"

#include <xxhash.h>

#include <utility>

#include "base/check.h"

namespace gossamer::text {
namespace {

std::uint64_t hash_of(std::string_view string) { return XXH3_64bits(string.data(), string.size()); }
std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

}  // namespace

std::size_t StringIndex::locate(std::string_view string, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  const std::uint32_t tag = tag_of(hash);
  std::size_t at = hash & mask;
  while (slots_[at].id != kNone && (slots_[at].tag != tag || this->string(slots_[at].id) != string)) {
    at = (at + 1) & mask;
  }
  return at;
}

std::uint32_t StringIndex::find(std::string_view string) const {
  return slots_[locate(string, hash_of(string))].id;
}

std::uint32_t StringIndex::add(std::string_view string) {
  const std::uint64_t hash = hash_of(string);
  std::size_t at = locate(string, hash);
  if (slots_[at].id != kNone) return slots_[at].id;
  CHECK(size() < kNone - 1, size());
  if (2 * (begin_.size() + 1) > slots_.size()) {
    grow();
    at = locate(string, hash);
  }
  slots_[at] = {.id = size(), .tag = tag_of(hash)};
  bytes_ += string;
  begin_.push_back(bytes_.size());
  return slots_[at].id;
}

void StringIndex::grow() {
  std::vector<Slot> larger(2 * slots_.size());
  const std::size_t mask = larger.size() - 1;
  for (std::uint32_t id = 0; id < size(); ++id) {
    const std::uint64_t hash = hash_of(string(id));
    std::size_t at = hash & mask;
    while (larger[at].id != kNone) at = (at + 1) & mask;
    larger[at] = {.id = id, .tag = tag_of(hash)};
  }
  slots_ = std::move(larger);
}

}  // namespace gossamer::text
