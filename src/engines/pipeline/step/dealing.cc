// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/dealing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace gossamer::pipeline {
namespace {

// Shares in whole numbers, so that their sum and all products are exact.
constexpr std::uint64_t kWhole = std::uint64_t{1} << 20U;

bool is_pace(double pace) { return std::isfinite(pace) && pace > 0; }

std::vector<std::uint64_t> weights_of(std::span<const double> paces) {
  double most = 0;
  double least = std::numeric_limits<double>::infinity();
  for (const double pace : paces) {
    if (!is_pace(pace)) continue;
    most = std::max(most, pace);
    least = std::min(least, pace);
  }
  std::vector<std::uint64_t> weights;
  for (const double pace : paces) {
    const double known = is_pace(pace) ? pace : least;
    const double weight = most > 0 ? std::floor(known / most * static_cast<double>(kWhole)) : 1;
    weights.push_back(std::max<std::uint64_t>(1, static_cast<std::uint64_t>(weight)));
  }
  return weights;
}

}  // namespace

std::vector<std::uint64_t> deal(std::uint64_t count, std::span<const double> paces) {
  CHECK(!paces.empty());
  CHECK(count < std::uint64_t{1} << 32U, count);
  const std::vector<std::uint64_t> weights = weights_of(paces);
  const std::uint64_t all = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  std::vector<std::uint64_t> dealt;
  std::vector<std::size_t> by_remainder(weights.size());
  std::uint64_t left = count;
  for (const std::uint64_t weight : weights) {
    dealt.push_back(count * weight / all);
    left -= dealt.back();
  }
  std::iota(by_remainder.begin(), by_remainder.end(), std::size_t{0});
  const auto remainder = [&](std::size_t i) { return count * weights[i] % all; };
  std::ranges::stable_sort(by_remainder,
                           [&](std::size_t a, std::size_t b) { return remainder(a) > remainder(b); });
  for (std::uint64_t i = 0; i < left; ++i) ++dealt[by_remainder[i]];
  return dealt;
}

}  // namespace gossamer::pipeline
