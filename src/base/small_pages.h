// SPDX-License-Identifier: Apache-2.0
//
// use_small_pages: memory whose used parts lie scattered, each smaller than a huge page, and between them
// much that is never touched. Huge pages, which large AlignedArrays wish for, would bring the neighbours of
// each used part into memory too.
//
// Thread rule: before anything in the range is touched, as pages that are there stay as they are.
#pragma once

#include <cstddef>
#include <span>

namespace gossamer {

// What a huge page has on the machines that have them.
inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// A wish, for the whole pages of `memory`, if it is large enough to have huge ones: where the kernel does not
// grant it, more memory is used.
void use_small_pages(std::span<std::byte> memory);
// The same of memory that has `rows` rows of equal size, where parts are runs of `run` rows: if a run is
// smaller than a huge page.
void use_small_pages_of_runs(std::span<std::byte> memory, std::size_t rows, std::size_t run);

}  // namespace gossamer
