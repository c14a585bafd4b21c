// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/train/lone_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "engines/pipeline/stage/stage_state.h"
#include "exact/floating_modes.h"

namespace gossamer::pipeline {
namespace {

constexpr const char* kNotFinite = "the gradient is not finite";

// Runs calls of a task until nothing follows.
template <class Next>
Result<void> run_out(Next&& next) {
  for (;;) {
    const Result<bool> more = next();
    if (!more.ok()) return more.error();
    if (!*more) return {};
  }
}

// Nobody waits for the gradient of the input, so each product is added at once: those that wait take as much
// memory as the graphs of their layers.
Result<void> pass_back(StageTask& task) {
  return run_out([&task]() -> Result<bool> {
    const Result<bool> more = task.backward_next();
    while (more.ok() && task.can_add()) {
      if (const Result<bool> added = task.add_next(); !added.ok()) return added.error();
    }
    return more;
  });
}

}  // namespace

bool tells_of_no_finite_gradient(const Error& error) { return error.what == kNotFinite; }

LoneTrainer::LoneTrainer(StageBackend& model, const tokens::TokenWindows& windows,
                         const TrainerOptions& options)
    : model_(model), windows_(windows), options_(options), optimizer_(model, options.adamw) {
  CHECK(model.cut().has_embedding() && model.cut().has_head());
  CHECK(options.batch >= 1 && options.microbatch >= 1 && windows.context() <= model.context());
}

std::vector<LoneTrainer::Part> LoneTrainer::parts(StepNumber step) const {
  std::vector<Part> parts;
  const std::uint64_t begin = step.value * options_.batch;
  for (std::uint64_t from = 0; from < options_.batch; from += options_.microbatch) {
    const std::uint64_t count = std::min<std::uint64_t>(options_.microbatch, options_.batch - from);
    parts.push_back({.first = SampleId(begin + from), .count = static_cast<std::uint32_t>(count)});
  }
  return parts;
}

Result<LossSum> LoneTrainer::add(const Part& part) {
  const std::size_t context = windows_.context();
  inputs_.resize(part.count * context);
  targets_.resize(part.count * context);
  for (std::size_t i = 0; i < part.count; ++i) {
    windows_.read(SampleId(part.first.value + i), std::span(inputs_).subspan(i * context, context),
                  std::span(targets_).subspan(i * context, context));
  }
  const auto begun = model_.begin(
      {.windows = part.count, .context = windows_.context(), .tokens = inputs_, .targets = targets_},
      options_.keep);
  if (!begun.ok()) return begun.error();
  const std::unique_ptr<StageTask>& task = *begun;
  if (auto done = run_out([&] { return task->forward_next(); }); !done.ok()) return done.error();
  if (auto done = task->begin_backward({}); !done.ok()) return done.error();
  if (auto done = pass_back(*task); !done.ok()) return done.error();
  return task->loss();
}

Result<StepDone> LoneTrainer::take_step(StepNumber step) {
  LossSum sum;
  for (const Part& part : parts(step)) {
    const Result<LossSum> loss = add(part);
    if (!loss.ok()) return failed(loss.error());
    sum.loss += loss->loss;
    sum.tokens += loss->tokens;
  }
  const exact::FloatingModes modes;
  const auto tokens = static_cast<double>(sum.tokens);
  const StepDone done{.loss = sum.loss / tokens,
                      .norm = std::sqrt(optimizer_.squared_norm()) / tokens,
                      .rate = exact::learning_rate(options_.schedule, step.value),
                      .tokens = sum.tokens};
  if (!std::isfinite(done.norm) || !std::isfinite(done.loss)) return give_up(step, done);
  optimizer_.begin_step({.step = step.value,
                         .rate = done.rate,
                         .gradient_scale = exact::clip_factor(done.norm, options_.clip) / tokens});
  while (optimizer_.apply_next()) continue;
  if (auto changed = model_.weights_changed(); !changed.ok()) return changed.error();
  return done;
}

Error LoneTrainer::failed(Error error) {
  optimizer_.clear_gradients();
  return error;
}

Result<StepDone> LoneTrainer::give_up(StepNumber step, const StepDone& done) {
  optimizer_.clear_gradients();
  if (options_.bad_steps == BadSteps::kSkip) {
    StepDone skipped = done;
    skipped.skipped = true;
    return skipped;
  }
  return why_not_finite(step);
}

// Takes each microbatch alone. Sums of finite numbers may be infinite, so it may be none of them.
Error LoneTrainer::why_not_finite(StepNumber step) {
  Error error{.where = fmt::format("step {}", step.value),
              .what = kNotFinite,
              .got = "a sum over all microbatches that is not, though each of them is",
              .expected = "finite numbers",
              .fix = "lower train.lr, or leave such steps out with train.skip_bad=true"};
  for (const Part& part : parts(step)) {
    const Result<LossSum> loss = add(part);
    if (!loss.ok()) return failed(loss.error());
    const bool finite = std::isfinite(loss->loss) && std::isfinite(optimizer_.squared_norm());
    optimizer_.clear_gradients();
    if (finite) continue;
    std::vector<std::uint64_t> windows;
    for (std::uint64_t i = 0; i < part.count; ++i)
      windows.push_back(windows_.window(SampleId(part.first.value + i)));
    error.got = fmt::format("a loss of {} over window {}", loss->loss, fmt::join(windows, ", "));
    break;
  }
  return error;
}

std::vector<tensors::NamedTensor> LoneTrainer::state() { return stage_state(model_, optimizer_); }

Result<void> LoneTrainer::state_changed() {
  optimizer_.state_changed();
  return model_.weights_changed();
}

}  // namespace gossamer::pipeline
