// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/step_rows.h"

#include <gtest/gtest.h>

#include <set>

#include "learn/sparse/test_random_problem.h"

namespace gossamer::sparse {
namespace {

class StepRowsTest : public ::testing::Test {
 protected:
  static constexpr int kWorkers = 3;

  // Lists the output rows of all workers, and gives them.
  std::set<std::uint32_t> select(StepRows& rows) const {
    std::set<std::uint32_t> found;
    for (int worker = 0; worker < kWorkers; ++worker) {
      rows.select(worker, batch_.view(), StepNumber{4});
      for (const std::uint32_t row : rows.active(worker).ids()) {
        EXPECT_TRUE(found.insert(row).second) << "two workers own row " << row;
      }
    }
    EXPECT_EQ(rows.active_rows(), found.size());
    return found;
  }
  [[nodiscard]] StepRows rows_with(const NegativeSampler& sampler, const LogQCorrection& logq) const {
    return StepRows({.network = network_, .sampler = sampler, .logq = logq}, 9, kWorkers);
  }

  const ProblemShape shape_ = {.network = {.features = 40, .labels = 100, .hidden = 16}, .samples = 8};
  const LabelCounts counts_ = random_counts(100, 1);
  const Network network_ = random_network(shape_.network, counts_, 2);
  const OwnedBatch batch_ = random_batch(shape_, 3);
  const std::set<std::uint32_t> own_labels_{batch_.label.begin(), batch_.label.end()};
  const NegativeSampler none_{NegativeOptions{}, counts_};
  const LogQCorrection logq_{LogQ::kAll, none_, counts_.records};
};

// The labels and features of the batch are listed, each by one worker, and draws beside the labels.
TEST_F(StepRowsTest, ListsTheBatch) {
  StepRows rows = rows_with(none_, logq_);
  rows.begin(nullptr);
  EXPECT_TRUE(rows.holds_rows());
  EXPECT_FALSE(rows.asking());
  EXPECT_EQ(rows.askers(8), 0U);
  EXPECT_EQ(select(rows), own_labels_);
  EXPECT_EQ(rows.most_scores(batch_.view()), own_labels_.size() * 8);
  for (int worker = 0; worker < kWorkers; ++worker) rows.list_features(worker, batch_.view());
  const std::set<std::uint32_t> features(batch_.feature.begin(), batch_.feature.end());
  EXPECT_EQ(rows.unique_features(), features.size());
  EXPECT_GT(rows.bytes(), 0U);

  const NegativeSampler sampler({.kind = Negatives::kUniform, .sampled = 30}, counts_);
  StepRows drawn = rows_with(sampler, logq_);
  drawn.begin(nullptr);
  const std::set<std::uint32_t> with_draws = select(drawn);
  EXPECT_GT(with_draws.size(), own_labels_.size());
  EXPECT_LE(with_draws.size(), own_labels_.size() + 30);
  for (const std::uint32_t label : own_labels_) EXPECT_TRUE(with_draws.contains(label));
  EXPECT_EQ(select(drawn), with_draws) << "the same step draws the same";
}

// What samples found joins the rows, whether they ask in this step or what they found before is recalled.
TEST_F(StepRowsTest, AddsWhatWasFound) {
  FoundRows found(HashSets::kOwn, 2, 3);
  std::set<std::uint32_t> expected = own_labels_;
  for (const std::uint32_t row : {90U, 91U, 92U}) {
    found.add(1, row);
    expected.insert(row);
  }
  StepRows rows = rows_with(none_, logq_);
  rows.begin(&found);
  EXPECT_TRUE(rows.asking());
  EXPECT_EQ(rows.askers(8), 2U);
  EXPECT_EQ(rows.askers(1), 1U);
  EXPECT_EQ(select(rows), expected);
  // Each sample scores its own labels, and the two that ask up to three more.
  EXPECT_EQ(rows.most_scores(batch_.view()), batch_.label.size() + std::size_t{2} * 3);
  rows.begin(nullptr);
  EXPECT_EQ(select(rows), own_labels_);
  rows.recall(found);
  EXPECT_FALSE(rows.asking());
  EXPECT_EQ(rows.askers(8), 2U);
  EXPECT_EQ(select(rows), expected);
}

// A node without output rows lists none.
TEST_F(StepRowsTest, HoldsNoRows) {
  NetworkPart part = whole(shape_.network);
  part.rows.drop(0);
  const Network empty(shape_.network, part, {.embedding = Moments::kElement, .output = Moments::kElement});
  StepRows rows({.network = empty, .sampler = none_, .logq = logq_}, 9, kWorkers);
  EXPECT_FALSE(rows.holds_rows());
  rows.begin(nullptr);
  EXPECT_TRUE(select(rows).empty());
}

}  // namespace
}  // namespace gossamer::sparse
