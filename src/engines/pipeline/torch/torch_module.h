// SPDX-License-Identifier: Apache-2.0
//
// TorchModule: what the program finds in the shared library gossamer_torch.so. The program opens it
// (host/posix/module.h) only where a language model is trained or asked, and so needs libtorch only there.
// The module has its own copy of Gossamer's code below the stage, and shows nothing but this one symbol.
//
// Thread rule: immutable; make_stage() as make_torch_stage().
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "engines/pipeline/torch/torch_stage.h"

namespace gossamer::pipeline {

// Rises with each change of TorchModule, TorchStageOptions or StageBackend: a module that was built with
// others must not be called.
inline constexpr std::uint32_t kTorchModuleVersion = 2;
inline constexpr const char* kTorchModuleSymbol = "gossamer_torch_module";

struct TorchModule {
  std::uint32_t version;      // kTorchModuleVersion of the module
  const char* torch_version;  // of libtorch, "2.13.0"
  Result<std::unique_ptr<StageBackend>> (*make_stage)(const TorchStageOptions& options);
};

}  // namespace gossamer::pipeline
