// SPDX-License-Identifier: Apache-2.0
#include "commands/predict/block_evaluation.h"

#include "base/check.h"

namespace gossamer::commands {

Result<void> TestBlocks::truth(std::span<const std::uint32_t> labels) {
  CHECK(queries_.size() == begin_.size(), queries_.size(), begin_.size());
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  begin_.push_back(static_cast<std::uint32_t>(labels_.size()));
  if (queries_.size() < kPredictBlock) return {};
  if (auto done = run(); !done.ok()) return done;
  if (stop_ && stop_()) return Error{.kind = ErrorKind::kFailed, .where = "evaluation", .what = "stopped"};
  return {};
}

Result<void> TestBlocks::run() {
  if (queries_.size() == 0) return {};
  auto taken = take(queries_.rows(), {.begin = begin_, .label = labels_});
  queries_.clear();
  labels_.clear();
  begin_.assign(1, 0);
  return taken;
}

Result<void> BlockEvaluation::take(const data::SparseRows& queries, const data::LabelSets& truth) {
  if (auto done = predictor_.predict(queries, kEvaluationDepth, out_); !done.ok()) return done;
  for (std::size_t q = 0; q < queries.rows(); ++q) evaluator_.add(out_.row(q), truth.row(q));
  return {};
}

}  // namespace gossamer::commands
