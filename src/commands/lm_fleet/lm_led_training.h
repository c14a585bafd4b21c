// SPDX-License-Identifier: Apache-2.0
//
// The training run of a language model whose steps members do, in the process that leads them
// (commands/run/run_lead.h). Text, tokenizer and keys are those of a run in one process (lm_material.h). The
// state of the run is the tensors of the model with their moments, each a section of its files.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <memory>

#include "commands/engine/run_request.h"
#include "commands/engine/training.h"
#include "commands/lm/lm_modules.h"

namespace gossamer::commands {

[[nodiscard]] std::unique_ptr<Training> lm_led_training(const TrainingPlace& place, const LeadOptions& lead,
                                                        const LmModules& modules);

}  // namespace gossamer::commands
