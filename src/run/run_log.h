// SPDX-License-Identifier: Apache-2.0
//
// RunLog writes metrics.jsonl and events.jsonl of a run, line by line as things happen. After a crash the
// last line may be torn, and metrics beyond the checkpoint may stand there. continue_at() drops such metrics,
// so that a resumed run's curve looks like that of a run that was never stopped. Events stay: they happened.
//
// The log is never worth more than the run. An error while writing is kept (first_error) and shown
// at the end, and the run goes on. Text that such an error or a crash tore stays as a line of its own. Owner
// and thread: the training loop's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "host/api/clock.h"
#include "host/api/disk.h"
#include "run/curve_svg.h"

namespace gossamer::run {

struct MetricLine {
  std::uint64_t step = 0;  // steps done
  double epoch = 0;
  double loss = 0;  // mean since the line before
  double learning_rate = 0;
  std::optional<double> samples_per_second = {};  // nothing: left out
  std::optional<std::uint64_t> active_rows = {};  // nothing: left out
};

class RunLog {
 public:
  struct Files {
    std::string metrics;
    std::string events;
  };
  // Borrows disk and clock for its life.
  RunLog(host::Disk& disk, const host::Clock& clock, Files files);

  // Keeps the metrics of steps up to and including `step`, drops the rest. The next metric
  // follows them.
  [[nodiscard]] Result<void> continue_at(std::uint64_t step);

  void metric(const MetricLine& line);
  void event(std::string_view name, EventFields fields);

  [[nodiscard]] const std::vector<CurvePoint>& curve() const { return curve_; }
  [[nodiscard]] const std::optional<Error>& first_error() const { return first_error_; }

 private:
  struct Lines {
    std::unique_ptr<host::WritableFile> file = nullptr;
    bool torn = false;  // the last line may not be whole
  };
  void append(Lines& lines, const std::string& path, const std::string& line);

  host::Disk& disk_;
  const host::Clock& clock_;
  Files files_;
  Lines metrics_;
  Lines events_;
  std::vector<CurvePoint> curve_;
  std::optional<Error> first_error_;
};

}  // namespace gossamer::run
