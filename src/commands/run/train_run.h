// SPDX-License-Identifier: Apache-2.0
//
// A whole training run of any engine, from a config to a measured model in a run directory. The engine does
// what a Training says (commands/engine/training.h), in this order:
//
//   1. prepare
//   2. steps, with logs and progress
//   3. model, curve, measurement, summary
//
// A run that a signal stops ends after a checkpoint and can be resumed. A run that fails before its first
// step leaves no directory behind.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "commands/engine/engine_entry.h"
#include "commands/engine/run_request.h"
#include "commands/engine/training.h"
#include "run/node_host.h"

namespace gossamer::commands {

// Requires an engine that trains.
[[nodiscard]] Result<TrainResult> run_training(const run::NodeHost& host, const EngineEntry& engine,
                                               const RunRequest& request);

// The same with another Training than the engine's own. `name`: the engine, in the summary.
using MakeTraining = std::function<std::unique_ptr<Training>(const TrainingPlace& place)>;
[[nodiscard]] Result<TrainResult> run_training(const run::NodeHost& host, const std::string& name,
                                               const MakeTraining& make, const RunRequest& request);

}  // namespace gossamer::commands
