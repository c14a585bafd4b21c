// SPDX-License-Identifier: Apache-2.0
//
// Directories that are still there after a crash. Thread rule: as for Disk.
#pragma once

#include <string>

#include "base/result.h"
#include "host/api/disk.h"

namespace gossamer::host {

// As Disk::make_directories(); what it makes is durable when it returns. Nothing
// is done where `path` is there already.
[[nodiscard]] Result<void> make_durable_directories(Disk& disk, const std::string& path);

}  // namespace gossamer::host
