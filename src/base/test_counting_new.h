// SPDX-License-Identifier: Apache-2.0
//
// For tests: how often this program has called operator new. A program that links counting_new.cc counts.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>

namespace gossamer {

[[nodiscard]] std::uint64_t allocation_count();

}  // namespace gossamer
