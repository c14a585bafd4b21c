// SPDX-License-Identifier: Apache-2.0
//
// bench stage measures how long one stage of a language model takes over a microbatch, and how much memory.
// Tokens and boundaries are made up. The good case, one trial:
//
//   1. forward: the microbatch goes through the layers of the stage.
//   2. backward: the gradient of the output comes back, up to that of the input. The stage before waits for
//      it.
//   3. products: the gradients of weights are formed and added. products=early forms those of a layer as soon
//      as the layer is passed, which takes the least memory. products=late forms all of them behind step 2.
//   4. update: AdamW changes the weights.
//
// Each time is the median over the trials. Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "commands/lm/lm_modules.h"
#include "engines/pipeline/config/lm_config.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "run/node_host.h"
#include "settings/key_table.h"

namespace gossamer::commands {

// The place of the stage in its model. kWhole is a model of one stage.
enum class StagePosition { kFirst, kMiddle, kLast, kWhole };
enum class StageProducts { kEarly, kLate };

struct BenchStage {
  pipeline::LmPresetName preset = pipeline::LmPresetName::kSwarm1b;
  StagePosition position = StagePosition::kMiddle;
  std::uint64_t layers = 1;  // of the stage
  std::uint64_t vocabulary = 8192;
  std::uint64_t windows = 1;  // of the microbatch
  std::uint64_t context = 0;  // tokens of a window; 0: those of the preset
  pipeline::Precision precision = pipeline::Precision::kF32;
  pipeline::Keep keep = pipeline::Keep::kLayerInputs;
  StageProducts products = StageProducts::kEarly;
  bool update = true;
  std::uint64_t trials = 1;
  std::uint64_t warmup = 0;  // trials before those that count
  std::uint64_t seed = 1;
};

[[nodiscard]] const settings::KeyTable<BenchStage>& bench_stage_keys();

struct BenchStageResult {
  double forward_seconds = 0;
  double backward_seconds = 0;  // without products that are formed in between
  double products_seconds = 0;
  double update_seconds = 0;
  double tokens_per_second = 0;  // through steps 1 to 3
  std::uint64_t tokens = 0;      // of the microbatch
  std::uint64_t parameters = 0;
  std::uint64_t task_bytes = 0;  // the most that the microbatch kept between two calls, as the stage counts
  std::uint64_t peak_rss_bytes = 0;
};

// kUsage when options contradict each other; kFailed when weights, gradients, moments and the microbatch do
// not fit; errors of the stage.
[[nodiscard]] Result<BenchStageResult> bench_stage(const run::NodeHost& host, const BenchStage& options,
                                                   const OpenStages& open);
// By libtorch, which the program opens; kRefused where it is not there.
[[nodiscard]] Result<BenchStageResult> bench_torch_stage(const run::NodeHost& host,
                                                         const BenchStage& options);

[[nodiscard]] std::string to_json(const BenchStageResult& result, const BenchStage& options,
                                  const run::NodeHost& host);
[[nodiscard]] std::string to_text(const BenchStageResult& result);

}  // namespace gossamer::commands
