// SPDX-License-Identifier: Apache-2.0
//
// The Work of a member of a pipeline run, and the workbench at which its computing thread does it. While
// there is Work the workbench is that thread's. Between two pieces it is the loop's. It outlives the life
// that wanted the Work.
//
// Thread rule: functions are called on the loop thread. What a task runs is for the computing thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/slice.h"
#include "engines/pipeline/fleet/pipeline_job.h"
#include "engines/pipeline/fleet/stage_bench.h"
#include "engines/pipeline/step/layout.h"
#include "engines/pipeline/step/microbatch_flow.h"
#include "engines/pipeline/step/step_member.h"

namespace gossamer::pipeline {

struct PipelineWorkbench {
  Result<std::shared_ptr<const PipelineJob>> job{nullptr};
  std::unique_ptr<StageBench> stage;
  // The results of the piece of Work that was done last.
  Result<bool> more{false};         // it was not the last piece of its task
  std::string_view objection = {};  // a rule that a sender broke
  Slices given = {};
  StageSum sum = {};
  std::uint64_t root = 0;

  void take(Result<StageBench::Piece> piece);
};
using PipelineWorkbenchRef = std::shared_ptr<PipelineWorkbench>;
using MakePipelineJob =
    std::function<Result<std::shared_ptr<const PipelineJob>>(const std::string& configuration)>;

struct PipelineTask {
  enum class Kind { kJob, kStage, kBegin, kMicrobatch, kContribution, kTakeSum, kUpdate, kKeep };
  Kind kind = Kind::kJob;
  Attempt attempt = {};          // for which it is done; an update and what is kept mean no attempt
  MicrobatchFlow::Job job = {};  // kMicrobatch
  std::function<void(PipelineWorkbench&)> run = {};
};

[[nodiscard]] PipelineTask job_task(MakePipelineJob make, std::string configuration);
// Makes the stage of these layers, in the state that the run begins with.
[[nodiscard]] PipelineTask stage_task(const Attempt& attempt, std::shared_ptr<const PipelineJob> job,
                                      const DecidedLayout::Stage& layers);
[[nodiscard]] PipelineTask begin_task(const Attempt& attempt);
// A piece of a microbatch. `sent`: what came for it, for its first piece.
[[nodiscard]] PipelineTask microbatch_task(const Attempt& attempt, const MicrobatchFlow::Job& job,
                                           Slices sent);
// The accumulators as they travel; `alone`: nobody gets them.
[[nodiscard]] PipelineTask contribution_task(const Attempt& attempt, bool alone);
[[nodiscard]] PipelineTask sum_task(const Attempt& attempt, std::optional<Slices> sum);
// Some blocks of an update.
[[nodiscard]] PipelineTask update_task(const InstalledStep::Apply& apply);
[[nodiscard]] PipelineTask save_task(std::shared_ptr<const PipelineJob> job, StepNumber next);
[[nodiscard]] PipelineTask deliver_task(std::shared_ptr<const PipelineJob> job);

}  // namespace gossamer::pipeline
