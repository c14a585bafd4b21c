// SPDX-License-Identifier: Apache-2.0
//
// StepWatch shows the progress line and writes metrics.jsonl while the steps go by. Each line of
// metrics.jsonl has the mean of about a thousandth of the run. The cost is a clock reading a step.
//
// Thread rule: the training loop's thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "engines/run/train_hooks.h"
#include "run/node_host.h"
#include "run/progress.h"
#include "run/run_log.h"

namespace gossamer::commands {

class StepWatch {
 public:
  StepWatch(const run::NodeHost& host, run::RunLog& log, std::uint64_t batch);

  void on_step(const engine::TrainProgress& progress);
  void finish() { bar_.finish(); }

  // Steps that this process has done.
  [[nodiscard]] std::uint64_t steps_seen() const { return steps_seen_; }
  // Why the earlier part of the log could not be continued.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  void write_metric(const engine::TrainProgress& progress);

  const run::NodeHost& host_;
  run::RunLog& log_;
  std::uint64_t batch_;
  run::Progress bar_;
  std::uint64_t steps_seen_ = 0;
  double loss_sum_ = 0;
  std::uint64_t loss_count_ = 0;
  Instant last_line_;
  std::optional<Error> error_;
};

}  // namespace gossamer::commands
