// SPDX-License-Identifier: Apache-2.0
//
// A whole training run, from the user's files to a measured model in a run directory: import
// (into DIR/cache), weighting, recipe, memory check, training with checkpoints and logs, model, curve,
// evaluation, summary. A run that is stopped by a signal ends after a checkpoint and can be resumed; one that
// fails before its first step leaves no directory behind.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "engines/sparse/config_toml.h"
#include "engines/sparse/recipe.h"
#include "engines/sparse/trainer.h"
#include "node/node_host.h"
#include "node/run_directory.h"

namespace gossamer::node {

// Who does the steps of a run, where that is not this process.
class StepRunner {
 public:
  StepRunner() = default;
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;
  virtual ~StepRunner() = default;

  // Processes that do them.
  [[nodiscard]] virtual std::uint64_t nodes() const = 0;
  // Peak bytes of all that do them, while they do.
  [[nodiscard]] virtual std::uint64_t memory_needed(const engine::TrainConfig& config,
                                                    const engine::Recipe& recipe,
                                                    const engine::DataShape& shape) const = 0;
  // As engine::train() does, in a run directory whose config is resolved and whose data are imported.
  [[nodiscard]] virtual Result<engine::TrainOutcome> train(const RunPaths& paths,
                                                           const engine::TrainInputs& inputs,
                                                           const engine::TrainHooks& hooks) = 0;
  struct Cost {
    double cpu_seconds = 0;            // of all of them
    std::uint64_t peak_rss_bytes = 0;  // of the largest
  };
  // After train().
  [[nodiscard]] virtual Cost cost() const = 0;
};

struct TrainRequest {
  std::string directory;
  Continue resume = Continue::kNo;
  // The config that preset, file and overrides make, valid; and what of it the user wrote.
  engine::TrainConfig config;
  std::vector<engine::KeySetting> settings;
  // Asked after each step and between the parts of the work.
  FunctionRef<bool()> stop_requested;
  StepRunner* runner = nullptr;  // null: this process does the steps
};

struct TrainResult {
  bool stopped = false;  // by stop_requested; the summary is empty then
  std::string summary;   // the JSON object of summary.json, without a newline
};

[[nodiscard]] Result<TrainResult> run_training(const NodeHost& host, const TrainRequest& request);

}  // namespace gossamer::node
