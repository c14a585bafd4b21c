// SPDX-License-Identifier: Apache-2.0
//
// StepSource: the source of a training step's samples. RecordSteps (batch_reader.h) gives records of a
// dataset by the sampling plan. WindowSteps gives windows of a text, made as they are needed. RowSteps puts
// output rows for labels, as the learner wants them.
//
// Thread rule: the training loop's thread, which owns the Compute that shares the work.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "learn/data/rows.h"
#include "learn/data/text_windows.h"
#include "learn/sparse/network/row_order.h"

namespace gossamer::sparse_engine {

class StepSource {
 public:
  StepSource() = default;
  StepSource(const StepSource&) = delete;
  StepSource& operator=(const StepSource&) = delete;
  virtual ~StepSource() = default;

  // The samples of a step, the same at every call; between 1 and train.batch. Valid until the next call.
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

// The samples of other steps, with each label's output row in its place. Their order stays.
class RowSteps final : public StepSource {
 public:
  // Borrows both for its life.
  RowSteps(StepSource& steps, const sparse::RowOrder& order) : steps_(steps), order_(order) {}
  [[nodiscard]] data::Batch read(StepNumber step) override {
    data::Batch batch = steps_.read(step);
    if (order_.identity()) return batch;
    const std::span<const std::uint32_t> labels = batch.labels.label;
    if (rows_.size() < labels.size()) rows_.resize(labels.size());
    std::ranges::transform(labels, rows_.begin(),
                           [this](std::uint32_t label) { return order_.row_of(label); });
    batch.labels.label = std::span(rows_).first(labels.size());
    return batch;
  }

 private:
  StepSource& steps_;
  const sparse::RowOrder& order_;
  std::vector<std::uint32_t> rows_;
};

}  // namespace gossamer::sparse_engine
