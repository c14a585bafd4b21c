// SPDX-License-Identifier: Apache-2.0
//
// The files of a run, which nodes on other machines get by content: those of its cache (training_samples.h)
// that there are, the records of an imported directory, if it trains on one, and the checkpoint that it goes
// on from, if there is one. Manifests lie in the cache's directory.
//
// Thread rule: plain functions. Cost of what describes: a SHA-256 of all of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "host/api/disk.h"
#include "node/cluster/stored_file.h"
#include "node/training_samples.h"

namespace gossamer::node {

// Suffixes of what a member writes line by line: step_reports.h, recovery_reports.h.
[[nodiscard]] inline std::vector<std::string> growing_files() { return {".steps", ".recoveries"}; }

// Whether a run's file can have this name.
[[nodiscard]] bool is_data_file(std::string_view name);
struct DataPlaces {
  CachePlace cache;
  std::string begin_from = {};  // directory of the checkpoint
};
[[nodiscard]] StoredPlace data_place(const DataPlaces& places, const std::string& name);

// Names are those of the manifests, which are kept.
[[nodiscard]] Result<std::vector<StoredFile>> describe_data(host::Disk& disk, const CachePlace& cache);
// The files of a fleet's checkpoint, which is there.
[[nodiscard]] Result<std::vector<StoredFile>> describe_checkpoint(host::Disk& disk, const DataPlaces& places,
                                                                  StepNumber step);

}  // namespace gossamer::node
