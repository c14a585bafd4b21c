// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "learn/data/hold_out.h"
#include "learn/data/in_memory_dataset.h"

namespace gossamer::sparse_engine {
namespace {

// Examples whose labels are right as often as `truth` says.
CalibrationExamples drawn(std::size_t count, const Calibration& truth, std::uint64_t seed) {
  Rng rng(seed, Purpose::kTest);
  CalibrationExamples examples;
  for (std::size_t i = 0; i < count; ++i) {
    examples.share.push_back(rng.uniform());
    examples.correct.push_back(rng.uniform() < truth.probability(examples.share.back()) ? 1 : 0);
  }
  return examples;
}

// Claim: the fit finds what the examples were drawn from, and is calibrated on others.
TEST(Calibration, FindsTheTruth) {
  constexpr std::uint64_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  const Calibration truth{.log = 0.6F, .rest = 1.5F, .offset = -0.4F};
  const auto fitted = fit_calibration(drawn(40'000, truth, kSeed));
  ASSERT_TRUE(fitted.has_value());
  EXPECT_NEAR(fitted->log, truth.log, 0.1);
  EXPECT_NEAR(fitted->rest, truth.rest, 0.15);
  EXPECT_NEAR(fitted->offset, truth.offset, 0.15);
  const CalibrationExamples others = drawn(20'000, truth, kSeed + 1);
  EXPECT_LT(calibration_error(others, *fitted), 0.02);
  EXPECT_GT(calibration_error(others, {.log = 1, .rest = 1, .offset = 2}), 0.1);
}

// Claim: a larger share never has a smaller probability, even where larger shares were wrong more often. The
// share then tells nothing, and the mean of all is left.
TEST(Calibration, KeepsTheOrder) {
  CalibrationExamples examples;
  for (int i = 0; i < 200; ++i) {
    examples.share.push_back(i % 2 == 0 ? 0.9F : 0.1F);
    examples.correct.push_back(i % 2 == 0 ? (i % 3 == 0 ? 1 : 0) : 1);
  }
  const auto fitted = fit_calibration(examples);
  ASSERT_TRUE(fitted.has_value());
  float before = 0;
  for (float share = 0; share <= 1; share += 0.01F) {
    const float p = fitted->probability(share);
    EXPECT_GE(p, before);
    EXPECT_GT(p, 0);
    EXPECT_LT(p, 1);
    before = p;
  }
  EXPECT_EQ(fitted->log, 0);
  EXPECT_EQ(fitted->rest, 0);
  const auto right = static_cast<double>(std::ranges::count(examples.correct, 1));
  EXPECT_NEAR(static_cast<double>(fitted->probability(0.5F)), right / 200, 0.01);
}

// Claim: without right labels, or without wrong ones, there is nothing to fit.
TEST(Calibration, NeedsBothKinds) {
  EXPECT_FALSE(fit_calibration({}));
  EXPECT_FALSE(fit_calibration({.share = {0.5F, 0.2F}, .correct = {1, 1}}));
  EXPECT_FALSE(fit_calibration({.share = {0.5F, 0.2F}, .correct = {0, 0}}));
}

// What ToldShares says of the label that it ranks at a place.
float told_share(std::uint32_t feature, std::size_t place) {
  return static_cast<float>(feature) / 1000 + static_cast<float>(place) / 16384;
}

// Ranks seven labels: the query's first feature, and the numbers after it.
class ToldShares final : public Predictor {
 public:
  Result<void> predict(const data::SparseRows& queries, std::size_t top_k, PredictionBlock& out) override {
    const std::size_t count = std::min<std::size_t>(top_k, 7);
    out.top_k = top_k;
    out.count.assign(queries.rows(), static_cast<std::uint32_t>(count));
    out.entries.assign(queries.rows() * top_k, {});
    out.share.assign(out.entries.size(), 0);
    for (std::size_t q = 0; q < queries.rows(); ++q) {
      const std::uint32_t feature = queries.row(q).index.front();
      for (std::size_t c = 0; c < count; ++c) {
        out.entries[q * top_k + c] = {.id = feature + static_cast<std::uint32_t>(c), .score = 0};
        out.share[q * top_k + c] = told_share(feature, c);
      }
    }
    return {};
  }
};

// Claim: the examples are the best five labels of each record, each with its own share. A record without
// labels has none, and those of another half are not asked for.
TEST(Calibration, ExamplesAreTheBestLabels) {
  data::InMemoryDataset dataset({.features = 400, .labels = 410});
  for (std::uint32_t i = 0; i < 400; ++i) {
    std::vector<std::uint32_t> labels;
    if (i % 5 != 0) labels.push_back(i + i % 7);  // the last two of seven are not among the best five
    dataset.add({i}, {1.0F}, labels);
  }
  const data::HoldOut hold_out(dataset.size(), 120);
  ToldShares predictor;
  CalibrationExamples examples;
  CalibrationExamples want;
  for (const Half half : {Half::kSecond, Half::kFirst}) {
    const HeldOutRecords records{.dataset = dataset, .hold_out = hold_out, .half = half};
    ASSERT_TRUE(add_examples(predictor, records, examples).ok());
    for (std::uint64_t i = 0; i < hold_out.held(); ++i) {
      const auto record = static_cast<std::uint32_t>(hold_out.held_record(i).value);
      if (half_of_held(i) != half || record % 5 == 0) continue;
      for (std::size_t c = 0; c < 5; ++c) {
        want.share.push_back(told_share(record, c));
        want.correct.push_back(c == record % 7 ? 1 : 0);
      }
    }
    EXPECT_EQ(examples.share, want.share);
    EXPECT_EQ(examples.correct, want.correct);
  }
  EXPECT_GT(want.share.size(), 300U);
}

}  // namespace
}  // namespace gossamer::sparse_engine
