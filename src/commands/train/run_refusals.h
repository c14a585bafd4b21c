// SPDX-License-Identifier: Apache-2.0
//
// The reasons to refuse a training run before its first step: data are missing or cannot be read twice,
// or there is too little memory.
//
// Thread rule: plain functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "commands/train/sparse_training.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/config/recipe.h"
#include "run/node_host.h"

namespace gossamer::commands {

[[nodiscard]] Error missing_data();
// `path`: "-", or that of a pipe.
[[nodiscard]] Error no_test_from_stdin(const std::string& path);
[[nodiscard]] Error no_text_from_stdin(const std::string& path);

// Peak bytes of a run on this machine. `runner` does its steps, or this process where it is null. With a
// runner this process needs what the model needs. Members know for themselves what they have room for.
[[nodiscard]] std::uint64_t run_memory(const run::NodeHost& host, const StepRunner* runner,
                                       const sparse_engine::TrainConfig& config,
                                       const sparse_engine::Recipe& recipe,
                                       const sparse_engine::DataShape& shape);
// The error for a run that needs more bytes than there are: `needed`. It names what would fit.
[[nodiscard]] Error too_little_memory(const run::NodeHost& host, const StepRunner* runner,
                                      const sparse_engine::TrainConfig& config,
                                      const sparse_engine::DataShape& shape, std::uint64_t needed);

}  // namespace gossamer::commands
