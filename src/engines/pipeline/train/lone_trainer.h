// SPDX-License-Identifier: Apache-2.0
//
// LoneTrainer: one process that trains a language model which is one stage. Step t takes the sample ids
// [t B, (t+1) B) of the windows, in microbatches:
//
//   1. Each microbatch goes forward, backward, and adds its products.
//   2. The norm of the gradient is known: sqrt(squared norm of the sums) / tokens.
//   3. If it is finite, the optimizer takes a step with it. If not, nothing is changed.
// Equal bits: the same windows, options and state give the same state after a resume as without a stop, with
// the same number of threads, on the same CPU, with the same libtorch.
//
// Errors: those of the backend; kFailed for a step whose gradient is not finite, with the windows of the
// microbatch that makes it so, if one alone does. Thread rule: the thread that owns the backend.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "engines/pipeline/stage/stage_optimizer.h"
#include "exact/step_factors.h"
#include "learn/tokens/token_windows.h"
#include "tensors/checkpoint.h"

namespace gossamer::pipeline {

enum class BadSteps { kStop, kSkip };

struct TrainerOptions {
  std::uint64_t batch = 32;      // windows of a step, at least 1
  std::uint32_t microbatch = 4;  // windows of a microbatch, at least 1; the last of a step may have fewer
  exact::RateSchedule schedule = {};
  exact::AdamWOptions adamw = {};
  double clip = 1;  // the largest norm of a step's gradient; 0: any
  Keep keep = Keep::kAll;
  BadSteps bad_steps = BadSteps::kStop;  // steps whose gradient is not finite
};

struct StepDone {
  double loss = 0;  // mean over the tokens of the step, nats
  double norm = 0;  // of the mean gradient, before it is clipped
  double rate = 0;
  std::uint64_t tokens = 0;
  bool skipped = false;  // the gradient was not finite, and the weights are as before
};

// Whether an error is that of a step whose gradient is not finite.
[[nodiscard]] bool tells_of_no_finite_gradient(const Error& error);

class LoneTrainer {
 public:
  // The backend has the whole model. It and the windows outlive this object.
  LoneTrainer(StageBackend& model, const tokens::TokenWindows& windows, const TrainerOptions& options);

  [[nodiscard]] Result<StepDone> take_step(StepNumber step);

  // Weights, and moments that are needed while steps are left; for checkpoints.
  [[nodiscard]] std::vector<tensors::NamedTensor> state();
  // The state was read from a checkpoint.
  [[nodiscard]] Result<void> state_changed();
  // The hash over weights and moments.
  [[nodiscard]] std::uint64_t root() const { return optimizer_.root(); }

 private:
  // Samples [first, first + count) of a step's microbatch.
  struct Part {
    SampleId first;
    std::uint32_t count;
  };
  [[nodiscard]] std::vector<Part> parts(StepNumber step) const;
  // Adds the part's gradients to the accumulators.
  [[nodiscard]] Result<LossSum> add(const Part& part);
  [[nodiscard]] Result<StepDone> give_up(StepNumber step, const StepDone& done);
  [[nodiscard]] Error why_not_finite(StepNumber step);
  // Nothing of the step is left for the next one.
  [[nodiscard]] Error failed(Error error);

  StageBackend& model_;
  const tokens::TokenWindows& windows_;
  TrainerOptions options_;
  StageOptimizer optimizer_;
  std::vector<TokenNumber> inputs_, targets_;
};

}  // namespace gossamer::pipeline
