// SPDX-License-Identifier: Apache-2.0
//
// BlockEvaluation: test records in, metrics out. Records are collected and sent through the predictor a block
// at a time, so memory does not grow with the test set.
//
//   evaluation.queries().add(row, features);   // then
//   evaluation.truth(labels);                             // for each record
//   evaluation.run();                                     // what is left
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
#include "engines/sparse/evaluation.h"
#include "engines/sparse/model.h"
#include "engines/sparse/predictor.h"
#include "node/queries.h"

namespace gossamer::node {

// Labels asked of the predictor for each record; ranks beyond are infinite.
inline constexpr std::size_t kEvaluationDepth = 100;
// Queries that go to a predictor together.
inline constexpr std::size_t kPredictBlock = 4 * engine::kQueryBlock;

class BlockEvaluation {
 public:
  // `stop` is asked after every block; empty: never.
  BlockEvaluation(const engine::Model& model, engine::Predictor& predictor, std::function<bool()> stop = {})
      : model_(model),
        predictor_(predictor),
        stop_(std::move(stop)),
        evaluator_(model.label_count, model.training_rows),
        parser_(model) {}

  [[nodiscard]] QueryBlock& queries() { return queries_; }
  // For records that are not yet rows of the model's features.
  [[nodiscard]] QueryParser& parser() { return parser_; }
  // The labels, strictly increasing, of the query that was added last. kFailed where `stop` said so.
  [[nodiscard]] Result<void> truth(std::span<const std::uint32_t> labels);
  // Evaluates the queries that wait.
  void run();
  // Of all queries that were evaluated.
  [[nodiscard]] engine::Metrics metrics() const {
    engine::Metrics metrics = evaluator_.metrics();
    metrics.retrieval = predictor_.recall();
    return metrics;
  }
  [[nodiscard]] const engine::Model& model() const { return model_; }

 private:
  const engine::Model& model_;
  engine::Predictor& predictor_;
  std::function<bool()> stop_;
  engine::Evaluator evaluator_;
  QueryParser parser_;
  QueryBlock queries_;
  std::vector<std::uint32_t> labels_;
  std::vector<std::size_t> begin_ = {0};
  engine::PredictionBlock out_;
};

}  // namespace gossamer::node
