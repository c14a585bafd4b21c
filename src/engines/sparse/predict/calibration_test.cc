// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

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

// Claim: a larger share never has a smaller probability, even where larger shares were wrong more often.
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
}

// Claim: without right labels, or without wrong ones, there is nothing to fit.
TEST(Calibration, NeedsBothKinds) {
  EXPECT_FALSE(fit_calibration({}));
  EXPECT_FALSE(fit_calibration({.share = {0.5F, 0.2F}, .correct = {1, 1}}));
  EXPECT_FALSE(fit_calibration({.share = {0.5F, 0.2F}, .correct = {0, 0}}));
}

}  // namespace
}  // namespace gossamer::sparse_engine
