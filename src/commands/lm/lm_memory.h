// SPDX-License-Identifier: Apache-2.0
//
// The memory that a language model needs, before it is asked for. With P parameters of n bytes each (8 for
// train.precision=f64, else 4):
//
//   training  4 n P   weights, accumulators, two moments
//   answers   2 n P   weights, accumulators
//
// What passes through the layers comes on top; it is given back after each microbatch, and not counted.
// Thread rule: plain functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "engines/pipeline/config/lm_config.h"
#include "engines/pipeline/model/lm_model_file.h"
#include "engines/pipeline/stage/lm_shape.h"
#include "run/node_host.h"

namespace gossamer::commands {

// The parameters of a whole model.
[[nodiscard]] std::uint64_t lm_parameter_count(const pipeline::LmShape& shape);
// What computes a model that is in files.
[[nodiscard]] pipeline::Precision precision_of(const pipeline::LmHeader& header);

// kFailed with both figures and what would fit, where this process may use less than the run needs. Returns
// the bytes that it needs.
[[nodiscard]] Result<std::uint64_t> check_training_memory(const run::NodeHost& host,
                                                          const pipeline::LmConfig& config,
                                                          std::uint32_t vocabulary);
// The same for a model that is asked or measured; `directory` is for the message.
[[nodiscard]] Result<void> check_answering_memory(const run::NodeHost& host, const std::string& directory,
                                                  const pipeline::LmHeader& header);

}  // namespace gossamer::commands
