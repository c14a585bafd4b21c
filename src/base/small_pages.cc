// SPDX-License-Identifier: Apache-2.0
#include "base/small_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace gossamer {

void use_small_pages(std::span<std::byte> memory) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t begin = (address + page - 1) / page * page;
  const std::uintptr_t end = (address + memory.size()) / page * page;
  if (begin < end && memory.size() >= kHugePageBytes)
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_NOHUGEPAGE);
}

}  // namespace gossamer
