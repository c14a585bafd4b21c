// SPDX-License-Identifier: Apache-2.0
//
// Directories that are still there after a crash. Thread rule: as for Disk.
#pragma once

#include <string>

#include "base/result.h"
#include "host/api/disk.h"

namespace gossamer::host {

// Makes directories as Disk::make_directories() does; what it makes is durable when it returns. Does nothing
// where `path` is there already.
[[nodiscard]] Result<void> make_durable_directories(Disk& disk, const std::string& path);

}  // namespace gossamer::host
