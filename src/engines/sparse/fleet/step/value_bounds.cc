// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/value_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "engines/sparse/train/divergence.h"

namespace gossamer::sparse_engine {
namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffff;

// Without their signs, floats are in the order of their bits, and NaNs come last.
std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & kMagnitude; }

// A maximum of whole numbers, which compilers make vectors of.
std::uint32_t largest(std::span<const float> values) {
  std::uint32_t most = 0;
  for (const float value : values) most = std::max(most, magnitude(value));
  return most;
}

}  // namespace

bool within(std::span<const float> values, float most) { return largest(values) <= magnitude(most); }

bool within(std::span<const float> matrix, std::size_t stride, host::Range columns, float most) {
  const std::size_t width = columns.end - columns.begin;
  if (width == 0) return true;
  std::uint32_t all = 0;
  for (std::size_t row = 0; row + stride <= matrix.size(); row += stride)
    all = std::max(all, largest(matrix.subspan(row + columns.begin, width)));
  return all <= magnitude(most);
}

namespace {

bool shares_within(std::span<const sparse::PartitionShare> shares, float shift, float sum) {
  return std::ranges::all_of(shares, [&](const sparse::PartitionShare& share) {
    return share.sum >= 0 && share.sum <= sum &&
           (share.sum == 0 || magnitude(share.shift) <= magnitude(shift));
  });
}

}  // namespace

bool within(std::span<const sparse::PartitionShare> shares, float most) {
  return shares_within(shares, most, kMostSum);
}

bool are_sums(std::span<const sparse::PartitionShare> sums) {
  return shares_within(sums, kMostTaken, std::numeric_limits<float>::max());
}

float most_hidden(std::size_t layer) {
  constexpr int kFirst = 30;
  constexpr int kMore = 10;  // for each layer
  constexpr int kLast = 50;
  return std::ldexp(1.0F,
                    std::min(kFirst + kMore * static_cast<int>(std::min<std::size_t>(layer, kLast)), kLast));
}

float most_gradient(std::size_t layer, std::size_t layers) {
  constexpr int kTop = 20;
  constexpr int kMore = 10;
  constexpr int kLast = 40;
  const auto below = static_cast<int>(std::min<std::size_t>(layers - 1 - layer, kLast));
  return std::ldexp(1.0F, std::min(kTop + kMore * below, kLast));
}

Error beyond_bounds(std::string_view what, float most) {
  return {.kind = ErrorKind::kBadData,
          .where = "a step",
          .what = "a member gave a number that none can have",
          .got = fmt::format("{} that is no number, or beyond the bound", what),
          .expected = fmt::format("numbers up to {:.3g}", most),
          .fix = "look whether all nodes run the same version"};
}

Error diverged(std::string_view what, float most) {
  return network_diverged({.where = "a step",
                           .got = fmt::format("{} that is no number, or beyond the bound", what),
                           .expected = fmt::format("numbers up to {:.3g}", most)});
}

}  // namespace gossamer::sparse_engine
