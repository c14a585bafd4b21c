// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/value_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

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

bool within(std::span<const sparse::PartitionShare> shares, float most) {
  return std::ranges::all_of(shares, [most](const sparse::PartitionShare& share) {
    const bool sum = std::isfinite(share.sum) && share.sum >= 0;
    return sum && (share.sum == 0 || magnitude(share.shift) <= magnitude(most));
  });
}

Error beyond_bounds(std::string_view what) {
  return {.kind = ErrorKind::kBadData,
          .where = "a step",
          .what = "a member gave a number that none can have",
          .got = fmt::format("{} that is no number, or beyond the bound", what),
          .expected = fmt::format("numbers up to {:.3g}", kMostTaken),
          .fix = "look whether all nodes run the same version"};
}

Error diverged(std::string_view what) {
  return {
      .kind = ErrorKind::kFailed,
      .where = "a step",
      .what = "the network has diverged",
      .got = fmt::format("{} that is no number, or beyond the bound", what),
      .expected = fmt::format("numbers up to {:.3g}", kMostGiven),
      .fix = "resume from an older checkpoint with a smaller train.lr, or look for huge values in the data"};
}

}  // namespace gossamer::sparse_engine
