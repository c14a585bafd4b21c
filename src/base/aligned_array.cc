// SPDX-License-Identifier: Apache-2.0
#include "base/aligned_array.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "base/small_pages.h"

namespace gossamer::aligned_detail {
namespace {

constexpr std::size_t kHugePage = kHugePageBytes;
constexpr std::size_t kCacheLine = 64;

// The allocation's first cache line holds its mapped size (0 = from malloc), so that Free needs no second
// word.
struct Header {
  void* base;
  std::size_t mapped_bytes;
};

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

}  // namespace

void* allocate(std::size_t bytes) {
  if (bytes < kHugePage) {
    const std::size_t total = round_up(bytes, kCacheLine) + kCacheLine;
    auto* base = static_cast<std::byte*>(std::aligned_alloc(kCacheLine, total));
    CHECK(base != nullptr, bytes);
    std::memset(base, 0, total);
    *reinterpret_cast<Header*>(base) = {base, 0};
    return base + kCacheLine;
  }
  // Two huge pages more than the elements take: there must be an aligned start with room for the header
  // before it.
  const std::size_t total = round_up(bytes, kHugePage) + 2 * kHugePage;
  void* map =
      ::mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(map != MAP_FAILED, bytes);
  const auto address = reinterpret_cast<std::uintptr_t>(map);
  std::byte* data = static_cast<std::byte*>(map) + (round_up(address + kCacheLine, kHugePage) - address);
  ::madvise(data, round_up(bytes, kHugePage),
            MADV_HUGEPAGE);  // a wish: without it the array is merely slower
  *reinterpret_cast<Header*>(data - kCacheLine) = {map, total};
  return data;
}

void Free::operator()(void* memory) const {
  if (memory == nullptr) return;
  const Header header = *reinterpret_cast<Header*>(static_cast<std::byte*>(memory) - kCacheLine);
  if (header.mapped_bytes == 0) {
    std::free(header.base);
  } else {
    ::munmap(header.base, header.mapped_bytes);
  }
}

}  // namespace gossamer::aligned_detail
