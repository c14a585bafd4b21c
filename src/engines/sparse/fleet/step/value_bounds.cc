// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/value_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

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

// Each layer has a bound 2^kMore times that of the one before: twice for what is taken, 2^7 for weights.
float rising(int first, std::size_t layers_before) {
  constexpr int kMore = 8;
  return std::ldexp(1.0F, first + kMore * static_cast<int>(std::min(layers_before, kMostLayers - 1)));
}

}  // namespace

bool within(std::span<const sparse::PartitionShare> shares, float most) {
  return shares_within(shares, most, kMostSum);
}

bool are_sums(std::span<const sparse::PartitionShare> sums) {
  return shares_within(sums, taken(kMostScore), std::numeric_limits<float>::max());
}

namespace {

std::string up_to(float most) { return fmt::format("numbers up to {:.3g}", most); }

std::string expected(sparse::RowFault fault, RowsAre rows) {
  const auto most = [rows](float given) { return up_to(rows == RowsAre::kGiven ? given : taken(given)); };
  switch (fault) {
    case sparse::RowFault::kWeight: return most(kMostWeight);
    case sparse::RowFault::kFirstMoment: return most(kMostMoment);
    case sparse::RowFault::kSecondMoment: return "numbers that are not negative";
    case sparse::RowFault::kMoments: return "moments that some gradients give";
    case sparse::RowFault::kStep: return "a step before that of the copy";
  }
  return "";
}

Error given_wrong(std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .where = "a step",
          .what = "a member gave a number that none can have",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "look whether all nodes run the same version"};
}

Error has_diverged(std::string got, std::string expected) {
  return network_diverged({.where = "a step", .got = std::move(got), .expected = std::move(expected)});
}

}  // namespace

float most_hidden(std::size_t layer) { return rising(30, layer); }

float most_gradient(std::size_t layer, std::size_t layers) { return rising(20, layers - 1 - layer); }

Error beyond_bounds(std::string_view what, float most) {
  return given_wrong(fmt::format("{} that is no number, or beyond the bound", what), up_to(most));
}

Error diverged(std::string_view what, float most) {
  return has_diverged(fmt::format("{} that is no number, or beyond the bound", what), up_to(most));
}

Error beyond_bounds(sparse::RowFault fault) {
  return given_wrong(fmt::format("{} that cannot be", name(fault)), expected(fault, RowsAre::kTaken));
}

Error diverged(sparse::RowFault fault) {
  return has_diverged(fmt::format("{} that cannot be", name(fault)), expected(fault, RowsAre::kGiven));
}

sparse::PieceRowCheck row_check(const FleetJob& job, const sparse::NetworkPiece& piece, RowsAre rows,
                                StepNumber step) {
  const bool given = rows == RowsAre::kGiven;
  return {job.shape.network,
          job.moments,
          job.learner.optimizer,
          piece,
          {.weights = given ? kMostWeight : taken(kMostWeight),
           .moments = given ? kMostMoment : taken(kMostMoment),
           .steps = step.value}};
}

}  // namespace gossamer::sparse_engine
