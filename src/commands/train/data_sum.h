// SPDX-License-Identifier: Apache-2.0
//
// DIR/data.sum: the checksum of the data that a run began with, 16 hexadecimal digits and a line end. What a
// run keeps of its data in DIR/cache may be deleted, and is read again where it is damaged. Checkpoints do
// not tell records in another order, or with other names, from those of before. This file does.
//
// Thread rule: the thread that trains or leads.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "host/api/disk.h"
#include "run/run_directory.h"

namespace gossamer::commands {

struct RunData {
  std::uint64_t checksum = 0;  // Samples::checksum()
  std::string from;            // where the user's records lie, for messages
  std::string resume_command;
};

// Keeps the checksum of a run that begins, and of one that an earlier version has begun. kUsage where the run
// began with other data; kBadData where the file is damaged.
[[nodiscard]] Result<void> check_run_data(host::Disk& disk, const run::RunPaths& paths, const RunData& data);

// Whether the run in a directory has kept a checksum.
[[nodiscard]] Result<bool> has_data_sum(host::Disk& disk, const run::RunPaths& paths);

}  // namespace gossamer::commands
