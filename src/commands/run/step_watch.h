// SPDX-License-Identifier: Apache-2.0
//
// StepWatch shows the progress line and writes metrics.jsonl while the steps go by. Each line of
// metrics.jsonl has the mean of about a thousandth of the run. The cost is a clock reading a step.
//
// Thread rule: the training loop's thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "base/result.h"
#include "engines/run/train_hooks.h"
#include "run/node_host.h"
#include "run/progress.h"
#include "run/run_log.h"

namespace gossamer::commands {

class StepWatch {
 public:
  StepWatch(const run::NodeHost& host, run::RunLog& log, std::uint64_t batch);

  // A step that is not behind the one before takes the log back to it. It is the first of a line then.
  void on_step(const engine::TrainProgress& progress);
  // The first step of the line that `step` is in.
  [[nodiscard]] static StepNumber first_of_line(StepNumber step, std::uint64_t steps_total);
  void finish() { bar_.finish(); }

  // Steps from the first one that this process was told of to the last one.
  [[nodiscard]] std::uint64_t steps_seen() const { return last_ - before_first_.value_or(last_); }
  // Why the earlier part of the log could not be continued.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  void write_metric(const engine::TrainProgress& progress);

  const run::NodeHost& host_;
  run::RunLog& log_;
  std::uint64_t batch_;
  run::Progress bar_;
  std::optional<std::uint64_t> before_first_;  // steps done before the first one that it was told of
  std::uint64_t last_ = 0;
  double loss_sum_ = 0;
  std::uint64_t loss_count_ = 0;
  bool timed_ = true;  // all steps of the next line were told as they were done
  Instant last_line_;
  std::optional<Error> error_;
};

}  // namespace gossamer::commands
