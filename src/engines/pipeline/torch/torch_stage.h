// SPDX-License-Identifier: Apache-2.0
//
// TorchStage: a stage of a language model (lm_shape.h), computed by libtorch. Weights and accumulators are
// this object's own memory; torch reads and writes them in place.
//
// Linear layers are functions of our own within torch's graph. Their backward gives the gradient of the input
// and keeps (input, gradient of the output). The products of the weights wait for StageTask::add_next().
// (Asking autograd for them afterwards would go through the graph twice.)
//
// No header of torch is included here, so that other code can include this file.
// Thread rule: as StageBackend, and the same thread for all backends of a process.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "engines/pipeline/stage/lm_shape.h"
#include "engines/pipeline/stage/stage_backend.h"

namespace gossamer::pipeline {

struct TorchStageOptions {
  LmShape shape;
  StageCut cut;
  Precision precision = Precision::kF32;
  std::uint64_t seed = 1;
  int threads = 1;  // of torch, in the whole process
};

// Errors: kUsage for a shape that no model has; kFailed, with torch's words, where memory is missing.
[[nodiscard]] Result<std::unique_ptr<StageBackend>> make_torch_stage(const TorchStageOptions& options);

}  // namespace gossamer::pipeline
