// SPDX-License-Identifier: Apache-2.0
//
// A rank file is what members have measured on a run's test records
// (docs/protocols/sparse-step.md, "Evaluation"). Each delivers DIRECTORY/ranks-NODE-STEP, whole or
// not at all. All files of a step are the same.
//
//   8 bytes  number of ranks, little endian
//   ranks    u32 each: label ranks of the labels of all records, in their order
//   8 bytes  XXH3 of all bytes before
//
// Thread rule: plain functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "host/api/disk.h"

namespace gossamer::commands {

struct RankFile {
  NodeId node;
  StepNumber step;  // step of the trained network: all before it are applied
};

[[nodiscard]] Result<void> save_ranks(host::Disk& disk, const std::string& directory, const RankFile& file,
                                      std::span<const std::uint32_t> ranks);

// The ranks that any node delivered for that step; nothing if there are none. kBadData for a damaged file.
[[nodiscard]] Result<std::optional<std::vector<std::uint32_t>>> load_ranks(host::Disk& disk,
                                                                           const std::string& directory,
                                                                           StepNumber step);

}  // namespace gossamer::commands
