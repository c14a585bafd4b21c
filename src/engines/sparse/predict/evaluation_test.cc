// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"

namespace gossamer::sparse_engine {
namespace {

using Labels = std::vector<std::uint32_t>;

std::vector<Scored> ranking(const Labels& labels) {
  std::vector<Scored> list;
  for (const std::uint32_t label : labels) list.push_back({label, -static_cast<float>(list.size())});
  return list;
}

std::map<std::string, double> named(const Metrics& metrics) {
  std::map<std::string, double> map;
  for (const auto& [name, value] : metrics.named()) map.emplace(name, value);
  return map;
}

// Two samples worked out by hand: hits at ranks 1 and 3 of 2 true labels; a hit at rank 2 of 6 true ones.
TEST(Evaluation, HandComputedValues) {
  // N = e^2 records and B = 1.5, A = 0.55: C = 2.5^0.55 * (ln N - 1).
  const Labels counts(10, 1);
  const std::uint64_t rows = 1000;
  Evaluator evaluator(counts, rows);
  evaluator.add(ranking({0, 5, 1, 6, 7}), Labels{0, 1});
  evaluator.add(ranking({9, 2, 8}), Labels{0, 1, 2, 3, 4, 5});
  evaluator.add(ranking({1}), Labels{});
  const auto m = named(evaluator.metrics());
  EXPECT_EQ(evaluator.metrics().samples, 2U);
  EXPECT_EQ(evaluator.metrics().without_labels, 1U);
  EXPECT_NEAR(m.at("P@1"), 50, 1e-9);
  EXPECT_NEAR(m.at("P@3"), 100 * (2.0 / 3 + 1.0 / 3) / 2, 1e-9);
  EXPECT_NEAR(m.at("P@5"), 100 * (2.0 / 5 + 1.0 / 5) / 2, 1e-9);
  const double second = 1 / std::log2(3.0);
  EXPECT_NEAR(m.at("nDCG@1"), 50, 1e-9);
  EXPECT_NEAR(m.at("nDCG@3"), 50 * (1.5 / (1 + second) + second / (1 + second + 0.5)), 1e-9);
  // All propensities are equal here, so PSP@k is hits over the most hits there could be: 1/2, 3/5, 3/7.
  EXPECT_NEAR(m.at("PSP@1"), 50, 1e-9);
  EXPECT_NEAR(m.at("PSP@3"), 100 * 3.0 / 5, 1e-9);
  EXPECT_NEAR(m.at("PSP@5"), 100 * 3.0 / 7, 1e-9);
  EXPECT_NEAR(m.at("recall@10"), 50 * (1 + 1.0 / 6), 1e-9);
  EXPECT_NEAR(m.at("MRR@20"), 50 * (1 + 1.0 / 2), 1e-9);
  EXPECT_NEAR(m.at("hit@1"), 50, 1e-9);
  EXPECT_NEAR(m.at("hit@10"), 100, 1e-9);
  EXPECT_NEAR(m.at("median_rank"), 1.5, 1e-9);
}

// A rare label's hit weighs 1 + C (n + B)^-A: one hit on a label seen once against one missed seen 99 times.
TEST(Evaluation, PropensityFollowsTheFormula) {
  const Labels counts = {1, 99};
  Evaluator evaluator(counts, 1000);
  evaluator.add(ranking({0}), Labels{0});
  evaluator.add(ranking({0}), Labels{1});
  const double c = (std::log(1000.0) - 1) * std::pow(2.5, 0.55);
  const double rare = 1 + c * std::pow(2.5, -0.55);
  const double common = 1 + c * std::pow(100.5, -0.55);
  EXPECT_NEAR(evaluator.metrics().propensity[0], 100 * rare / (rare + common), 1e-9);
}

// A label that the model does not know counts as missed, as rare as can be. A rank beyond the list is
// infinite.
TEST(Evaluation, UnknownLabelsAndMissingRanks) {
  Evaluator evaluator(Labels{3}, 100);
  evaluator.add(ranking({0}), Labels{7});
  evaluator.add(ranking({0}), Labels{8});
  evaluator.add(ranking({0}), Labels{0});
  EXPECT_EQ(evaluator.metrics().median_rank, std::numeric_limits<double>::infinity());
  EXPECT_NEAR(evaluator.metrics().precision[0], 100.0 / 3, 1e-9);
  const double c = (std::log(100.0) - 1) * std::pow(2.5, 0.55);
  const double seen = 1 + c * std::pow(4.5, -0.55);
  const double never_seen = 1 + c * std::pow(1.5, -0.55);
  EXPECT_NEAR(evaluator.metrics().propensity[0], 100 * seen / (seen + 2 * never_seen), 1e-9);
}

// Metrics without samples are 0 and never NaN. Tiny training sets have equal propensities.
TEST(Evaluation, EmptyAndTiny) {
  for (const auto& [name, value] : Evaluator({}, 0).metrics().named()) EXPECT_EQ(value, 0) << name;
  Evaluator tiny(Labels{1, 2}, 2);
  tiny.add(ranking({1}), Labels{1});
  tiny.add(ranking({1}), Labels{0});
  EXPECT_NEAR(tiny.metrics().propensity[0], 50, 1e-9);
}

// A slow model of every metric, written from the definitions alone.
struct Slow {
  std::vector<Labels> ranked;
  std::vector<Labels> truth;
  Labels counts;
  double rows;

  [[nodiscard]] bool hit(std::size_t s, std::size_t rank) const {
    return rank < ranked[s].size() &&
           std::find(truth[s].begin(), truth[s].end(), ranked[s][rank]) != truth[s].end();
  }
  [[nodiscard]] double inverse(std::uint32_t label) const {
    return 1 + (std::log(rows) - 1) * std::pow(2.5, 0.55) / std::pow(counts[label] + 1.5, 0.55);
  }
  [[nodiscard]] double mean(const std::function<double(std::size_t)>& of) const {
    double sum = 0;
    for (std::size_t s = 0; s < truth.size(); ++s) sum += of(s);
    return 100 * sum / static_cast<double>(truth.size());
  }
  [[nodiscard]] std::size_t hits(std::size_t s, std::size_t k) const {
    std::size_t n = 0;
    for (std::size_t rank = 0; rank < k; ++rank) n += hit(s, rank) ? 1 : 0;
    return n;
  }
  [[nodiscard]] double precision(std::size_t k) const {
    return mean([&](std::size_t s) { return static_cast<double>(hits(s, k)) / static_cast<double>(k); });
  }
  [[nodiscard]] double recall(std::size_t k) const {
    return mean([&](std::size_t s) {
      return static_cast<double>(hits(s, k)) / static_cast<double>(truth[s].size());
    });
  }
  [[nodiscard]] double ndcg(std::size_t k) const {
    return mean([&](std::size_t s) {
      double got = 0;
      double best = 0;
      for (std::size_t rank = 0; rank < k; ++rank) {
        const double gain = std::log(2.0) / std::log(static_cast<double>(rank) + 2);
        if (hit(s, rank)) got += gain;
        if (rank < truth[s].size()) best += gain;
      }
      return got / best;
    });
  }
  [[nodiscard]] double psp(std::size_t k) const {
    double got = 0;
    double best = 0;
    for (std::size_t s = 0; s < truth.size(); ++s) {
      std::vector<double> all;
      for (const std::uint32_t label : truth[s]) all.push_back(-inverse(label));
      std::sort(all.begin(), all.end());
      for (std::size_t rank = 0; rank < k; ++rank) {
        if (hit(s, rank)) got += inverse(ranked[s][rank]);
        if (rank < all.size()) best -= all[rank];
      }
    }
    return 100 * got / best;
  }
  // From 1; infinite where the list has no true label.
  [[nodiscard]] double best_rank(std::size_t s) const {
    for (std::size_t rank = 0; rank < ranked[s].size(); ++rank) {
      if (hit(s, rank)) return static_cast<double>(rank + 1);
    }
    return std::numeric_limits<double>::infinity();
  }
  [[nodiscard]] double reciprocal_rank(double most) const {
    return mean([&](std::size_t s) { return best_rank(s) <= most ? 1 / best_rank(s) : 0.0; });
  }
  [[nodiscard]] double hit_rate(double most) const {
    return mean([&](std::size_t s) { return best_rank(s) <= most ? 1.0 : 0.0; });
  }
  [[nodiscard]] double median_rank() const {
    std::vector<double> all;
    for (std::size_t s = 0; s < truth.size(); ++s) all.push_back(best_rank(s));
    std::sort(all.begin(), all.end());
    return (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
  }
};

// Random rankings and truths: equal to the slow model for every metric.
TEST(Evaluation, MatchesTheDefinitions) {
  constexpr std::uint32_t kLabelCount = 40;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, Purpose::kTest);
    Slow slow{.ranked = {}, .truth = {}, .counts = {}, .rows = 500};
    for (std::uint32_t l = 0; l < kLabelCount; ++l)
      slow.counts.push_back(static_cast<std::uint32_t>(rng.below(30)));
    Evaluator evaluator(slow.counts, 500);
    for (std::uint64_t s = 0; s < 24 + seed % 2; ++s) {
      Labels order(kLabelCount);
      for (std::uint32_t l = 0; l < kLabelCount; ++l) order[l] = l;
      for (std::size_t l = kLabelCount - 1; l > 0; --l) std::swap(order[l], order[rng.below(l + 1)]);
      Labels truth(order.begin(), order.begin() + 1 + static_cast<std::ptrdiff_t>(rng.below(8)));
      std::sort(truth.begin(), truth.end());
      for (std::size_t l = kLabelCount - 1; l > 0; --l) std::swap(order[l], order[rng.below(l + 1)]);
      order.resize(rng.below(kLabelCount));
      evaluator.add(ranking(order), truth);
      slow.ranked.push_back(order);
      slow.truth.push_back(truth);
    }
    const auto m = named(evaluator.metrics());
    for (const std::size_t k : {1U, 3U, 5U}) {
      EXPECT_NEAR(m.at("P@" + std::to_string(k)), slow.precision(k), 1e-9);
      EXPECT_NEAR(m.at("nDCG@" + std::to_string(k)), slow.ndcg(k), 1e-9);
      EXPECT_NEAR(m.at("PSP@" + std::to_string(k)), slow.psp(k), 1e-9);
    }
    EXPECT_NEAR(m.at("recall@10"), slow.recall(10), 1e-9);
    EXPECT_NEAR(m.at("recall@20"), slow.recall(20), 1e-9);
    EXPECT_NEAR(m.at("MRR@20"), slow.reciprocal_rank(20), 1e-9);
    EXPECT_NEAR(m.at("hit@1"), slow.hit_rate(1), 1e-9);
    EXPECT_NEAR(m.at("hit@10"), slow.hit_rate(10), 1e-9);
    EXPECT_DOUBLE_EQ(m.at("median_rank"), slow.median_rank());
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
