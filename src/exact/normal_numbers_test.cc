// SPDX-License-Identifier: Apache-2.0
#include "exact/normal_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>
#include <vector>

#include "base/digest.h"

namespace gossamer::exact {
namespace {

std::vector<double> sorted_normal(std::size_t n) {
  Rng random(3, Purpose::kTest);
  std::vector<double> numbers(n);
  fill_normal(random, 1, std::span<double>(numbers));
  std::ranges::sort(numbers);
  return numbers;
}

// Claim: the numbers are standard normal: a Kolmogorov-Smirnov test of 200,000 of them passes at 1 in 1,000.
TEST(NormalNumbers, HaveTheNormalDistribution) {
  const std::vector<double> numbers = sorted_normal(200'000);
  const auto n = static_cast<double>(numbers.size());
  double largest = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double below = 0.5 * std::erfc(-numbers[i] / std::numbers::sqrt2);
    largest = std::max({largest, std::abs(below - static_cast<double>(i) / n),
                        std::abs(below - static_cast<double>(i + 1) / n)});
  }
  EXPECT_LT(largest, 1.95 / std::sqrt(n));
}

// Claim: neighbours have nothing to do with each other, though each pair comes from one radius.
TEST(NormalNumbers, NeighboursAreIndependent) {
  Rng random(4, Purpose::kTest);
  std::vector<double> numbers(200'000);
  fill_normal(random, 1, std::span<double>(numbers));
  double products = 0;
  double squares = 0;
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    products += numbers[i] * numbers[i + 1];
    squares += (numbers[i] * numbers[i] - 1) * (numbers[i + 1] * numbers[i + 1] - 1);
  }
  const double bound = 4 * std::sqrt(static_cast<double>(numbers.size()) / 2);
  EXPECT_LT(std::abs(products), bound);
  EXPECT_LT(std::abs(squares), 2 * bound);
}

// Claim: the bits are those of this list on every CPU. The digest was recorded once.
TEST(NormalNumbers, AreTheSameOnEveryMachine) {
  Rng random(5, Purpose::kTest);
  std::vector<float> numbers(100'000);
  fill_normal(random, 0.02, std::span<float>(numbers));
  Digest digest;
  digest.add(std::as_bytes(std::span<const float>(numbers)));
  EXPECT_EQ(digest.value(), 13597155288005715134U);
}

// Claim: pieces that begin at even elements give the numbers of the whole, and an odd end costs nothing.
TEST(NormalNumbers, InPieces) {
  Rng random(6, Purpose::kTest);
  std::vector<float> whole(101);
  fill_normal(random, 1, std::span<float>(whole));
  Rng again(6, Purpose::kTest);
  std::vector<float> pieces(101);
  fill_normal(again, 1, std::span<float>(pieces).first(40));
  fill_normal(again, 1, std::span<float>(pieces).subspan(40));
  EXPECT_EQ(pieces, whole);
}

}  // namespace
}  // namespace gossamer::exact
