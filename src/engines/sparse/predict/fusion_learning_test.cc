// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/fusion_learning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/rng.h"
#include "engines/sparse/model/test_random_model.h"
#include "engines/sparse/predict/predictor.h"
#include "host/sim/compute.h"
#include "learn/data/in_memory_dataset.h"

namespace gossamer::sparse_engine {
namespace {

// Candidates whose correct one is drawn by softmax(truth . x).
FusionExamples drawn_by(const FusionVector& truth, std::size_t records, std::uint64_t seed) {
  FusionExamples examples;
  Rng rng(seed, Purpose::kTest);
  for (std::size_t r = 0; r < records; ++r) {
    std::vector<double> chance;
    for (std::size_t c = 0; c < 20; ++c) {
      FusionVector terms;
      double score = 0;
      for (std::size_t t = 0; t < kFusionTerms; ++t) {
        terms.value[t] = 2 * rng.normal();
        score += static_cast<double>(truth.value[t]) * static_cast<double>(terms.value[t]);
      }
      examples.terms.push_back(terms);
      chance.push_back(std::exp(score));
    }
    double sum = 0;
    for (const double p : chance) sum += p;
    double left = static_cast<double>(rng.uniform()) * sum;
    std::size_t chosen = 0;
    while (chosen + 1 < chance.size() && (left -= chance[chosen]) > 0) ++chosen;
    for (std::size_t c = 0; c < 20; ++c) examples.correct.push_back(c == chosen ? 1 : 0);
    examples.begin.push_back(examples.terms.size());
  }
  return examples;
}

// The mean loss of some weights, from the formula alone.
double loss_of(const FusionExamples& examples, const FusionVector& weights) {
  double loss = 0;
  std::size_t records = 0;
  for (std::size_t r = 0; r < examples.records(); ++r) {
    double partition = 0;
    double hit_score = 0;
    double hits = 0;
    for (std::size_t c = examples.begin[r]; c < examples.begin[r + 1]; ++c) {
      double score = 0;
      for (std::size_t t = 0; t < kFusionTerms; ++t) {
        score += static_cast<double>(weights.value[t]) * static_cast<double>(examples.terms[c].value[t]);
      }
      partition += std::exp(score);
      hits += examples.correct[c];
      hit_score += examples.correct[c] != 0 ? score : 0;
    }
    if (hits == 0) continue;
    loss += std::log(partition) - hit_score / hits;
    ++records;
  }
  return records == 0 ? 0 : loss / static_cast<double>(records);
}

constexpr FusionVector kTruth{{0.5F, 1.0F, -0.3F, 0.2F, 0.0F, 0.7F}};

// Labels drawn by some weights give these weights back.
TEST(FitFusionWeights, FindsTheWeightsThatDrewTheLabels) {
  const FittedFusion fitted = fit_fusion_weights(drawn_by(kTruth, 4000, 1), kDefaultFusionWeights);
  EXPECT_EQ(fitted.records, 4000U);
  for (std::size_t t = 0; t < kFusionTerms; ++t) {
    EXPECT_NEAR(fitted.weights.value[t], kTruth.value[t], 0.08) << kFusionTermNames[t];
  }
}

void expect_minimum(const FusionExamples& examples, const FittedFusion& fitted) {
  EXPECT_NEAR(fitted.loss, loss_of(examples, fitted.weights), 1e-5);
  EXPECT_NEAR(fitted.loss_before, loss_of(examples, kDefaultFusionWeights), 1e-5);
  for (std::size_t t = 0; t < kFusionTerms; ++t) {
    for (const float change : {-0.1F, 0.1F}) {
      FusionVector other = fitted.weights;
      other.value[t] += change;
      EXPECT_GT(loss_of(examples, other), fitted.loss) << kFusionTermNames[t] << " " << change;
    }
  }
}

// Any small change at the minimum makes it worse, by more than rounding. The reported losses are the
// formula's.
TEST(FitFusionWeights, EndsInTheMinimum) {
  const FusionExamples examples = drawn_by(kTruth, 300, 2);
  expect_minimum(examples, fit_fusion_weights(examples, kDefaultFusionWeights));
}

// Claim: a given weight stays to the last bit, and the others are at their minimum for it. Their gradient,
// with that of the ridge of 1e-4, is 0.
TEST(FitFusionWeights, TheOthersAreLearntForAGivenWeight) {
  const FusionExamples examples = drawn_by(kTruth, 300, 2);
  for (std::size_t held = 0; held < kFusionTerms; ++held) {
    FusionVector prior = kDefaultFusionWeights;
    prior.value[held] = -0.5F;
    GivenTerms given{};
    given[held] = true;
    const FittedFusion fitted = fit_fusion_weights(examples, prior, given);
    EXPECT_EQ(fitted.weights.value[held], -0.5F) << kFusionTermNames[held];
    EXPECT_NEAR(fitted.loss, loss_of(examples, fitted.weights), 1e-5);
    EXPECT_LT(fitted.loss, fitted.loss_before);
    for (std::size_t t = 0; t < kFusionTerms; ++t) {
      if (t == held) continue;
      FusionVector less = fitted.weights;
      FusionVector more = fitted.weights;
      less.value[t] -= 0.01F;
      more.value[t] += 0.01F;
      const auto change = static_cast<double>(fitted.weights.value[t] - prior.value[t]);
      const double slope = (loss_of(examples, more) - loss_of(examples, less)) / 0.02 + 2e-4 * change;
      EXPECT_NEAR(slope, 0, 1e-3) << kFusionTermNames[held] << " given, slope of " << kFusionTermNames[t];
    }
  }
}

// Claim: the correct labels of a record share its weight, however many they are. A record without one counts
// nothing.
TEST(FitFusionWeights, EndsInTheMinimumWithSeveralCorrectLabels) {
  FusionExamples examples = drawn_by(kTruth, 400, 3);
  for (std::size_t r = 0; r < 400; ++r) {
    const auto correct = std::span(examples.correct).subspan(examples.begin[r], 20);
    for (std::size_t more = 0; more < r % 4; ++more) correct[(r + 7 * more) % 20] = 1;
    if (r % 5 == 4) std::ranges::fill(correct, std::uint8_t{0});
  }
  const FittedFusion fitted = fit_fusion_weights(examples, kDefaultFusionWeights);
  EXPECT_EQ(fitted.records, 320U);
  expect_minimum(examples, fitted);
}

// Scores that separate the labels perfectly have no finite minimum: the ridge holds them.
TEST(FitFusionWeights, SeparableStaysFinite) {
  FusionExamples examples;
  for (int r = 0; r < 50; ++r) {
    for (int c = 0; c < 5; ++c) {
      FusionVector terms;
      terms[FusionTerm::kNet] = c == 0 ? 10.0F : -10.0F;
      examples.terms.push_back(terms);
      examples.correct.push_back(c == 0 ? 1 : 0);
    }
    examples.begin.push_back(examples.terms.size());
  }
  const FittedFusion fitted = fit_fusion_weights(examples, kDefaultFusionWeights);
  EXPECT_GE(fitted.weights[FusionTerm::kNet], kDefaultFusionWeights[FusionTerm::kNet]);
  EXPECT_LT(fitted.weights[FusionTerm::kNet], 100);
  // Terms that never differ tell nothing.
  EXPECT_NEAR(fitted.weights[FusionTerm::kHidden], kDefaultFusionWeights[FusionTerm::kHidden], 1e-6);
}

// Records without candidates, or without a correct one, teach nothing.
TEST(FitFusionWeights, NothingToLearnFromKeepsThePrior) {
  FusionExamples examples;
  examples.begin.push_back(0);
  examples.terms.assign(3, FusionVector{});
  examples.correct.assign(3, 0);
  examples.begin.push_back(3);
  const FittedFusion fitted = fit_fusion_weights(examples, kDefaultFusionWeights);
  EXPECT_EQ(fitted.records, 0U);
  EXPECT_EQ(fitted.weights, kDefaultFusionWeights);
}

// The terms of each held-out record and which of them are correct, as a predictor tells them that is asked
// for this record alone.
FusionExamples asked_one_by_one(const Model& model, const data::Dataset& dataset,
                                const data::HoldOut& hold_out) {
  host::SimCompute compute({});
  const auto predictor = Predictor::create(model, testing::best_kernels(), compute, default_options(model));
  EXPECT_TRUE(predictor.ok());
  FusionExamples examples;
  PredictionBlock block;
  block.with_terms = true;
  for (std::uint64_t i = 0; i < hold_out.held(); ++i) {
    const data::Record record = dataset.record(hold_out.held_record(i));
    const std::vector<std::uint32_t> begin = {0, static_cast<std::uint32_t>(record.features.index.size())};
    const data::SparseRows query{begin, record.features.index, record.features.value};
    EXPECT_TRUE((*predictor)->predict(query, dataset.labels(), block).ok());
    for (std::size_t c = 0; c < block.count[0]; ++c) {
      examples.terms.push_back(block.terms[c]);
      examples.correct.push_back(std::ranges::count(record.labels, block.entries[c].id) > 0 ? 1 : 0);
    }
    examples.begin.push_back(examples.terms.size());
  }
  return examples;
}

// The whole path gives the same result as the predictor's own terms, for any number of workers.
TEST(LearnFusionWeights, LearnsFromHeldOutRecords) {
  const Model model =
      testing::random_model({.features = 60, .labels = 40, .hidden = 32, .rows = 50, .seed = 5});
  data::InMemoryDataset dataset({.features = 60, .labels = 40});
  Rng rng(7, Purpose::kTest);
  for (std::uint32_t i = 0; i < 200; ++i) {
    const auto f = static_cast<std::uint32_t>(rng.below(59));
    const auto l = static_cast<std::uint32_t>(rng.below(39));
    dataset.add({f, f + 1}, {1.0F, 2.0F}, {l, l + 1});
  }
  const data::HoldOut hold_out(dataset.size(), 60);
  const kernels::Kernels& kernels = kernels::kernels_for(kernels::best_isa());
  std::vector<FusionVector> learnt;
  for (const int workers : {1, 3}) {
    host::SimCompute compute({.workers = workers});
    auto fitted = learn_fusion_weights(model, {}, dataset, hold_out, kernels, compute);
    ASSERT_TRUE(fitted.ok());
    EXPECT_GT(fitted->all.records, 10U);
    EXPECT_LE(fitted->all.loss, fitted->all.loss_before);
    learnt.push_back(fitted->all.weights);
  }
  EXPECT_EQ(learnt[0], learnt[1]);
  EXPECT_NE(learnt[0], kDefaultFusionWeights);
  const FusionExamples own = asked_one_by_one(model, dataset, hold_out);
  EXPECT_EQ(learnt[0], fit_fusion_weights(own, model.fusion.weights).weights);
}

// Claim: a loss that is not finite is refused, with the first held-out record that makes it so.
TEST(LearnFusionWeights, RefusesALossThatIsNotFinite) {
  Model model = testing::random_model({.features = 60, .labels = 40, .hidden = 32, .rows = 50, .seed = 5});
  data::InMemoryDataset dataset({.features = 60, .labels = 40});
  for (std::uint32_t i = 0; i < 200; ++i) {
    // No training row has feature 0 but the first, whose values are no numbers.
    const std::uint32_t feature = i == 3 ? 0 : 1 + i % 59;
    dataset.add({feature}, {1.0F}, {i % 40});
  }
  Instances& rows = *model.instances;
  for (std::size_t i = 0; i < rows.feature.size(); ++i) {
    if (i < rows.feature_begin[1]) {
      rows.value[i] = std::numeric_limits<float>::infinity();
    } else if (rows.feature[i] == 0) {
      rows.value[i] = 0;
    }
  }
  rows.feature[0] = 0;
  const data::HoldOut hold_out(dataset.size(), 60);
  host::SimCompute compute({});
  const auto fitted = learn_fusion_weights(model, {}, dataset, hold_out, testing::best_kernels(), compute);
  ASSERT_FALSE(fitted.ok()) << fitted->all.loss;
  EXPECT_EQ(fitted.error().kind, ErrorKind::kBadData);
  EXPECT_TRUE(fitted.error().where.starts_with("training record ")) << fitted.error().message();
}

// Claim: the weights that judge a half do not know the labels of its records.
TEST(LearnFusionWeights, AHalfIsJudgedByTheOther) {
  const Model model =
      testing::random_model({.features = 60, .labels = 40, .hidden = 32, .rows = 50, .seed = 5});
  const kernels::Kernels& kernels = kernels::kernels_for(kernels::best_isa());
  host::SimCompute compute({.workers = 1});
  const data::HoldOut hold_out(400, 120);
  std::vector<std::array<FusionVector, 2>> learnt;
  for (const std::uint32_t shift : {0U, 7U}) {
    data::InMemoryDataset dataset({.features = 60, .labels = 40});
    Rng rng(7, Purpose::kTest);
    std::vector<std::uint32_t> label;
    for (std::uint32_t i = 0; i < 400; ++i) label.push_back(static_cast<std::uint32_t>(rng.below(30)));
    for (std::uint64_t i = 0; i < hold_out.held(); ++i) {
      if (half_of_held(i) == Half::kFirst) label[hold_out.held_record(i).value] += shift;
    }
    for (std::uint32_t i = 0; i < 400; ++i) {
      const auto f = static_cast<std::uint32_t>(rng.below(59));
      dataset.add({f, f + 1}, {1.0F, 2.0F}, {label[i]});
    }
    const auto fitted = learn_fusion_weights(model, {}, dataset, hold_out, kernels, compute);
    ASSERT_TRUE(fitted.ok());
    learnt.push_back(fitted->by_the_other);
  }
  EXPECT_EQ(learnt[0][0], learnt[1][0]);
  EXPECT_NE(learnt[0][1], learnt[1][1]);
  EXPECT_NE(learnt[0][0], learnt[0][1]);
}

}  // namespace
}  // namespace gossamer::sparse_engine
