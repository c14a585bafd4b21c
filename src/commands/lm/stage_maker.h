// SPDX-License-Identifier: Apache-2.0
//
// What computes the stages of a language model, as the commands of this folder get it: libtorch by a module
// of the program (torch_library.h), or a toy in tests.
//
// Thread rule: the thread that owns the Compute, for all stages of a process.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "engines/pipeline/torch/torch_stage.h"
#include "run/node_host.h"

namespace gossamer::commands {

// Errors: those of make_torch_stage().
using MakeStage = std::function<Result<std::unique_ptr<pipeline::StageBackend>>(
    const pipeline::TorchStageOptions& options)>;

// Opens what makes stages, once a command needs one. kRefused where it is not there.
using OpenStages = std::function<Result<MakeStage>(const run::NodeHost& host)>;

}  // namespace gossamer::commands
