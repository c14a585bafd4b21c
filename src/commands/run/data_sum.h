// SPDX-License-Identifier: Apache-2.0
//
// DIR/data.sum: the checksum of the data that a run began with, 16 hexadecimal digits and a line end. What a
// run keeps of its data in DIR/cache or DIR/data may be deleted, and is read again where it is damaged.
// Checkpoints do not tell records in another order, or with other names, from those of before. This file
// does.
//
// Thread rule: the thread that trains or leads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "host/api/disk.h"
#include "run/run_directory.h"

namespace gossamer::commands {

enum class RunData {
  kSame,  // or the first that the run has: its checksum is kept from now on
  kOther,
};

struct DataSum {
  std::uint64_t checksum = 0;
  // What an earlier build has kept for the same data, where that is another. It is replaced.
  std::optional<std::uint64_t> former = {};
};
// Whether data with this checksum is that of the run in a directory. kBadData where the file is damaged.
[[nodiscard]] Result<RunData> check_run_data(host::Disk& disk, const run::RunPaths& paths,
                                             const DataSum& data);

// Whether the run in a directory has kept a checksum.
[[nodiscard]] Result<bool> has_data_sum(host::Disk& disk, const run::RunPaths& paths);

}  // namespace gossamer::commands
