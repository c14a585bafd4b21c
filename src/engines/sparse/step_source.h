// SPDX-License-Identifier: Apache-2.0
//
// StepSource: where the samples of a training step come from. Records of a dataset by the sampling plan
// (batch_reader.h: RecordSteps), or windows of a text, made as they are needed (WindowSteps).
//
// Thread rule: the training loop's thread, which owns the Compute that shares the work.
#pragma once

#include "base/ids.h"
#include "learn/data/rows.h"
#include "learn/data/text_windows.h"

namespace gossamer::engine {

class StepSource {
 public:
  StepSource() = default;
  StepSource(const StepSource&) = delete;
  StepSource& operator=(const StepSource&) = delete;
  virtual ~StepSource() = default;

  // The samples of a step, the same whenever they are asked for; between 1 and train.batch. Valid until the
  // next call.
  [[nodiscard]] virtual data::Batch read(StepNumber step) = 0;
};

class WindowSteps final : public StepSource {
 public:
  // Borrows `windows` for its life.
  explicit WindowSteps(data::TextWindows& windows) : windows_(windows) {}
  [[nodiscard]] data::Batch read(StepNumber step) override { return windows_.read_step(step); }

 private:
  data::TextWindows& windows_;
};

}  // namespace gossamer::engine
