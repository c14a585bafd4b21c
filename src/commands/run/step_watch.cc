// SPDX-License-Identifier: Apache-2.0
#include "commands/run/step_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gossamer::commands {
namespace {

constexpr std::uint64_t kLines = 1000;  // lines of metrics.jsonl in a whole run, about

std::uint64_t steps_of_a_line(std::uint64_t steps_total) {
  return std::max<std::uint64_t>(1, steps_total / kLines);
}

}  // namespace

StepNumber StepWatch::first_of_line(StepNumber step, std::uint64_t steps_total) {
  return StepNumber(step.value - step.value % steps_of_a_line(steps_total));
}

StepWatch::StepWatch(const run::NodeHost& host, run::RunLog& log, std::uint64_t batch)
    : host_(host),
      log_(log),
      batch_(batch),
      bar_(host.console, host.clock, "train", host.verbosity),
      last_line_(host.clock.now()) {}

void StepWatch::on_step(const engine::TrainProgress& progress) {
  const std::uint64_t before = progress.steps_done - 1;
  if (!before_first_ || before < last_) {
    const auto done = log_.continue_at(before);
    if (!done.ok()) error_ = done.error();
    before_first_ = std::min(before_first_.value_or(before), before);
    loss_sum_ = 0;
    loss_count_ = 0;
    timed_ = true;
  }
  last_ = progress.steps_done;
  timed_ = timed_ && progress.just_done;
  loss_sum_ += progress.loss;
  ++loss_count_;
  const std::uint64_t every = steps_of_a_line(progress.steps_total);
  const bool last = progress.steps_done == progress.steps_total;
  if (progress.steps_done % every == 0 || last) write_metric(progress);
  if (!bar_.due() && !last) return;
  bar_.update({.done = progress.steps_done,
               .total = progress.steps_total,
               .unit = "step",
               .detail = fmt::format("loss {:.3f}  epoch {:.1f}", progress.loss, progress.epoch)});
}

void StepWatch::write_metric(const engine::TrainProgress& progress) {
  const Instant now = host_.clock.now();
  const double seconds = (now - last_line_).seconds();
  last_line_ = now;
  const auto count = static_cast<double>(loss_count_);
  std::optional<double> rate;
  if (std::exchange(timed_, true)) rate = seconds > 0 ? count * static_cast<double>(batch_) / seconds : 0;
  log_.metric({.step = progress.steps_done,
               .epoch = progress.epoch,
               .loss = loss_sum_ / count,
               .learning_rate = progress.learning_rate,
               .samples_per_second = rate,
               .active_rows = progress.active_rows});
  loss_sum_ = 0;
  loss_count_ = 0;
}

}  // namespace gossamer::commands
