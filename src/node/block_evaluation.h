// SPDX-License-Identifier: Apache-2.0
//
// TestBlocks: test records as rows of a model's features and numbers of its labels, collected and handed on a
// block at a time, so that memory does not grow with the test set. BlockEvaluation: hands them to a
// predictor, and measures its answers.
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
#include "learn/data/rows.h"
#include "node/queries.h"

namespace gossamer::node {

// Labels asked of the predictor for each record; ranks beyond are infinite.
inline constexpr std::size_t kEvaluationDepth = engine::kEvaluationDepth;
// Queries that go to a predictor together.
inline constexpr std::size_t kPredictBlock = 4 * engine::kQueryBlock;

class TestBlocks {
 public:
  // Of the model the network's shape is looked at, not its weights. `stop` is asked after every block; empty:
  // never.
  explicit TestBlocks(const engine::Model& model, std::function<bool()> stop = {})
      : model_(model), stop_(std::move(stop)), parser_(model) {}
  TestBlocks(const TestBlocks&) = delete;
  TestBlocks& operator=(const TestBlocks&) = delete;
  virtual ~TestBlocks() = default;

  [[nodiscard]] QueryBlock& queries() { return queries_; }
  // For records that are not yet rows of the model's features.
  [[nodiscard]] QueryParser& parser() { return parser_; }
  // The labels, strictly increasing, of the query that was added last. kFailed where `stop` said so.
  [[nodiscard]] Result<void> truth(std::span<const std::uint32_t> labels);
  // Hands on the queries that wait.
  [[nodiscard]] Result<void> run();
  [[nodiscard]] const engine::Model& model() const { return model_; }

 private:
  // As many of both.
  [[nodiscard]] virtual Result<void> take(const data::SparseRows& queries, const data::LabelSets& truth) = 0;

  const engine::Model& model_;
  std::function<bool()> stop_;
  QueryParser parser_;
  QueryBlock queries_;
  std::vector<std::uint32_t> labels_;
  std::vector<std::uint32_t> begin_ = {0};
};

class BlockEvaluation final : public TestBlocks {
 public:
  BlockEvaluation(const engine::Model& model, engine::Predictor& predictor, std::function<bool()> stop = {})
      : TestBlocks(model, std::move(stop)),
        predictor_(predictor),
        evaluator_(model.label_count, model.training_rows) {}

  // Of all queries that were evaluated.
  [[nodiscard]] engine::Metrics metrics() const {
    engine::Metrics metrics = evaluator_.metrics();
    metrics.retrieval = predictor_.recall();
    return metrics;
  }

 private:
  [[nodiscard]] Result<void> take(const data::SparseRows& queries, const data::LabelSets& truth) override;

  engine::Predictor& predictor_;
  engine::Evaluator evaluator_;
  engine::PredictionBlock out_;
};

}  // namespace gossamer::node
