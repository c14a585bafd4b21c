// SPDX-License-Identifier: Apache-2.0
//
// use_small_pages: asks the kernel for small pages in memory of which scattered parts are used, each smaller
// than a huge page. With huge pages, which large AlignedArrays wish for, each used part would bring its
// untouched neighbours into memory too.
//
// Thread rule: call it before anything in the range is touched, because pages that are already there stay as
// they are.
#pragma once

#include <cstddef>
#include <span>

namespace gossamer {

// Bytes of a huge page, on machines that have huge pages.
inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// Asks for small pages for all whole pages in `memory`, if it is large enough to hold a huge page. It is a
// wish: where the kernel does not grant it, more memory is used.
void use_small_pages(std::span<std::byte> memory);
// The same for memory of `rows` rows of equal size, used in runs of `run` rows. Does nothing unless a run is
// smaller than a huge page.
void use_small_pages_of_runs(std::span<std::byte> memory, std::size_t rows, std::size_t run);

}  // namespace gossamer
