// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/fusion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "engines/sparse/model/model.h"

namespace gossamer::sparse_engine {
namespace {

// Three training rows: 0 has labels {1, 2}, 1 has {2}, 2 has none.
Instances three_rows() {
  Instances instances;
  instances.feature_begin = {0, 0, 0, 0};
  instances.label_begin = {0, 2, 3, 3};
  instances.label = {1, 2, 2};
  return instances;
}

constexpr PredictParts kNetAndInput{
    .net = true, .input_neighbours = true, .hidden_neighbours = false, .centroids = false};

constexpr FusionVector only(FusionTerm term, float weight, FusionTerm other, float other_weight) {
  FusionVector weights;
  weights[term] = weight;
  weights[other] = other_weight;
  return weights;
}

// The scores equal those worked out by hand. The net's scores are 3 and 1; the neighbours vote 1/17 and
// 16/17.
TEST(Fusion, HandComputedScores) {
  const Instances instances = three_rows();
  sparse::Network network({.features = 1, .labels = 3, .hidden = 16}, sparse::Moments::kNone);
  network.bias[2] = -1;
  const AlignedArray<float> layer(network.output.stride());
  Fusion fusion({.weights = only(FusionTerm::kNet, 0.5F, FusionTerm::kInput, 2.0F)}, kNetAndInput,
                {.network = &network,
                 .kernels = &kernels::kernels_for(kernels::Isa::kScalar),
                 .instances = &instances});
  const std::vector<Scored> net = {{0, 3.0F}, {1, 1.0F}};
  const std::vector<Scored> input = {{1, 1.0F}, {0, 0.5F}};
  std::vector<Scored> out(3);
  std::vector<FusionVector> terms(3);
  ASSERT_EQ(fusion.rank({.net = net, .layer = layer.data(), .input = input}, 3, out, terms), 3U);
  // Label 2 has both votes; the net did not name it, so its score, the bias, is looked up.
  EXPECT_EQ(out[0].id, 2U);
  EXPECT_NEAR(out[0].score, 0.5F * -4 + 2 * std::log(1.001F), 1e-5);
  EXPECT_EQ(out[1].id, 1U);
  EXPECT_NEAR(out[1].score, 0.5F * -2 + 2 * std::log(1.0F / 17 + 1e-3F), 1e-5);
  EXPECT_EQ(out[2].id, 0U);
  EXPECT_NEAR(out[2].score, 2 * std::log(1e-3F), 1e-5);
  EXPECT_FLOAT_EQ(terms[1][FusionTerm::kNet], -2);
  EXPECT_NEAR(terms[1][FusionTerm::kInput], std::log(1.0F / 17 + 1e-3F), 1e-5);
  EXPECT_EQ(terms[1][FusionTerm::kHidden], 0);
}

// A label that the net never saw is not shut out by it, because its score stops 20 below the best.
TEST(Fusion, NetScoreHasAFloorBesideOtherViews) {
  const Instances instances = three_rows();
  sparse::Network network({.features = 1, .labels = 3, .hidden = 16}, sparse::Moments::kNone);
  for (std::size_t label : {1U, 2U}) network.bias[label] = -50;
  const AlignedArray<float> layer(network.output.stride());
  Fusion fusion({}, kNetAndInput,
                {.network = &network,
                 .kernels = &kernels::kernels_for(kernels::Isa::kScalar),
                 .instances = &instances});
  const std::vector<Scored> net = {{0, 3.0F}};
  const std::vector<Scored> input = {{1, 1.0F}};
  std::vector<Scored> out(2);
  std::vector<FusionVector> terms(2);
  ASSERT_EQ(fusion.rank({.net = net, .layer = layer.data(), .input = input}, 2, out, terms), 2U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(terms[i][FusionTerm::kNet], out[i].id == 2 ? -20 : 0);
}

// The best candidates stay if there are fewer places. Ties go to the smaller label. Nothing is left from the
// query before.
TEST(Fusion, RanksAndForgets) {
  Fusion fusion({}, kNetAlone, {});
  std::vector<Scored> out(2);
  const std::vector<Scored> first = {{7, 2.0F}, {5, 1.0F}, {3, 1.0F}};
  ASSERT_EQ(fusion.rank({.net = first}, 2, out), 2U);
  EXPECT_EQ(out[0].id, 7U);
  EXPECT_EQ(out[1].id, 3U);
  const std::vector<Scored> second = {{9, 0.0F}};
  ASSERT_EQ(fusion.rank({.net = second}, 2, out), 1U);
  EXPECT_EQ(out[0], (Scored{9, 0.0F}));
  EXPECT_EQ(fusion.rank({}, 2, out), 0U);
}

// A single view keeps its own order even where a floor would make its scores equal.
TEST(Fusion, OneViewHasNoFloor) {
  Fusion fusion({}, kNetAlone, {});
  const std::vector<Scored> net = {{0, 100.0F}, {9, -60.0F}, {4, -61.0F}};
  std::vector<Scored> out(3);
  ASSERT_EQ(fusion.rank({.net = net}, 3, out), 3U);
  EXPECT_EQ(out[1].id, 9U);
  EXPECT_NEAR(out[1].score, -160, 1e-3);
  EXPECT_NEAR(out[2].score, -161, 1e-3);
}

// Rows at or below cosine 0 have no vote. Without votes nothing is divided.
TEST(Fusion, OnlyPositiveCosinesVote) {
  const Instances instances = three_rows();
  Fusion fusion({.input_vote_power = 0}, kNearestRowsAlone, {.instances = &instances});
  std::vector<Scored> out(3);
  const std::vector<Scored> negative = {{1, 0.0F}, {0, -0.5F}};
  EXPECT_EQ(fusion.rank({.input = negative}, 3, out), 0U);
  const std::vector<Scored> one = {{1, 1e-30F}, {0, -0.5F}};
  ASSERT_EQ(fusion.rank({.input = one}, 3, out), 1U);
  EXPECT_EQ(out[0], (Scored{2, 0.0F}));
}

// What a node says of labels and rows: here no row has a label.
class ToldTerms final : public FusionAnswers {
 public:
  explicit ToldTerms(std::vector<float> centroids) : centroids_(std::move(centroids)) {}
  [[nodiscard]] std::span<const std::uint32_t> labels_of(std::uint32_t) const override { return {}; }
  [[nodiscard]] float net_score(std::uint32_t) const override { return 0; }
  [[nodiscard]] float centroid_cosine(std::uint32_t label) const override { return centroids_[label]; }

 private:
  const std::vector<float> centroids_;
};

// Claim: a label whose terms are no numbers comes last, and leaves the order of the others as it is. Another
// node may say anything of its labels.
TEST(Fusion, NoNumberComesLast) {
  constexpr std::uint32_t kLabels = 64;
  std::vector<float> centroids(kLabels);
  std::vector<Scored> net;
  for (std::uint32_t label = 0; label < kLabels; ++label) {
    centroids[label] =
        label % 3 == 1 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(label * 37 % kLabels);
    net.push_back({label, 0.0F});
  }
  const ToldTerms told(centroids);
  Fusion fusion({.weights = only(FusionTerm::kNet, 1, FusionTerm::kCentroid, 1)}, PredictParts(), {});
  std::vector<Scored> out(kLabels);
  ASSERT_EQ(fusion.rank({.net = net, .answers = &told}, kLabels, out), kLabels);
  EXPECT_TRUE(std::ranges::is_sorted(out, ranks_before));
  EXPECT_TRUE(std::ranges::none_of(out, [](const Scored& one) { return std::isnan(one.score); }));
  for (std::size_t i = 0; i < kLabels; ++i) EXPECT_EQ(std::isnan(centroids[out[i].id]), i >= 43) << i;
}

// Claim: a share is that of the softmax over all candidates. The net alone has its usual number of them,
// however long the list is and however few labels are asked for.
TEST(Fusion, SharesAreOfTheSoftmaxOverTheCandidates) {
  Fusion alone({.candidates = 3}, kNetAlone, {});
  const std::vector<Scored> longer = {{4, 2.0F}, {7, 1.0F}, {2, 0.5F}, {9, 0.25F}, {1, -3.0F}};
  const double usual = 1 + std::exp(-1.0) + std::exp(-1.5);
  for (const std::size_t listed : {3U, 5U}) {
    for (const std::size_t top_k : {1U, 5U}) {
      std::vector<Scored> out(top_k);
      const std::size_t count = alone.rank({.net = std::span(longer).first(listed)}, top_k, out);
      ASSERT_EQ(count, std::min(listed, top_k));
      for (std::size_t i = 0; i < count; ++i) {
        const double score = static_cast<double>(longer[i].score) - 2;
        EXPECT_NEAR(alone.share(out[i].score), std::exp(score) / usual, 1e-6) << listed << " " << top_k;
      }
    }
  }
  const ToldTerms told({1.0F, -1.0F, 0.5F, 0.0F});
  Fusion all({.candidates = 3, .weights = only(FusionTerm::kNet, 0.5F, FusionTerm::kCentroid, 2)},
             PredictParts(), {});
  const std::vector<Scored> net = {{2, 4.0F}, {0, 2.0F}, {1, 0.0F}, {3, 0.0F}};
  std::vector<Scored> out(2);
  ASSERT_EQ(all.rank({.net = net, .answers = &told}, 2, out), 2U);
  // The labels 0, 1, 2 and 3 have these scores.
  const double sum = std::exp(1.0) + std::exp(-4.0) + std::exp(1.0) + std::exp(-2.0);
  for (const Scored& one : out) EXPECT_NEAR(all.share(one.score), std::exp(1.0) / sum, 1e-6);
}

// Claim: a label whose score is no number has no share, whether it is alone or beside others.
TEST(Fusion, NoNumberHasNoShare) {
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& centroids : {std::vector<float>{kNone, kNone}, {0.0F, kNone}}) {
    const ToldTerms told(centroids);
    Fusion fusion({.weights = only(FusionTerm::kNet, 1, FusionTerm::kCentroid, 1)}, PredictParts(), {});
    const std::vector<Scored> net = {{0, 0.0F}, {1, 0.0F}};
    std::vector<Scored> out(2);
    ASSERT_EQ(fusion.rank({.net = net, .answers = &told}, 2, out), 2U);
    EXPECT_EQ(fusion.share(out[1].score), 0.0F);
    EXPECT_EQ(fusion.share(out[0].score), std::isnan(centroids[0]) ? 0.0F : 1.0F);
  }
}

// Claim: all views together have a calibration of their own, and so has the net alone. No other views have
// one.
TEST(Fusion, EachHasItsOwnCalibration) {
  const Calibration whole{.log = 1, .rest = 1, .offset = 1};
  const Calibration of_net{.log = 0.5F, .rest = 2, .offset = -1};
  const ToldTerms told({0.25F, 0.5F});
  const std::vector<Scored> net = {{0, 3.0F}, {1, 2.0F}};
  for (const bool has_whole : {true, false}) {
    for (const bool has_net : {true, false}) {
      FusionOptions options;
      if (has_whole) options.calibration = whole;
      if (has_net) options.net_calibration = of_net;
      const auto probability = [&](const PredictParts& parts, const Calibration& calibration) {
        Fusion fusion(options, parts, {});
        std::vector<Scored> out(1);
        EXPECT_EQ(fusion.rank({.net = net, .answers = &told}, 1, out), 1U);
        const float share = fusion.share(out[0].score);
        EXPECT_TRUE(share > 0.5F && share < 0.9F) << share;
        const auto found = fusion.probability(out[0].score);
        if (found) {
          EXPECT_EQ(*found, calibration.probability(share));
        }
        return found.has_value();
      };
      EXPECT_EQ(probability(PredictParts(), whole), has_whole);
      EXPECT_EQ(probability(kNetAlone, of_net), has_net);
      EXPECT_FALSE(probability(kNetAndInput, whole));
    }
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
