// SPDX-License-Identifier: Apache-2.0
//
// The training loop of a language model in one process: steps, progress, checkpoints, a stop. It goes on from
// the newest whole checkpoint, with the bits of a run that was never stopped.
//
// A checkpoint that cannot be written is an event, and the run goes on; unless a stop asked for it. Errors:
// those of the trainer and of the disk. Thread rule: the thread that owns the backend; hooks are called on
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "engines/pipeline/train/lone_trainer.h"
#include "engines/run/checkpoint_times.h"
#include "engines/run/train_hooks.h"
#include "host/api/clock.h"
#include "host/api/disk.h"
#include "tensors/checkpoint.h"

namespace gossamer::pipeline {

struct LmRun {
  host::Disk& disk;
  const host::Clock& clock;
  StageBackend& model;  // the whole one
  const tokens::TokenWindows& windows;
  TrainerOptions trainer;
  engine::CheckpointTimes::Options checkpoints;  // with the steps of the run
  int keep = 2;                                  // checkpoints, at least 1
  std::string directory;                         // of checkpoints; it exists
  std::string run_id;
  std::string fingerprint;  // of all that shapes the model
  double load_seconds = 0;  // before the first step, for RunCost
};

struct LmOutcome {
  std::uint64_t steps = 0;
  bool all = false;           // no step is left
  double final_loss = 0;      // mean of the last 100 steps of the run
  std::uint64_t skipped = 0;  // steps of this process whose gradient was not finite
  std::optional<StepNumber> resumed_at = {};
  tensors::RunCost cost_before = {};
};

[[nodiscard]] Result<LmOutcome> train_lm(const LmRun& run, const engine::TrainHooks& hooks);

}  // namespace gossamer::pipeline
