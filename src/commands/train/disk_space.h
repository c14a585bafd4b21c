// SPDX-License-Identifier: Apache-2.0
//
// These functions ask whether the disk is large enough before the work begins, not in the middle of it.
// Checkpoints and model have a known shape, so what they need is computed. An import is estimated from a
// sample. A disk that cannot tell its free space is never too small.
//
// Thread rule: one thread; reads the disk, changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/records/training_data.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/config/recipe.h"
#include "run/node_host.h"
#include "run/run_directory.h"

namespace gossamer::node {

// CheckpointPlan is the input of checkpoints_at_once(). That counts the checkpoints in the directory at the
// worst moment before the last step. `kept_now` of them are there when the run begins. When checkpoints are
// written by steps, their number is known. When they are written by minutes, it is not known how long the run
// will take. One more is counted then, and at least two, so that a whole one stays while the next is written.
struct CheckpointPlan {
  engine::CheckpointConfig when;
  std::uint64_t steps = 0;  // steps of the whole run
  std::uint64_t kept_now = 0;
};
[[nodiscard]] std::uint64_t checkpoints_at_once(const CheckpointPlan& plan);

// Bytes that are kept free for logs, curve and summary.
inline constexpr std::uint64_t kRunLogBytes = std::uint64_t{512} << 10;

struct RunSpace {
  const engine::TrainConfig& config;
  const RunPaths& paths;
  std::uint64_t steps = 0;
  engine::DiskNeeded needed;
};
// kFailed when checkpoints and model would not fit: it names what is needed, what is free and what would
// help. Files that an earlier part of the run has written count as free space.
[[nodiscard]] Result<void> check_run_space(host::Disk& disk, const RunSpace& run);

// The bytes that an import will write, from the first megabytes of each source.
struct ImportEstimate {
  std::uint64_t bytes = 0;  // 0 where nothing is known, as for standard input
  bool exact = true;        // every source was looked at as a whole
};
// `sources` are of one format. Text and sessions count with the size of the records copied as text.
[[nodiscard]] ImportEstimate estimate_import(host::Disk& disk, const std::vector<Source>& sources);

// kFailed when an exact estimate, or half of one from a sample, is more than what is free beside `path`. When
// only the whole of an estimate from a sample is more, the console says so.
[[nodiscard]] Result<void> check_import_space(const NodeHost& host, const ImportEstimate& estimate,
                                              const std::string& path);

}  // namespace gossamer::node
