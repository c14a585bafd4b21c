// SPDX-License-Identifier: Apache-2.0
#include "commands/predict/block_evaluation.h"

namespace gossamer::commands {

Result<void> BlockEvaluation::take(const data::SparseRows& queries, const data::LabelSets& truth) {
  if (auto done = predictor_.predict(queries, kEvaluationDepth, out_); !done.ok()) return done;
  for (std::size_t q = 0; q < queries.rows(); ++q) evaluator_.add(out_.row(q), truth.row(q));
  return {};
}

}  // namespace gossamer::commands
