// SPDX-License-Identifier: Apache-2.0
//
// A trained language model that is ready to be asked or measured. Thread rule: the thread that owns the
// Compute.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "commands/lm/lm_modules.h"
#include "engines/pipeline/model/lm_model_file.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "learn/tokens/tokenizer.h"
#include "run/node_host.h"

namespace gossamer::commands {

struct LoadedLm {
  pipeline::LmAbout about;
  std::unique_ptr<tokens::Tokenizer> tokenizer;
  std::unique_ptr<pipeline::StageBackend> model;  // the whole one
};
// Loads the model of DIR, a run directory or a model directory. Errors: those of find_model() and
// open_lm_model(), with what writes a damaged model again; kRefused for a tokenizer or a module that is not
// there; kFailed where memory is too small.
[[nodiscard]] Result<LoadedLm> load_lm(const run::NodeHost& host, const LmModules& modules,
                                       const std::string& directory);

}  // namespace gossamer::commands
