// SPDX-License-Identifier: Apache-2.0
#include "commands/predict/block_evaluation.h"

#include <gtest/gtest.h>

#include <vector>

namespace gossamer::commands {
namespace {

// A predictor that names every query's first feature as its only label, and counts the queries.
class EchoPredictor final : public sparse_engine::Predictor {
 public:
  Result<void> predict(const data::SparseRows& queries, std::size_t top_k,
                       sparse_engine::PredictionBlock& out) override {
    if (fails) return Error{.where = "nodes"};
    EXPECT_LE(queries.rows(), kPredictBlock);
    EXPECT_EQ(top_k, kEvaluationDepth);
    seen += queries.rows();
    out.top_k = top_k;
    out.count.assign(queries.rows(), 1);
    out.entries.assign(queries.rows() * top_k, {});
    for (std::size_t q = 0; q < queries.rows(); ++q) out.entries[q * top_k].id = queries.row(q).index[0];
    return {};
  }
  std::size_t seen = 0;
  bool fails = false;
};

// Every record is asked for once, across blocks, and its answer meets its own labels.
// Records may have no label or several.
TEST(BlockEvaluation, AsksForEveryRecordOnce) {
  for (const std::uint32_t records : {0U, 1U, 1023U, 1024U, 1025U, 2500U}) {
    sparse_engine::Model model;
    model.training_rows = 10;
    EchoPredictor predictor;
    BlockEvaluation evaluation(model, predictor);
    std::uint32_t right = 0;
    std::uint32_t labelled = 0;
    for (std::uint32_t i = 0; i < records; ++i) {
      const std::vector<std::uint32_t> index = {i};
      const std::vector<float> value = {1};
      evaluation.queries().add({index, value}, records);
      std::vector<std::uint32_t> labels;
      if (i % 5 != 0) labels = {i + i % 2, i + 9};  // the even ones are right
      ASSERT_TRUE(evaluation.truth(labels).ok());
      labelled += i % 5 != 0 ? 1 : 0;
      right += i % 5 != 0 && i % 2 == 0 ? 1 : 0;
    }
    ASSERT_TRUE(evaluation.run().ok());
    ASSERT_TRUE(evaluation.run().ok());  // nothing is left
    EXPECT_EQ(predictor.seen, records);
    const sparse_engine::Metrics metrics = evaluation.metrics();
    EXPECT_EQ(metrics.samples, labelled);
    EXPECT_EQ(metrics.without_labels, records - labelled);
    EXPECT_NEAR(metrics.precision[0], labelled == 0 ? 0.0 : 100.0 * right / labelled, 1e-9) << records;
  }
}

// A stop ends the evaluation after one block, not after the whole test set.
TEST(BlockEvaluation, StopsBetweenBlocks) {
  sparse_engine::Model model;
  model.training_rows = 10;
  EchoPredictor predictor;
  bool stop = false;
  BlockEvaluation evaluation(model, predictor, [&stop] { return stop; });
  const std::vector<std::uint32_t> index = {0};
  const std::vector<float> value = {1};
  const std::vector<std::uint32_t> labels = {1};
  std::size_t records = 0;
  for (bool going = true; going && records < 3 * kPredictBlock; ++records) {
    stop = records > kPredictBlock;
    evaluation.queries().add({index, value}, 1);
    going = evaluation.truth(labels).ok();
  }
  EXPECT_EQ(records, 2 * kPredictBlock);
  EXPECT_EQ(predictor.seen, records);
}

// A predictor that fails ends the evaluation.
TEST(BlockEvaluation, FailsWithItsPredictor) {
  sparse_engine::Model model;
  EchoPredictor predictor;
  predictor.fails = true;
  BlockEvaluation evaluation(model, predictor);
  const std::vector<std::uint32_t> index = {0};
  const std::vector<float> value = {1};
  evaluation.queries().add({index, value}, 1);
  ASSERT_TRUE(evaluation.truth({}).ok());
  const auto done = evaluation.run();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().where, "nodes");
}

}  // namespace
}  // namespace gossamer::commands
