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
    ::madvise(memory.data() + (begin - address), end - begin, MADV_NOHUGEPAGE);
}

void use_small_pages_of_runs(std::span<std::byte> memory, std::size_t rows, std::size_t run) {
  if (rows > 0 && memory.size() / rows * run < kHugePageBytes) use_small_pages(memory);
}

}  // namespace gossamer
