// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/train/lm_run.h"

#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engines/run/recent_mean.h"

namespace gossamer::pipeline {
namespace {

class LmLoop {
 public:
  LmLoop(const LmRun& run, const engine::TrainHooks& hooks)
      : run_(run), hooks_(hooks), trainer_(run.model, run.windows, run.trainer), times_(run.checkpoints) {}

  Result<void> resume() {
    const std::vector<tensors::NamedTensor> state = trainer_.state();
    const auto loaded =
        tensors::load_newest_checkpoint(run_.disk, run_.directory, run_.fingerprint, state, hooks_.events);
    if (!loaded.ok()) return loaded.error();
    if (!loaded->has_value()) return {};
    if (auto changed = trainer_.state_changed(); !changed.ok()) return changed;
    const tensors::CheckpointInfo& info = **loaded;
    next_ = info.next_step;
    outcome_.resumed_at = next_;
    outcome_.cost_before = info.cost;
    recent_ = engine::RecentMean(info.losses, next_.value);
    hooks_.events("resumed", {{"step", next_.value}, {"from_run", info.run_id}});
    return {};
  }

  Result<LmOutcome> loop() {
    begin_ = run_.clock.now();
    times_.saved(begin_);
    bool stopped = false;
    while (next_.value < steps() && !stopped) {
      const Result<StepDone> done = trainer_.take_step(next_);
      if (!done.ok()) return done.error();
      ++next_;
      tell(*done);
      stopped = hooks_.stop_requested();
      if (auto saved = save_when_due(stopped); !saved.ok()) return saved.error();
    }
    outcome_.steps = next_.value;
    outcome_.all = next_.value == steps();
    outcome_.final_loss = recent_.mean();
    return outcome_;
  }

 private:
  [[nodiscard]] std::uint64_t steps() const { return run_.checkpoints.steps; }

  void tell(const StepDone& done) {
    if (done.skipped) {
      ++outcome_.skipped;
      hooks_.events("step_skipped", {{"step", next_.value - 1}, {"norm", done.norm}});
    }
    // Each step has a place, so that a resumed run has the sums of one that was never stopped.
    recent_.add(std::isfinite(done.loss) ? done.loss : recent_.mean());
    const std::uint64_t samples = next_.value * run_.trainer.batch;
    hooks_.on_step({.steps_done = next_.value,
                    .steps_total = steps(),
                    .samples_done = samples,
                    .epoch = static_cast<double>(samples) / static_cast<double>(run_.windows.windows()),
                    .loss = done.loss,
                    .learning_rate = done.rate});
  }

  [[nodiscard]] tensors::RunCost cost() const {
    tensors::RunCost cost{.load_seconds = run_.load_seconds,
                          .train_seconds = (run_.clock.now() - begin_).seconds(),
                          .cpu_seconds = run_.clock.process_cpu().seconds()};
    return cost += outcome_.cost_before;
  }

  Result<void> save_when_due(bool stopping) {
    const bool finished = next_.value == steps();
    const bool asked_for = stopping && !finished;
    if (!asked_for && !times_.due(next_, run_.clock.now())) return {};
    std::vector<tensors::NamedTensor> state = trainer_.state();
    if (finished) {
      std::erase_if(state,
                    [](const tensors::NamedTensor& one) { return one.use == tensors::TensorUse::kToGoOn; });
    }
    const auto saved = tensors::save_checkpoint(run_.disk, run_.directory,
                                                {.next_step = next_,
                                                 .run_id = run_.run_id,
                                                 .config_fingerprint = run_.fingerprint,
                                                 .finished = finished,
                                                 .cost = cost(),
                                                 .losses = recent_.losses()},
                                                state, run_.keep);
    times_.saved(run_.clock.now());
    if (saved.ok()) {
      hooks_.events("checkpoint_written", {{"step", next_.value}});
      return {};
    }
    hooks_.events("checkpoint_failed", {{"step", next_.value}, {"error", saved.error().message()}});
    return asked_for ? saved : Result<void>();
  }

  const LmRun& run_;
  const engine::TrainHooks& hooks_;
  LoneTrainer trainer_;
  engine::CheckpointTimes times_;
  engine::RecentMean recent_;
  StepNumber next_;
  LmOutcome outcome_;
  Instant begin_;
};

}  // namespace

Result<LmOutcome> train_lm(const LmRun& run, const engine::TrainHooks& hooks) {
  CHECK(run.trainer.schedule.steps == run.checkpoints.steps);
  LmLoop loop(run, hooks);
  if (auto resumed = loop.resume(); !resumed.ok()) return resumed.error();
  return loop.loop();
}

}  // namespace gossamer::pipeline
