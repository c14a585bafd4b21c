// SPDX-License-Identifier: Apache-2.0
//
// What this process uses of its machine now. Thread rule: any thread.
#pragma once

#include <cstdint>

namespace gossamer::host {

struct ProcessUse {
  double cpu_seconds = 0;            // user and system, since it started
  std::uint64_t resident_bytes = 0;  // 0 where /proc is missing
  std::uint64_t descriptors = 0;     // open; 0 where /proc is missing
};
[[nodiscard]] ProcessUse process_use();

}  // namespace gossamer::host
