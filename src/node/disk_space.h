// SPDX-License-Identifier: Apache-2.0
//
// Is the disk large enough, asked before the work and not in the middle of it. What is needed is computed
// where it can be (checkpoints and model of a known shape) and estimated from a sample where it cannot (an
// import). A disk that cannot tell its free space is never too small.
//
// Thread rule: one thread; reads the disk, changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engines/sparse/config.h"
#include "engines/sparse/recipe.h"
#include "node/node_host.h"
#include "node/run_directory.h"
#include "node/training_data.h"

namespace gossamer::node {

// How many checkpoints lie in the directory at the worst moment before the last step, in a run that begins
// with `kept_now` of them. By steps the number is known. By minutes nobody knows how long the run will take:
// one more is counted, at least two, so that a whole one stays while the next is written.
struct CheckpointPlan {
  engine::CheckpointConfig when;
  std::uint64_t steps = 0;  // of the whole run
  std::uint64_t kept_now = 0;
};
[[nodiscard]] std::uint64_t checkpoints_at_once(const CheckpointPlan& plan);

// Kept free for logs, curve and summary.
inline constexpr std::uint64_t kRunLogBytes = std::uint64_t{512} << 10;

struct RunSpace {
  const engine::TrainConfig& config;
  const RunPaths& paths;
  std::uint64_t steps = 0;
  engine::DiskNeeded needed;
};
// kFailed when checkpoints and model would not fit: names what is needed, what is free and what would help.
// What an earlier part of the run has written counts as space that is there.
[[nodiscard]] Result<void> check_run_space(host::Disk& disk, const RunSpace& run);

// What an import will write, from the first megabytes of each source.
struct ImportEstimate {
  std::uint64_t bytes = 0;  // 0: nothing is known, as for standard input
  bool exact = true;        // every source was looked at as a whole
};
// `sources` are of one format. Of text and sessions: the size of the records copied as text.
[[nodiscard]] ImportEstimate estimate_import(host::Disk& disk, const std::vector<Source>& sources);

// kFailed when the estimate, or for one from a sample its half, is more than what is free beside `path`;
// between half and whole it is told on the console.
[[nodiscard]] Result<void> check_import_space(const NodeHost& host, const ImportEstimate& estimate,
                                              const std::string& path);

}  // namespace gossamer::node
