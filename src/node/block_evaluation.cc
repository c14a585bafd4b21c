// SPDX-License-Identifier: Apache-2.0
#include "node/block_evaluation.h"

#include "base/check.h"

namespace gossamer::node {

Result<void> BlockEvaluation::truth(std::span<const std::uint32_t> labels) {
  CHECK(queries_.size() == begin_.size(), queries_.size(), begin_.size());
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  begin_.push_back(labels_.size());
  if (queries_.size() < kPredictBlock) return {};
  run();
  if (stop_ && stop_()) return Error{.kind = ErrorKind::kFailed, .where = "evaluation", .what = "stopped"};
  return {};
}

void BlockEvaluation::run() {
  if (queries_.size() == 0) return;
  predictor_.predict(queries_.rows(), kEvaluationDepth, out_);
  for (std::size_t q = 0; q < queries_.size(); ++q) {
    evaluator_.add(out_.row(q), std::span(labels_).subspan(begin_[q], begin_[q + 1] - begin_[q]));
  }
  queries_.clear();
  labels_.clear();
  begin_.assign(1, 0);
}

}  // namespace gossamer::node
