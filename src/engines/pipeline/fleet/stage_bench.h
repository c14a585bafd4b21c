// SPDX-License-Identifier: Apache-2.0
//
// StageBench: the weights of a member's stage, and what it computes with them in a step
// (docs/protocols/pipeline-step.md). Each function does one piece of Work: a layer of a microbatch, a sum, a
// block of an update. Which one comes next is said by MicrobatchFlow and StepMember.
//
// Thread rule: while a piece of Work runs, the thread that does it; between two, the loop thread, which reads
// the results alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "cluster/collective/sum_numbers.h"
#include "engines/pipeline/fleet/boundary_codec.h"
#include "engines/pipeline/fleet/pipeline_job.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "engines/pipeline/stage/stage_optimizer.h"
#include "engines/pipeline/step/step_member.h"
#include "tensors/checkpoint.h"

namespace gossamer::pipeline {

class StageBench {
 public:
  // The job outlives it.
  [[nodiscard]] static Result<std::unique_ptr<StageBench>> make(const PipelineJob& job, const StageCut& cut);

  // An attempt begins: nothing of an earlier one is left. `exact`: without a codec.
  void begin_attempt(StepNumber step, bool exact);

  // What a piece of Work on a microbatch has come to.
  struct Piece {
    bool more = false;                // call again
    std::string_view objection = {};  // the rule that the sender broke; nothing was computed
    Slices given = {};  // after the last piece: what goes to the next stage, or to the one before
  };
  // One layer forward. The first piece begins the microbatch: in the first stage from the text, else from
  // what a member of the stage before sent. The boundary goes on with tokens and targets behind it.
  [[nodiscard]] Result<Piece> forward(std::uint64_t microbatch, const Slices& sent);
  // One layer backward. The first piece begins with what the next stage sent back; the last stage needs none.
  [[nodiscard]] Result<Piece> backward(std::uint64_t microbatch, const Slices& sent);
  // False: all products of the microbatch are added, and it is gone.
  [[nodiscard]] Result<bool> add_next(std::uint64_t microbatch);
  // What microbatches keep takes more than the job's memory.
  [[nodiscard]] bool is_short() const { return kept_bytes_ > job_.memory_bytes; }

  // Numbers of the stage's gradient, and how they are summed.
  [[nodiscard]] std::uint64_t gradient_numbers() const;
  [[nodiscard]] cluster::SumNumbers sum_numbers() const;
  // The accumulators as they travel. Zeros in place of numbers that are not finite.
  [[nodiscard]] Slices contribution();
  // Puts the sum in the place of the accumulators; nothing: they are the sum.
  [[nodiscard]] StageSum take_sum(const std::optional<Slices>& sum);

  // The update with the sum, for a gradient with this squared norm.
  void begin_update(StepNumber step, double total, bool skipped);
  // True: call again.
  [[nodiscard]] Result<bool> update_next();
  [[nodiscard]] std::uint64_t root() const { return optimizer_->root(); }

  // Weights and moments, by name: a checkpoint has them.
  [[nodiscard]] std::vector<tensors::NamedTensor> state();
  // The state was written in place. Requires that no microbatch is kept.
  [[nodiscard]] Result<void> state_changed();

  [[nodiscard]] StageBackend& backend() { return *backend_; }
  [[nodiscard]] StageOptimizer& optimizer() { return *optimizer_; }
  [[nodiscard]] std::uint64_t boundary_payload(std::uint64_t microbatch) const;
  [[nodiscard]] std::uint64_t gradient_payload(std::uint64_t microbatch) const;

 private:
  struct Kept {
    std::unique_ptr<StageTask> task;
    Slice tokens = {};  // tokens, then targets, as they travel
    std::uint64_t bytes = 0;
    bool waits = false;      // for the gradient of its output
    bool goes_back = false;  // its backward pass has begun
  };
  StageBench(const PipelineJob& job, std::unique_ptr<StageBackend> backend);
  [[nodiscard]] Result<std::string_view> begin(std::uint64_t microbatch, const Slices& sent);
  [[nodiscard]] Result<std::string_view> begin_backward(Kept& one, std::uint64_t microbatch,
                                                        const Slices& sent);
  [[nodiscard]] Slice written(std::uint64_t microbatch, ConstNumbers numbers);
  [[nodiscard]] BoundaryShape shape_of(std::uint64_t microbatch) const;
  void count(Kept& one);
  void keep_less();

  const PipelineJob& job_;
  std::unique_ptr<StageBackend> backend_;
  std::unique_ptr<StageOptimizer> optimizer_;
  bool is_f64_ = false;
  // The attempt under way.
  StepNumber step_;
  bool exact_ = false;
  std::map<std::uint64_t, Kept> kept_;
  std::uint64_t kept_bytes_ = 0;
  double loss_ = 0;
  std::uint64_t tokens_ = 0;
  bool sent_zeros_ = false;
  bool updates_ = false;  // an update is open
};

}  // namespace gossamer::pipeline
