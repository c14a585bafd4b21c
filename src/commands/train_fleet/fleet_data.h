// SPDX-License-Identifier: Apache-2.0
//
// The files of a run, which nodes on other machines get by content:
//
//   - the files of its cache that exist (training_samples.h)
//   - the records of an imported directory, if it trains on one
//   - the checkpoint that it goes on from, if there is one
//
// Manifests lie in the cache's directory.
//
// Thread rule: plain functions. A function that describes files costs a SHA-256 of all their bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "commands/train/training_samples.h"
#include "host/api/disk.h"
#include "node/files/stored_file.h"

namespace gossamer::node {

// Suffixes of the files that a member writes line by line (step_reports.h, recovery_reports.h).
[[nodiscard]] inline std::vector<std::string> growing_files() { return {".steps", ".recoveries"}; }

// Whether a run's file can have this name.
[[nodiscard]] bool is_data_file(std::string_view name);
struct DataPlaces {
  CachePlace cache;
  std::string begin_from = {};  // directory of the checkpoint
};
[[nodiscard]] StoredPlace data_place(const DataPlaces& places, const std::string& name);

// Describes the files of a cache, named as in their manifests, and keeps the manifests.
[[nodiscard]] Result<std::vector<StoredFile>> describe_data(host::Disk& disk, const CachePlace& cache);
// Describes the files of a fleet's checkpoint, which must exist.
[[nodiscard]] Result<std::vector<StoredFile>> describe_checkpoint(host::Disk& disk, const DataPlaces& places,
                                                                  StepNumber step);

}  // namespace gossamer::node
