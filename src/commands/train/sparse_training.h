// SPDX-License-Identifier: Apache-2.0
//
// SparseTraining: what the sparse engine does for a training run (commands/run/train_run.h). Its parts in
// order:
//
//   1. import (into DIR/cache), recipe, memory and disk check, weighting
//   2. training, in this process or by a StepRunner
//   3. model, measurement
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "commands/engine/run_request.h"
#include "commands/engine/training.h"
#include "commands/train/measured.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/config/recipe.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/predict/predictor.h"
#include "engines/sparse/train/trainer.h"
#include "run/node_host.h"
#include "run/run_directory.h"
#include "tensors/safetensors.h"

namespace gossamer::commands {

// A trained network that no memory holds as a whole.
struct NetworkInParts {
  std::vector<tensors::TensorSource> tensors;  // the whole network, as a model has them
  std::shared_ptr<const void> holder;          // owns the memory that the tensors look at
  // Figures of the network, or why it could not be measured. Nothing: the run has no test records, or ended
  // before all were measured.
  std::optional<Result<Measured>> measured = {};
};

// StepRunner does the steps of a run where this process does not do them itself.
class StepRunner {
 public:
  StepRunner() = default;
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;
  virtual ~StepRunner() = default;

  using MakePredictor = FunctionRef<std::unique_ptr<sparse_engine::Predictor>(const sparse_engine::Model&)>;
  // Measures the trained network on the run's test records. `make` makes a predictor for a model whose
  // network has a shape and no numbers. `stop` is asked now and then, and ends it with kFailed. On any one
  // thread.
  using Measure = std::function<Result<Measured>(MakePredictor make, const std::function<bool()>& stop)>;
  // Called before train() if the network stays in parts, and there are test records.
  virtual void measure_by(const Measure& /*measure*/) {}

  // How many processes do the steps.
  [[nodiscard]] virtual std::uint64_t nodes() const = 0;
  // Peak bytes of all these processes together, while they do the steps.
  [[nodiscard]] virtual std::uint64_t memory_needed(const sparse_engine::TrainConfig& config,
                                                    const sparse_engine::Recipe& recipe,
                                                    const sparse_engine::DataShape& shape) const = 0;
  // Trains as engine::train() does, in a run directory with a resolved config and imported data.
  [[nodiscard]] virtual Result<sparse_engine::TrainOutcome> train(const run::RunPaths& paths,
                                                                  const sparse_engine::TrainInputs& inputs,
                                                                  const engine::TrainHooks& hooks) = 0;
  // Gives the network after train(), where all steps are done and its outcome has no
  // network (sparse_engine::stays_in_parts).
  [[nodiscard]] virtual Result<std::optional<NetworkInParts>> take_parts() {
    return std::optional<NetworkInParts>();
  }
  // Tells that the run is finished. The files that the network came from are needed no more.
  virtual void saved() {}
  // After train().
  [[nodiscard]] virtual StepsCost cost() const = 0;
};

// Makes the training of a run. `runner` does its steps; null: this process does them.
[[nodiscard]] std::unique_ptr<Training> sparse_training(const TrainingPlace& place,
                                                        std::shared_ptr<StepRunner> runner);

// A run of the sparse engine whose steps `runner` does.
struct TrainRequest {
  std::string directory;
  run::Continue resume = run::Continue::kNo;
  // The valid config that preset, file and overrides make, and the settings in it that the user wrote.
  sparse_engine::TrainConfig config;
  std::vector<settings::KeySetting> settings;
  // Asked after each step and between the parts of the work.
  FunctionRef<bool()> stop_requested;
  StepRunner* runner = nullptr;  // null: this process does the steps
  Duration model_patience = {};  // as in RunRequest
};
[[nodiscard]] Result<TrainResult> run_training(const run::NodeHost& host, const TrainRequest& request);

}  // namespace gossamer::commands
