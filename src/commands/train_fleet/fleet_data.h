// SPDX-License-Identifier: Apache-2.0
//
// The files of a run, as a Supply (node/files/supply.h):
//   - the files of its cache (samples.h) that there are,
//   - the records of an imported directory, if the run trains on one,
//   - the checkpoint that the run goes on from, if there is one.
// Manifests lie in the cache's directory.
//
// Thread rule: plain functions. Functions that add files read all of them, for a SHA-256.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "commands/train/samples.h"
#include "host/api/disk.h"
#include "node/files/supply.h"

namespace gossamer::commands {

// Adds the files of the cache, whose directory is the Supply's. Makes the directory.
[[nodiscard]] Result<void> add_data(host::Disk& disk, node::Supply& supply, const CachePlace& cache);
// Adds the files of a fleet's checkpoint, which is there.
[[nodiscard]] Result<void> add_checkpoint(host::Disk& disk, node::Supply& supply,
                                          const std::string& directory, StepNumber step);

// Where a member with these files finds the imported data.
[[nodiscard]] CachePlace cache_of(const node::Supply& supply);

}  // namespace gossamer::commands
