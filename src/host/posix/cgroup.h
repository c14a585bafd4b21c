// SPDX-License-Identifier: Apache-2.0
//
// What the kernel grants this process: memory and CPU time after the limits of its control groups (versions 1
// and 2). Its own group counts, and all groups above it. Read from /proc and /sys below `root`, which is ""
// except in tests. What cannot be read counts as no limit. Internal to host/posix. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "host/api/disk.h"

namespace gossamer::host {

// The smallest of the machine's memory and of all group limits, in bytes; 2^63 where nothing is known.
[[nodiscard]] std::uint64_t usable_memory_bytes(Disk& disk, const std::string& root);

// The smallest CPU quota, in cores (1.5 means 150 ms per 100 ms); nothing where there is none.
[[nodiscard]] std::optional<double> cpu_quota_cores(Disk& disk, const std::string& root);

}  // namespace gossamer::host
