// SPDX-License-Identifier: Apache-2.0
//
// For tests: how often this program has called operator new. Programs that link test_counting_new.cc count.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>

namespace gossamer {

[[nodiscard]] std::uint64_t allocation_count();

}  // namespace gossamer
