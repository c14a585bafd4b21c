// SPDX-License-Identifier: Apache-2.0
//
// BlockEvaluation hands blocks of test records (commands/records/evaluation_set.h) to a predictor and
// measures its answers.
//
// Thread rule: the thread that owns the predictor. Borrows model and predictor for its life.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "commands/records/evaluation_set.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/predict/evaluation.h"
#include "engines/sparse/predict/predictor.h"
#include "learn/data/rows.h"

namespace gossamer::commands {

// How many labels the predictor is asked for, for each record. A label beyond them has an infinite rank.
inline constexpr std::size_t kEvaluationDepth = sparse_engine::kEvaluationDepth;
// How many queries go to a predictor together.
inline constexpr std::size_t kPredictBlock = 4 * sparse_engine::kQueryBlock;

class BlockEvaluation final : public TestBlocks {
 public:
  BlockEvaluation(const sparse_engine::Model& model, sparse_engine::Predictor& predictor,
                  std::function<bool()> stop = {})
      : TestBlocks(model, kPredictBlock, std::move(stop)),
        predictor_(predictor),
        evaluator_(model.label_count, model.training_rows) {}

  // The metrics of all queries that were evaluated.
  [[nodiscard]] sparse_engine::Metrics metrics() const {
    sparse_engine::Metrics metrics = evaluator_.metrics();
    metrics.retrieval = predictor_.recall();
    metrics.nothing_known = nothing_known();
    return metrics;
  }

 private:
  [[nodiscard]] Result<void> take(const data::SparseRows& queries, const data::LabelSets& truth) override;

  sparse_engine::Predictor& predictor_;
  sparse_engine::Evaluator evaluator_;
  sparse_engine::PredictionBlock out_;
};

}  // namespace gossamer::commands
