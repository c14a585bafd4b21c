// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/fleet/pipeline_work.h"

#include <utility>

namespace gossamer::pipeline {
namespace {

using Bench = PipelineWorkbench;

// Blocks of an update in one piece of Work.
constexpr int kBlocksAtOnce = 16;

Result<bool> done_or(const Result<void>& result) {
  return result.ok() ? Result<bool>(false) : Result<bool>(result.error());
}

Result<std::unique_ptr<StageBench>> made_stage(const PipelineJob& job, const DecidedLayout::Stage& layers) {
  auto made = StageBench::make(job, {.first = layers.first, .last = layers.last, .layers = job.layers});
  if (!made.ok() || job.start == StepNumber() || !job.restore) return made;
  if (auto restored = job.restore(**made); !restored.ok()) return restored.error();
  return made;
}

}  // namespace

void PipelineWorkbench::take(Result<StageBench::Piece> piece) {
  more = piece.ok() ? Result<bool>(piece->more) : Result<bool>(piece.error());
  if (!piece.ok()) return;
  objection = piece->objection;
  given = std::move(piece->given);
}

PipelineTask job_task(MakePipelineJob make, std::string configuration) {
  return {.kind = PipelineTask::Kind::kJob,
          .run = [make = std::move(make), configuration = std::move(configuration)](Bench& bench) {
            bench.job = make(configuration);
          }};
}

PipelineTask stage_task(const Attempt& attempt, std::shared_ptr<const PipelineJob> job,
                        const DecidedLayout::Stage& layers) {
  return {.kind = PipelineTask::Kind::kStage,
          .attempt = attempt,
          .run = [job = std::move(job), layers](Bench& bench) {
            bench.stage.reset();
            auto made = made_stage(*job, layers);
            bench.more = made.ok() ? Result<bool>(false) : Result<bool>(made.error());
            if (!made.ok()) return;
            bench.stage = std::move(*made);
            bench.root = bench.stage->root();
          }};
}

PipelineTask begin_task(const Attempt& attempt) {
  return {.kind = PipelineTask::Kind::kBegin, .attempt = attempt, .run = [attempt](Bench& bench) {
            bench.stage->begin_attempt(attempt.step, attempt.tries > 0);
          }};
}

PipelineTask microbatch_task(const Attempt& attempt, const MicrobatchFlow::Job& job, Slices sent) {
  using Kind = MicrobatchFlow::Kind;
  return {.kind = PipelineTask::Kind::kMicrobatch,
          .attempt = attempt,
          .job = job,
          .run = [job, sent = std::move(sent)](Bench& bench) {
            switch (job.kind) {
              case Kind::kForward: bench.take(bench.stage->forward(job.microbatch, sent)); break;
              case Kind::kBackward: bench.take(bench.stage->backward(job.microbatch, sent)); break;
              case Kind::kProducts: bench.more = bench.stage->add_next(job.microbatch); break;
            }
          }};
}

PipelineTask contribution_task(const Attempt& attempt, bool alone) {
  return {.kind = PipelineTask::Kind::kContribution, .attempt = attempt, .run = [alone](Bench& bench) {
            if (!alone) bench.given = bench.stage->contribution();
          }};
}

PipelineTask sum_task(const Attempt& attempt, std::optional<Slices> sum) {
  return {.kind = PipelineTask::Kind::kTakeSum,
          .attempt = attempt,
          .run = [sum = std::move(sum)](Bench& bench) { bench.sum = bench.stage->take_sum(sum); }};
}

PipelineTask update_task(const InstalledStep::Apply& apply) {
  // All pieces of one update share it.
  auto begun = std::make_shared<bool>(false);
  return {.kind = PipelineTask::Kind::kUpdate, .attempt = apply.attempt, .run = [apply, begun](Bench& bench) {
            if (!std::exchange(*begun, true))
              bench.stage->begin_update(apply.attempt.step, apply.total, apply.skipped);
            bench.more = true;
            for (int i = 0; i < kBlocksAtOnce && bench.more.ok() && *bench.more; ++i)
              bench.more = bench.stage->update_next();
            if (bench.more.ok() && !*bench.more) bench.root = bench.stage->root();
          }};
}

PipelineTask save_task(std::shared_ptr<const PipelineJob> job, StepNumber next) {
  return {.kind = PipelineTask::Kind::kKeep, .run = [job = std::move(job), next](Bench& bench) {
            job->save(next, *bench.stage);
            bench.more = false;
          }};
}

PipelineTask deliver_task(std::shared_ptr<const PipelineJob> job) {
  return {.kind = PipelineTask::Kind::kKeep,
          .run = [job = std::move(job)](Bench& bench) { bench.more = done_or(job->deliver(*bench.stage)); }};
}

}  // namespace gossamer::pipeline
