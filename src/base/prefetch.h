// SPDX-License-Identifier: Apache-2.0
//
// prefetch_elements: brings what will be read soon towards the cache. It fetches into the second-level cache,
// which waits for more lines at once than the first; a few rows would fill the first. Never faults, whatever
// the address.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>

namespace gossamer {

template <class T>
inline void prefetch_elements(const T* from, std::size_t n) {
  constexpr std::size_t kInCacheLine = 64 / sizeof(T);
  constexpr int kForReading = 0;
  constexpr int kSecondCache = 2;
  for (std::size_t i = 0; i < n; i += kInCacheLine) __builtin_prefetch(from + i, kForReading, kSecondCache);
}

}  // namespace gossamer
