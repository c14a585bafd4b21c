// SPDX-License-Identifier: Apache-2.0
//
// A whole training run, from the user's files to a measured model in a run directory: import
// (into DIR/cache), weighting, recipe, memory check, training with checkpoints and logs, model, curve,
// evaluation, summary. A run that is stopped by a signal ends after a checkpoint and can be resumed; one that
// fails before its first step leaves no directory behind.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "engines/sparse/config_toml.h"
#include "engines/sparse/recipe.h"
#include "engines/sparse/safetensors.h"
#include "engines/sparse/trainer.h"
#include "node/node_host.h"
#include "node/run_directory.h"
#include "node/train_summary.h"

namespace gossamer::node {

// A trained network that is in no memory as a whole.
struct NetworkInParts {
  std::vector<engine::TensorSource> tensors;  // all of it, as a model has them
  std::shared_ptr<const void> holder;         // of what they look at
  // Of the run's test records, if it has some and they were measured (test_cache.h).
  std::optional<std::vector<std::uint32_t>> ranks;
  double eval_seconds = 0;
};

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
  // After train(), where all steps are done and the network is not in its outcome (engine::stays_in_parts).
  [[nodiscard]] virtual Result<std::optional<NetworkInParts>> take_parts() {
    return std::optional<NetworkInParts>();
  }
  // The run is finished: what the network came from is needed no more.
  virtual void saved() {}
  struct Cost {
    double cpu_seconds = 0;            // of all of them
    std::uint64_t peak_rss_bytes = 0;  // of the largest
    double step_bytes = 0;             // that each of them has sent for a step, in the mean
    double background_bytes = 0;       // and for anything else during one
    std::vector<RunRecovery> recoveries = {};
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
