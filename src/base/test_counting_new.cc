// SPDX-License-Identifier: Apache-2.0
//
// These functions stand in a file of their own. Otherwise a compiler could inline one half of the pair (new,
// delete) and warn about the other.
#include "base/test_counting_new.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {
// operator new belongs to the whole program, and so does its count.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<std::uint64_t> allocations{0};
}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  void* memory = std::malloc(std::max<std::size_t>(size, 1));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace gossamer {

std::uint64_t allocation_count() { return allocations; }

}  // namespace gossamer
