// SPDX-License-Identifier: Apache-2.0
//
// What the engine lm does for a training run (commands/run/train_run.h), in one process. Its parts in order:
//
//   1. libtorch is opened, and memory is checked: a refusal comes before hours of reading
//   2. texts become DIR/data/train.tokens and test.tokens, or those of an earlier part of the run are taken.
//      A token file that data.train names is taken where it lies
//   3. keys that are open get their values; the model has its first weights
//   4. steps, checkpoints
//   5. model, measurement
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <memory>

#include "commands/engine/training.h"
#include "commands/lm/lm_modules.h"

namespace gossamer::commands {

[[nodiscard]] std::unique_ptr<Training> lm_training(const TrainingPlace& place, const LmModules& modules);

}  // namespace gossamer::commands
