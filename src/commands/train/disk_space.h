// SPDX-License-Identifier: Apache-2.0
//
// Is the disk large enough for a run, asked before the work and not in the middle of it. What is needed is
// computed: checkpoints and model have a known shape. A disk that cannot tell its free space is never too
// small.
//
// Thread rule: one thread; reads the disk, changes nothing.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "commands/records/training_data.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/config/recipe.h"
#include "host/api/disk.h"
#include "run/run_directory.h"

namespace gossamer::commands {

// CheckpointPlan is the input of checkpoints_at_once(). That counts the checkpoints in the directory at the
// worst moment before the last step. `kept_now` of them are there when the run begins. When checkpoints are
// written by steps, their number is known. When they are written by minutes, it is not known how long the run
// will take. One more is counted then, and at least two, so that a whole one stays while the next is written.
struct CheckpointPlan {
  sparse_engine::CheckpointConfig when;
  std::uint64_t steps = 0;  // steps of the whole run
  std::uint64_t kept_now = 0;
};
[[nodiscard]] std::uint64_t checkpoints_at_once(const CheckpointPlan& plan);

// Bytes that are kept free for logs, curve and summary.
inline constexpr std::uint64_t kRunLogBytes = std::uint64_t{512} << 10;

struct RunSpace {
  const sparse_engine::TrainConfig& config;
  const run::RunPaths& paths;
  std::uint64_t steps = 0;
  sparse_engine::DiskNeeded needed;
  bool begins = true;  // a run that goes on can change neither its place nor its keys
};
// kFailed when checkpoints and model would not fit: it names what is needed, what is free and what would
// help. Files that an earlier part of the run has written count as free space.
[[nodiscard]] Result<void> check_run_space(host::Disk& disk, const RunSpace& run);

}  // namespace gossamer::commands
