// SPDX-License-Identifier: Apache-2.0
//
// What commands for language models open once they need it: what computes stages, and what cuts text into
// pieces of words. Both are modules of the program (torch_library.h, sentencepiece_library.h), or toys in
// tests.
//
// Thread rule: the thread that owns the Compute, for all stages of a process.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "engines/pipeline/torch/torch_stage.h"
#include "learn/tokens/sentencepiece/sentencepiece_module.h"
#include "run/node_host.h"

namespace gossamer::commands {

// Errors: those of make_torch_stage().
using MakeStage = std::function<Result<std::unique_ptr<pipeline::StageBackend>>(
    const pipeline::TorchStageOptions& options)>;

// Opens what makes stages, once a command needs one. kRefused where it is not there.
using OpenStages = std::function<Result<MakeStage>(const run::NodeHost& host)>;
// Opens SentencePiece's module, which lives as long as the process. kRefused where it is not there.
using OpenPieces = std::function<Result<const tokens::SentencePieceModule*>(const run::NodeHost& host)>;

struct LmModules {
  OpenStages stages;
  OpenPieces pieces;
};

}  // namespace gossamer::commands
