// SPDX-License-Identifier: Apache-2.0
//
// What a training run is refused for before its first step: data that are missing or cannot be read twice,
// and memory that is not there.
//
// Thread rule: plain functions.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "engines/sparse/config.h"
#include "engines/sparse/recipe.h"
#include "node/node_host.h"
#include "node/train_run.h"

namespace gossamer::node {

[[nodiscard]] Error missing_data();
[[nodiscard]] Error no_test_from_stdin();
[[nodiscard]] Error no_text_from_stdin();

// Peak bytes of a run, whoever does its steps: `runner`, or this process where it is null.
[[nodiscard]] std::uint64_t run_memory(const NodeHost& host, const StepRunner* runner,
                                       const engine::TrainConfig& config, const engine::Recipe& recipe,
                                       const engine::DataShape& shape);
// `needed` bytes are more than there are; names what would fit.
[[nodiscard]] Error too_little_memory(const NodeHost& host, const StepRunner* runner,
                                      const engine::TrainConfig& config, const engine::DataShape& shape,
                                      std::uint64_t needed);

}  // namespace gossamer::node
