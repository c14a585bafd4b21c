// SPDX-License-Identifier: Apache-2.0
//
// stage_state(): the tensors of a stage and their moments by name, as files have them. One process and the
// members of a fleet keep the same ones, so either reads what the other has saved.
//
// Thread rule: the thread that owns the backend.
#pragma once

#include <vector>

#include "engines/pipeline/stage/stage_backend.h"
#include "engines/pipeline/stage/stage_optimizer.h"
#include "tensors/checkpoint.h"

namespace gossamer::pipeline {

// For each tensor NAME its weights, NAME:first and NAME:second. Moments are needed while steps are left.
// After writing into them a caller tells optimizer and backend: state_changed(), weights_changed().
[[nodiscard]] std::vector<tensors::NamedTensor> stage_state(StageBackend& backend, StageOptimizer& optimizer);

}  // namespace gossamer::pipeline
