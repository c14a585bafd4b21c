// SPDX-License-Identifier: Apache-2.0
//
// A whole training run on one node, from the user's files to a measured model in a run directory: import
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
#include "node/node_host.h"
#include "node/run_directory.h"

namespace gossamer::node {

struct TrainRequest {
  std::string directory;
  Continue resume = Continue::kNo;
  // The config that preset, file and overrides make, valid; and what of it the user wrote.
  engine::TrainConfig config;
  std::vector<engine::KeySetting> settings;
  // Asked after each step and between the parts of the work.
  FunctionRef<bool()> stop_requested;
};

struct TrainResult {
  bool stopped = false;  // by stop_requested; the summary is empty then
  std::string summary;   // the JSON object of summary.json, without a newline
};

[[nodiscard]] Result<TrainResult> run_training(const NodeHost& host, const TrainRequest& request);

}  // namespace gossamer::node
