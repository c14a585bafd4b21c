// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/negatives/negatives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "learn/data/in_memory_dataset.h"
#include "learn/sparse/negatives/logq.h"
#include "learn/sparse/test_random_problem.h"
#include "learn/sparse/test_reference_learner.h"

namespace gossamer::sparse {
namespace {

// Labels are drawn in proportion to count^exponent (within five standard errors), never with a count of 0.
// chance() is the share of steps in which a label is drawn.
TEST(NegativeSampler, DrawsByFrequency) {
  const LabelCounts labels{.count = {5, 0, 1, 40, 0, 7, 200}, .records = 200};
  for (const Negatives kind : {Negatives::kUniform, Negatives::kFrequency}) {
    const NegativeSampler sampler({.kind = kind, .sampled = 3, .exponent = 0.5}, labels);
    ASSERT_EQ(sampler.draws(), 3U);
    constexpr int kSteps = 40000;
    std::vector<double> drawn(labels.count.size());
    std::vector<double> steps(labels.count.size());
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      Rng rng(1, Purpose::kTest, step);
      std::set<std::uint32_t> seen;
      sampler.draw_all(rng, [&](std::uint32_t label) {
        ++drawn[label];
        seen.insert(label);
      });
      for (const std::uint32_t label : seen) ++steps[label];
    }
    double total = 0;
    for (const std::uint32_t c : labels.count) {
      if (c > 0) total += kind == Negatives::kUniform ? 1 : std::sqrt(c);
    }
    for (std::size_t label = 0; label < drawn.size(); ++label) {
      const std::uint32_t c = labels.count[label];
      const double p = c == 0 ? 0 : (kind == Negatives::kUniform ? 1 : std::sqrt(c)) / total;
      EXPECT_NEAR(drawn[label] / (3 * kSteps), p, 5 * std::sqrt(p * (1 - p) / (3 * kSteps)) + 1e-12) << label;
      const double q = sampler.chance(c);
      EXPECT_NEAR(q, 1 - std::pow(1 - p, 3), 1e-9);
      EXPECT_NEAR(steps[label] / kSteps, q, 5 * std::sqrt(q * (1 - q) / kSteps) + 1e-12) << label;
    }
  }
}

// The same labels are drawn in any order of rows.
TEST(NegativeSampler, DrawsTheSameLabelsInAnyOrder) {
  const LabelCounts labels = random_counts(100, 3);
  const RowOrder order(labels.count, 3);
  for (const Negatives kind : {Negatives::kUniform, Negatives::kFrequency}) {
    const NegativeOptions options = {.kind = kind, .sampled = 70};
    const NegativeSampler plain(options, labels);
    const NegativeSampler ordered(options, by_row(labels, order), order);
    std::vector<std::uint32_t> want;
    std::vector<std::uint32_t> got;
    Rng rng(1, Purpose::kTest);
    plain.draw_all(rng, [&](std::uint32_t label) { want.push_back(label); });
    Rng again(1, Purpose::kTest);
    ordered.draw_all(again, [&](std::uint32_t row) { got.push_back(order.label_of(row)); });
    EXPECT_EQ(got, want);
    EXPECT_EQ(ordered.chance(7), plain.chance(7));
  }
}

// Counts are records per label.
TEST(LabelCounts, CountRecords) {
  data::InMemoryDataset dataset({.features = 1, .labels = 4});
  dataset.add({0}, {1.0F}, {0, 2});
  dataset.add({0}, {1.0F}, {});
  dataset.add({0}, {1.0F}, {2});
  const LabelCounts labels = count_labels(dataset);
  EXPECT_EQ(labels.count, (std::vector<std::uint32_t>{1, 0, 2, 0}));
  EXPECT_EQ(labels.records, 3U);
}

// Nothing is drawn for in-batch or hashed negatives, for zero draws, or where no label was ever seen.
TEST(NegativeSampler, DrawsNothingWhereThereIsNothing) {
  const LabelCounts labels{.count = {1, 2}, .records = 3};
  for (const Negatives kind : {Negatives::kInBatch, Negatives::kLsh}) {
    EXPECT_EQ(NegativeSampler({.kind = kind, .sampled = 5}, labels).draws(), 0U);
  }
  EXPECT_EQ(NegativeSampler({.kind = Negatives::kUniform, .sampled = 0}, labels).draws(), 0U);
  const LabelCounts unseen{.count = {0, 0}, .records = 3};
  const NegativeSampler nothing({.kind = Negatives::kUniform, .sampled = 5}, unseen);
  EXPECT_EQ(nothing.draws(), 0U);
  EXPECT_EQ(nothing.chance(1), 0);
}

// Corrections follow their formulas, below and above the table's end.
TEST(LogQ, FollowsItsFormulas) {
  const LabelCounts labels{.count = {3, 40, 5000, 1}, .records = 10000};
  const NegativeSampler sampler({.kind = Negatives::kUniform, .sampled = 1}, labels);
  LogQCorrection all(LogQ::kAll, sampler, labels.records);
  LogQCorrection exact(LogQ::kExact, sampler, labels.records);
  LogQCorrection none(LogQ::kNone, sampler, labels.records);
  for (const std::size_t batch : {std::size_t{1}, std::size_t{256}}) {
    for (LogQCorrection* c : {&all, &exact, &none}) c->set_batch(batch);
    for (const std::uint32_t f : {1U, 3U, 40U, 5000U}) {
      const double b = static_cast<double>(batch);
      const double missed = 1 - 0.25;
      EXPECT_NEAR(all.correction(f), -std::log(1 - std::exp(-b * f / 10000) * missed), 1e-5);
      EXPECT_NEAR(exact.correction(f), -std::log(1 - std::pow(1 - f / 10000.0, b - 1) * missed), 1e-5);
      EXPECT_EQ(none.correction(f), 0);
    }
  }
}

// The exact correction's partition sum is unbiased given the sample. Over random batches that contain sample
// 0, the mean of the corrected sum is the sum over all labels (within five standard errors).
TEST(LogQ, ExactPartitionSumIsUnbiased) {
  constexpr std::size_t kRecords = 60;
  constexpr std::size_t kBatch = 8;
  constexpr int kTrials = 30000;
  const ProblemShape shape = {.network = {.features = 3, .labels = 25}, .samples = kRecords};
  const OwnedBatch records = random_batch(shape, 9);
  LabelCounts labels{.count = std::vector<std::uint32_t>(25), .records = kRecords};
  for (const std::uint32_t label : records.label) ++labels.count[label];
  const NegativeSampler sampler({.kind = Negatives::kFrequency, .sampled = 3}, labels);
  LogQCorrection correction(LogQ::kExact, sampler, kRecords);
  correction.set_batch(kBatch);
  Rng rng(2, Purpose::kTest);
  std::vector<double> score(25);
  double want = 0;
  for (std::size_t label = 0; label < 25; ++label) {
    score[label] = static_cast<double>(rng.normal());
    if (labels.count[label] > 0) want += std::exp(score[label]);
  }
  const auto own = records.view().labels.row(0);
  double sum = 0;
  double squares = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::set<std::uint32_t> active(own.begin(), own.end());
    for (std::size_t i = 1; i < kBatch; ++i) {
      const auto other = records.view().labels.row(rng.below(kRecords));
      active.insert(other.begin(), other.end());
    }
    sampler.draw_all(rng, [&](std::uint32_t label) { active.insert(label); });
    double z = 0;
    for (const std::uint32_t label : active) {
      const bool certain = std::ranges::binary_search(own, label);
      z += std::exp(score[label] +
                    (certain ? 0.0 : static_cast<double>(correction.correction(labels.count[label]))));
    }
    sum += z;
    squares += z * z;
  }
  const double mean = sum / kTrials;
  const double error = std::sqrt((squares / kTrials - mean * mean) / kTrials);
  EXPECT_NEAR(mean, want, 5 * error);
  EXPECT_LT(error, 0.01 * want);
}

struct Mean {
  double sum = 0;
  double squares = 0;
  int count = 0;
  void add(double x) {
    sum += x;
    squares += x * x;
    ++count;
  }
  [[nodiscard]] double mean() const { return sum / count; }
  [[nodiscard]] double error() const { return std::sqrt((squares / count - mean() * mean()) / count); }
};

// The same where the first samples of the batch ask hash tables. The first two of eight find labels that
// depend on them alone, as with tables. Sample 0 asks, or is the first that does not, or the last. The
// formula is ReferenceLearner's; LearnerGradient compares that with the learner.
TEST(LogQ, ExactPartitionSumIsUnbiasedWithFoundLabels) {
  constexpr std::size_t kRecords = 60;
  constexpr std::size_t kBatch = 8;
  constexpr int kTrials = 20000;
  const ProblemShape shape = {.network = {.features = 6, .labels = 25, .hidden = 4}, .samples = kRecords};
  const OwnedBatch records = random_batch(shape, 9);
  LabelCounts labels{.count = std::vector<std::uint32_t>(25), .records = kRecords};
  for (const std::uint32_t label : records.label) ++labels.count[label];
  Network network = random_network(shape.network, labels, 6);
  std::vector<std::vector<std::uint32_t>> finds;  // of each record
  Rng rng(2, Purpose::kTest);
  for (std::size_t i = 0; i < kRecords; ++i) {
    const auto found = random_set(4, 25, rng);
    finds.emplace_back(found.begin(), found.end());
  }
  const LearnerOptions options = {
      .batch_max = kBatch, .negatives = {.kind = Negatives::kFrequency, .sampled = 3}, .logq = LogQ::kExact};
  const auto add_record = [&](OwnedBatch& batch, std::size_t record) {
    const auto row = records.view().features.row(record);
    const auto own = records.view().labels.row(record);
    batch.feature.insert(batch.feature.end(), row.index.begin(), row.index.end());
    batch.value.insert(batch.value.end(), row.value.begin(), row.value.end());
    batch.label.insert(batch.label.end(), own.begin(), own.end());
    batch.feature_begin.push_back(static_cast<std::uint32_t>(batch.feature.size()));
    batch.label_begin.push_back(static_cast<std::uint32_t>(batch.label.size()));
  };
  for (const std::size_t place : {std::size_t{1}, std::size_t{2}, kBatch - 1}) {
    ReferenceLearner learner(shape.network, parameters_of(network), labels, options);
    double want = 0;
    Mean estimate;
    for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
      OwnedBatch batch;
      learner.found.clear();
      for (std::size_t i = 0; i < kBatch; ++i) {
        const std::size_t record = i == place ? 0 : rng.below(kRecords);
        add_record(batch, record);
        if (i < 2) learner.found.push_back(finds[record]);
      }
      const StepNumber step{trial};
      estimate.add(learner.partition(batch.view(), step, place, learner.active_set(batch.view(), step)));
      if (trial > 0) continue;
      const std::vector<double> h = learner.hidden(batch.view(), step, place);
      for (std::uint32_t label = 0; label < 25; ++label) {
        if (labels.count[label] > 0) want += std::exp(learner.score(h, label));
      }
    }
    EXPECT_NEAR(estimate.mean(), want, 5 * estimate.error()) << place;
    EXPECT_LT(estimate.error(), 0.01 * want);
  }
}

}  // namespace
}  // namespace gossamer::sparse
