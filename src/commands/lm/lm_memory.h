// SPDX-License-Identifier: Apache-2.0
//
// The memory that a language model needs, before it is asked for. With P parameters of n bytes each (8 for
// train.precision=f64, else 4):
//
//   training  4 n P   weights, accumulators, two moments; for bf16 2 P more, the weights of layers
//             and what a microbatch takes (engines/pipeline/stage/lm_activations.h)
//   answers   2 n P   weights, accumulators
//
// Training needs kProgramBytes beside them.
// Thread rule: plain functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "engines/pipeline/config/lm_config.h"
#include "engines/pipeline/model/lm_model_file.h"
#include "engines/pipeline/stage/lm_shape.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "run/node_host.h"

namespace gossamer::commands {

// What the program takes with libtorch in it.
inline constexpr std::uint64_t kProgramBytes = 160'000'000;
// The allocator has gaps between tensors that come and go: measured, up to a third of what they take.
inline constexpr std::uint64_t kGapShare = 3;

// The parameters of a whole model.
[[nodiscard]] std::uint64_t lm_parameter_count(const pipeline::LmShape& shape);
// What computes a model that is in files.
[[nodiscard]] pipeline::Precision precision_of(const pipeline::LmHeader& header);

// The bytes that a run needs if it keeps so much of a microbatch.
[[nodiscard]] std::uint64_t training_bytes(const pipeline::LmConfig& config, std::uint32_t vocabulary,
                                           pipeline::Keep keep);

struct TrainingMemory {
  std::uint64_t bytes = 0;                     // that the run needs
  pipeline::Keep keep = pipeline::Keep::kAll;  // the most that fits
};
// kFailed with both figures and what would fit, where this process may use less than the run needs however
// little it keeps.
[[nodiscard]] Result<TrainingMemory> check_training_memory(const run::NodeHost& host,
                                                           const pipeline::LmConfig& config,
                                                           std::uint32_t vocabulary);
// The same for a model that is asked or measured; `directory` is for the message.
[[nodiscard]] Result<void> check_answering_memory(const run::NodeHost& host, const std::string& directory,
                                                  const pipeline::LmHeader& header);

}  // namespace gossamer::commands
