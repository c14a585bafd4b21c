// SPDX-License-Identifier: Apache-2.0
//
// bench sparse-step measures how long one training step takes at a given shape. The records are made up: ids
// are shuffled, and features and labels follow Zipf's law over them. The defaults are the shape of
// Amazon-670K. Records are made before the clock starts, and nothing is read from disk.
//
//   rank r of n is drawn with a density of r^-zipf (by the inverse of the continuous distribution function)
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engines/sparse/config/config.h"
#include "learn/sparse/learner.h"
#include "run/node_host.h"
#include "settings/key_table.h"

namespace gossamer::commands {

struct BenchSparseStep {
  std::uint64_t features = 135'909;
  std::uint64_t nnz = 75;  // distinct features of a record
  std::uint64_t labels = 670'091;
  std::uint64_t labels_per_row = 5;
  double label_zipf = 0.6;
  double feature_zipf = 0.9;
  std::uint64_t hidden = 128;
  std::vector<std::uint32_t> dense = {};  // widths of further hidden layers
  sparse_engine::MomentsKind moments = sparse_engine::OptimizerConfig().moments;
  std::uint64_t batch = 256;
  sparse::Negatives negatives = sparse::Negatives::kInBatch;
  std::uint64_t sampled = 0;
  std::uint64_t shards = 1;  // least number of output shards; 1: output rows are labels
  std::uint64_t steps = 50;
  std::uint64_t warmup = 5;  // steps before the clock starts: buffers grow, pages come in
  std::uint64_t seed = 1;
};

[[nodiscard]] const settings::KeyTable<BenchSparseStep>& bench_sparse_step_keys();

struct BenchSparseStepResult {
  double wall_ms_per_step = 0;  // mean
  double cpu_ms_per_step = 0;   // all workers together
  sparse::LearnerPhases phases_ms;
  double active_rows = 0;  // mean a step
  double unique_features = 0;
  std::uint64_t parameters = 0;
  std::uint64_t peak_rss_bytes = 0;
  double loss = 0;  // loss of the last step
  std::string precision;
};

// kUsage when options contradict each other; kFailed when the machine has too little memory.
[[nodiscard]] Result<BenchSparseStepResult> bench_sparse_step(const run::NodeHost& host,
                                                              const BenchSparseStep& options);

// The result with the options it was measured at.
[[nodiscard]] std::string to_json(const BenchSparseStepResult& result, const BenchSparseStep& options,
                                  const run::NodeHost& host);
// The result for people, in two lines.
[[nodiscard]] std::string to_text(const BenchSparseStepResult& result);

}  // namespace gossamer::commands
