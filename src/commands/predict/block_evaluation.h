// SPDX-License-Identifier: Apache-2.0
//
// TestBlocks collects test records as rows of a model's features and numbers of its labels. It hands them on
// a block at a time, so that memory does not grow with the test set. BlockEvaluation hands the blocks to a
// predictor and measures its answers.
//
//   evaluation.queries().add(row, features);  // for each record
//   evaluation.truth(labels);                 // and its labels
//   evaluation.run();                         // at the end: the queries that wait
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
#include "commands/records/queries.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/predict/evaluation.h"
#include "engines/sparse/predict/predictor.h"
#include "learn/data/rows.h"

namespace gossamer::commands {

// How many labels the predictor is asked for, for each record. A label beyond them has an infinite rank.
inline constexpr std::size_t kEvaluationDepth = sparse_engine::kEvaluationDepth;
// How many queries go to a predictor together.
inline constexpr std::size_t kPredictBlock = 4 * sparse_engine::kQueryBlock;

class TestBlocks {
 public:
  // The model gives the network's shape; its weights are not looked at. `stop` is asked after every block;
  // empty means that nobody stops it.
  explicit TestBlocks(const sparse_engine::Model& model, std::function<bool()> stop = {})
      : model_(model), stop_(std::move(stop)), parser_(model) {}
  TestBlocks(const TestBlocks&) = delete;
  TestBlocks& operator=(const TestBlocks&) = delete;
  virtual ~TestBlocks() = default;

  [[nodiscard]] QueryBlock& queries() { return queries_; }
  // For records that are not yet rows of the model's features.
  [[nodiscard]] QueryParser& parser() { return parser_; }
  // Gives the labels, strictly increasing, of the query that was added last. kFailed where `stop` said so.
  [[nodiscard]] Result<void> truth(std::span<const std::uint32_t> labels);
  // Hands on the queries that wait.
  [[nodiscard]] Result<void> run();
  [[nodiscard]] const sparse_engine::Model& model() const { return model_; }

 private:
  // Takes as many queries as label sets.
  [[nodiscard]] virtual Result<void> take(const data::SparseRows& queries, const data::LabelSets& truth) = 0;

  const sparse_engine::Model& model_;
  std::function<bool()> stop_;
  QueryParser parser_;
  QueryBlock queries_;
  std::vector<std::uint32_t> labels_;
  std::vector<std::uint32_t> begin_ = {0};
};

class BlockEvaluation final : public TestBlocks {
 public:
  BlockEvaluation(const sparse_engine::Model& model, sparse_engine::Predictor& predictor,
                  std::function<bool()> stop = {})
      : TestBlocks(model, std::move(stop)),
        predictor_(predictor),
        evaluator_(model.label_count, model.training_rows) {}

  // The metrics of all queries that were evaluated.
  [[nodiscard]] sparse_engine::Metrics metrics() const {
    sparse_engine::Metrics metrics = evaluator_.metrics();
    metrics.retrieval = predictor_.recall();
    return metrics;
  }

 private:
  [[nodiscard]] Result<void> take(const data::SparseRows& queries, const data::LabelSets& truth) override;

  sparse_engine::Predictor& predictor_;
  sparse_engine::Evaluator evaluator_;
  sparse_engine::PredictionBlock out_;
};

}  // namespace gossamer::commands
