// SPDX-License-Identifier: Apache-2.0
#include "learn/lsh/winner_hash.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"
#include "learn/lsh/densify.h"

namespace gossamer::lsh {
namespace {

using kernels::kCodeRows;

constexpr std::uint32_t kEmpty = UINT32_MAX;

float smallest_magnitude(std::span<const float> row) {
  float smallest = std::numeric_limits<float>::infinity();
  for (const float x : row) smallest = std::min(smallest, std::abs(x));
  return smallest;
}

}  // namespace

WinnerHash::WinnerHash(const WinnerHashOptions& options)
    : HashFamily(options.shape,
                 options.shape.functions * static_cast<std::size_t>(std::bit_width(options.window) - 1)),
      kernels_(kernels::kernels_for(options.isa)),
      window_(options.window),
      place_bits_(static_cast<unsigned>(std::bit_width(options.window) - 1)),
      seed_(options.seed),
      index_(options.shape.functions * options.shape.tables * options.window),
      begin_(options.shape.dimension + 1),
      places_(index_.size()) {
  const std::size_t dimension = options.shape.dimension;
  CHECK(std::has_single_bit(window_) && window_ >= 2 && window_ <= dimension, window_, dimension);
  const std::size_t windows = dimension / window_;  // of a permutation
  std::vector<std::uint32_t> order(dimension);
  for (std::size_t f = 0; f < options.shape.functions * options.shape.tables; ++f) {
    if (f % windows == 0) {
      Rng rng(seed_, Purpose::kHashFunctions, f / windows);
      std::iota(order.begin(), order.end(), 0U);
      for (std::size_t i = 0; i < dimension; ++i) std::swap(order[i], order[i + rng.below(dimension - i)]);
    }
    std::copy_n(order.data() + f % windows * window_, window_, index_.data() + f * window_);
  }
  for (const std::uint32_t i : index_) ++begin_[i + 1];
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (std::size_t at = 0; at < index_.size(); ++at) {
    places_[next[index_[at]]++] = {.function = static_cast<std::uint32_t>(at / window_),
                                   .place = static_cast<std::uint32_t>(at % window_)};
  }
}

void WinnerHash::hash_block(std::span<const float* const> rows, HashWorkspace& workspace,
                            const BlockCodes& out) const {
  const std::size_t tables = shape().tables;
  transpose_block(kernels_, shape(), rows, workspace);
  kernels_.winner_codes({.columns = workspace.columns.data(),
                         .index = index_.data(),
                         .codes = tables,
                         .functions = shape().functions,
                         .window = window_,
                         .out = out.codes,
                         .smallest = out.slack});
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::span row(rows[r], shape().dimension);
    const float smallest = smallest_magnitude(row);
    // Two coordinates of one vector approach each other by at most sqrt(2) times its move. No coordinate
    // becomes absent before it has moved by its magnitude. An absent one may appear at any move.
    const double lead = static_cast<double>(out.slack[r]) * std::sqrt(0.5);
    out.slack[r] = static_cast<float>(std::min(lead, static_cast<double>(smallest)) * (1 - 0x1p-20));
    if (smallest > 0) continue;
    const auto codes = workspace.codes.span();
    hash(nonzeros(row, workspace), workspace, codes);
    for (std::size_t t = 0; t < tables; ++t) out.codes[t * kCodeRows + r] = codes[t];
  }
}

void WinnerHash::hash(const data::SparseRow& vector, HashWorkspace& workspace,
                      std::span<std::uint32_t> codes) const {
  const std::size_t functions = shape().functions * shape().tables;
  CHECK(codes.size() == shape().tables, codes.size(), shape().tables);
  float* best = workspace.function_value.data();
  std::uint32_t* winner = workspace.function_winner.data();
  std::fill_n(winner, functions, kEmpty);
  bool present = false;
  for (std::size_t i = 0; i < vector.index.size(); ++i) {
    const float x = vector.value[i];
    if (x == 0.0F) continue;
    for (std::uint32_t at = begin_[vector.index[i]]; at < begin_[vector.index[i] + 1]; ++at) {
      const Place& p = places_[at];
      const bool first = winner[p.function] == kEmpty;
      const bool wins = x > best[p.function] || (x == best[p.function] && p.place < winner[p.function]);
      if (!first && !wins) continue;
      best[p.function] = x;
      winner[p.function] = p.place;
      present = true;
    }
  }
  const auto filled = [&](std::size_t f) { return winner[f] != kEmpty; };
  for (std::size_t t = 0; t < codes.size(); ++t) {
    std::uint32_t code = 0;
    for (std::size_t k = 0; k < shape().functions && present; ++k) {
      const std::size_t f = t * shape().functions + k;
      const std::size_t from = filled(f) ? f : donor_of(f, {.count = functions, .seed = seed_}, filled);
      code |= winner[from] << (place_bits_ * k);
    }
    codes[t] = code;
  }
}

}  // namespace gossamer::lsh
