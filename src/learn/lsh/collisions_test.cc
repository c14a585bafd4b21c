// SPDX-License-Identifier: Apache-2.0
//
// Collision probabilities against theory (collisions.md). Each estimate is a mean of n independent trials
// with success probability p. Five standard errors are 5 sqrt(p (1 - p) / n), exceeded once in 10^6 seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "learn/lsh/simhash.h"
#include "learn/lsh/winner_hash.h"

namespace gossamer::lsh {
namespace {

double five_errors(double p, double n) { return 5 * std::sqrt(p * (1 - p) / n); }

// The share of seeds for which function 0 of the family make(seed) agrees on two vectors.
template <class Make>
double agreement(int seeds, std::span<const float> x, std::span<const float> y, Make&& make) {
  int equal = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    const auto family = make(static_cast<std::uint64_t>(seed));
    HashWorkspace workspace(family.shape());
    std::vector<std::uint32_t> a(family.shape().tables);
    std::vector<std::uint32_t> b(a.size());
    family.hash_dense(x, workspace, a);
    family.hash_dense(y, workspace, b);
    equal += a[0] == b[0] ? 1 : 0;
  }
  return static_cast<double>(equal) / seeds;
}

// Two vectors at angle theta agree in 1 - theta / pi of the bits, within the error of sampling and 0.01. So
// it is with a third of the entries of 128, and with all of them (sums of 128 random signs).
TEST(SimHash, CollidesByAngle) {
  constexpr std::size_t kDimension = 128;
  Rng rng(1, Purpose::kTest, 1);
  std::vector<double> u(kDimension);
  std::vector<double> v(kDimension);
  for (std::size_t i = 0; i < kDimension; ++i) u[i] = static_cast<double>(rng.normal());
  for (std::size_t i = 0; i < kDimension; ++i) v[i] = static_cast<double>(rng.normal());
  const double norm = std::inner_product(u.begin(), u.end(), u.begin(), 0.0);
  const double along = std::inner_product(u.begin(), u.end(), v.begin(), 0.0) / norm;
  for (std::size_t i = 0; i < kDimension; ++i) v[i] -= along * u[i];
  const double across = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0) / norm);
  for (const double density : {1.0 / 3, 1.0}) {
    for (const double degrees : {5.0, 30.0, 60.0, 90.0, 150.0}) {
      const double theta = degrees / 180 * std::numbers::pi;
      std::vector<float> x(kDimension);
      std::vector<float> y(kDimension);
      for (std::size_t i = 0; i < kDimension; ++i) {
        x[i] = static_cast<float>(u[i]);
        y[i] = static_cast<float>(std::cos(theta) * u[i] + std::sin(theta) / across * v[i]);
      }
      constexpr std::size_t kFunctions = 20000;
      const SimHash family({.shape = {.dimension = kDimension, .functions = 1, .tables = kFunctions},
                            .density = density,
                            .seed = 77});
      HashWorkspace workspace(family.shape());
      std::vector<std::uint32_t> a(kFunctions);
      std::vector<std::uint32_t> b(kFunctions);
      family.hash_dense(x, workspace, a);
      family.hash_dense(y, workspace, b);
      double equal = 0;
      for (std::size_t f = 0; f < kFunctions; ++f) equal += a[f] == b[f] ? 1 : 0;
      const double p = 1 - degrees / 180;
      EXPECT_NEAR(equal / kFunctions, p, five_errors(p, kFunctions) + 0.01) << density << " " << degrees;
    }
  }
}

// Whether the largest of the chosen coordinates is the same in both vectors.
bool same_winner(std::span<const std::size_t> chosen, std::span<const float> x, std::span<const float> y) {
  const auto largest = [&](std::span<const float> v) {
    return *std::ranges::max_element(chosen, {}, [&](std::size_t i) { return v[i]; });
  };
  return largest(x) == largest(y);
}

// A function agrees with the probability that the largest of a random window is the same coordinate in both
// vectors, counted over all windows.
TEST(WinnerHash, CollidesByRankAgreement) {
  const std::vector<float> x = {5, 1, 4, 2, 8, 7, 3, 6, 9, 10};
  const std::vector<float> y = {1, 6, 4, 9, 8, 2, 3, 5, 7, 10};
  for (const std::size_t window : {std::size_t{2}, std::size_t{4}, std::size_t{8}}) {
    double windows = 0;
    double equal = 0;
    for (unsigned set = 0; set < 1U << 10; ++set) {
      if (static_cast<std::size_t>(std::popcount(set)) != window) continue;
      std::vector<std::size_t> chosen;
      for (std::size_t i = 0; i < 10; ++i) {
        if ((set >> i & 1U) != 0) chosen.push_back(i);
      }
      ++windows;
      equal += same_winner(chosen, x, y) ? 1 : 0;
    }
    const double p = equal / windows;
    constexpr int kSeeds = 20000;
    const double got = agreement(kSeeds, x, y, [&](std::uint64_t seed) {
      return WinnerHash(
          {.shape = {.dimension = 10, .functions = 1, .tables = 1}, .window = window, .seed = seed});
    });
    EXPECT_NEAR(got, p, five_errors(p, kSeeds)) << window;
  }
}

// With absent coordinates a function agrees as often as its window does. If that is empty, it agrees as often
// as a random window that is not empty. The probability is the mean over all permutations of six coordinates
// in three windows of two.
TEST(WinnerHash, DensifiesByEqualChances) {
  const std::vector<float> x = {0, 3, 0, 2, 0, 0};
  const std::vector<float> y = {0, 1, 0, 4, 0, 0};
  std::vector<std::size_t> order = {0, 1, 2, 3, 4, 5};
  double sum = 0;
  double orders = 0;
  do {
    std::vector<double> equal;  // of the windows that are not empty
    bool first_empty = false;
    for (std::size_t w = 0; w < 3; ++w) {
      std::vector<std::size_t> present;
      for (const std::size_t i : {order[2 * w], order[2 * w + 1]}) {
        if (x[i] != 0) present.push_back(i);
      }
      if (present.empty()) {
        first_empty = first_empty || w == 0;
      } else {
        equal.push_back(same_winner(present, x, y) ? 1 : 0);
      }
    }
    const double mean = std::accumulate(equal.begin(), equal.end(), 0.0) / static_cast<double>(equal.size());
    sum += first_empty ? mean : equal[0];
    ++orders;
  } while (std::ranges::next_permutation(order).found);
  const double p = sum / orders;
  EXPECT_GT(p, 0.5);
  EXPECT_LT(p, 0.95);
  constexpr int kSeeds = 20000;
  const double got = agreement(kSeeds, x, y, [](std::uint64_t seed) {
    return WinnerHash({.shape = {.dimension = 6, .functions = 1, .tables = 3}, .window = 2, .seed = seed});
  });
  EXPECT_NEAR(got, p, five_errors(p, kSeeds));
}

// With p the probability of one function, a code of K functions collides with probability p^K. One of L
// tables has a collision with probability 1 - (1 - p^K)^L: the law that SLIDE samples by. (0.01 for each p,
// as above.)
TEST(SimHash, CollidesByTheLawOfKAndL) {
  std::vector<float> x(100);
  std::vector<float> y(100);
  Rng rng(1, Purpose::kTest, 2);
  for (std::size_t i = 0; i < 100; ++i) x[i] = rng.normal();
  for (std::size_t i = 0; i < 100; ++i) y[i] = x[i] + rng.normal();
  const double xy = std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  const double xx = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
  const double yy = std::inner_product(y.begin(), y.end(), y.begin(), 0.0);
  const double p = 1 - std::acos(xy / std::sqrt(xx * yy)) / std::numbers::pi;
  constexpr int kSeeds = 5000;
  for (const std::size_t functions : {std::size_t{1}, std::size_t{3}, std::size_t{6}}) {
    const HashShape shape = {.dimension = 100, .functions = functions, .tables = 4};
    HashWorkspace workspace(shape);
    std::vector<std::uint32_t> a(4);
    std::vector<std::uint32_t> b(4);
    int found = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const SimHash family({.shape = shape, .seed = seed});
      family.hash_dense(x, workspace, a);
      family.hash_dense(y, workspace, b);
      bool any = false;
      for (std::size_t t = 0; t < 4; ++t) any = any || a[t] == b[t];
      found += any ? 1 : 0;
    }
    const auto law = [&](double q) { return 1 - std::pow(1 - std::pow(q, functions), 4); };
    const double error = five_errors(law(p), kSeeds);
    EXPECT_GT(static_cast<double>(found) / kSeeds, law(p - 0.01) - error) << functions;
    EXPECT_LT(static_cast<double>(found) / kSeeds, law(p + 0.01) + error) << functions;
  }
}

}  // namespace
}  // namespace gossamer::lsh
