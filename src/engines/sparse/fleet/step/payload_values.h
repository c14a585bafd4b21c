// SPDX-License-Identifier: Apache-2.0
//
// Numbers in the payload of a message (docs/protocols/sparse-serving.md). They are back to back,
// little-endian as on this machine, at any address where the network has put them.
//
// Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "base/slice.h"

namespace gossamer::sparse_engine {

template <class T>
  requires std::is_trivially_copyable_v<T>
void append_values(std::span<const T> values, std::vector<std::byte>& payload) {
  const auto bytes = std::as_bytes(values);
  payload.insert(payload.end(), bytes.begin(), bytes.end());
}

// Reads `count` values from the front of the unread bytes. Requires that there are so many.
template <class T>
  requires std::is_trivially_copyable_v<T>
[[nodiscard]] std::vector<T> take_values(SliceReader& reader, std::size_t count) {
  std::vector<T> values(count);
  copy_front(reader.take(count * sizeof(T)), std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace gossamer::sparse_engine
