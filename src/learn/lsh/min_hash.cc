// SPDX-License-Identifier: Apache-2.0
#include "learn/lsh/min_hash.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"
#include "learn/lsh/densify.h"

namespace gossamer::lsh {
namespace {

using kernels::kCodeRows;

constexpr std::uint64_t kEmpty = UINT64_MAX;

}  // namespace

MinHash::MinHash(const MinHashOptions& options)
    : HashFamily(options.shape, options.shape.functions * options.bits),
      bits_(options.bits),
      top_(options.top),
      seed_(options.seed) {
  CHECK(top_ >= 1 && top_ <= options.shape.dimension, top_, options.shape.dimension);
  Rng rng(seed_, Purpose::kHashFunctions);
  key_ = {rng.next_u32(), rng.next_u32()};
}

float MinHash::select_top(std::span<const float> vector, HashWorkspace& workspace) const {
  CHECK(vector.size() == shape().dimension, vector.size(), shape().dimension);
  const auto order = workspace.index.span();
  std::iota(order.begin(), order.end(), 0U);
  if (top_ == order.size()) return std::numeric_limits<float>::infinity();
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return vector[a] > vector[b] || (vector[a] == vector[b] && a < b);
  };
  const auto rest = order.begin() + static_cast<std::ptrdiff_t>(top_);
  std::nth_element(order.begin(), rest, order.end(), before);
  const std::uint32_t last = *std::max_element(order.begin(), rest, before);
  // Two coordinates approach each other by at most sqrt(2) times the move.
  const double lead = static_cast<double>(vector[last] - vector[*rest]);
  return static_cast<float>(std::max(0.0, lead * std::sqrt(0.5) * (1 - 0x1p-20)));
}

void MinHash::hash_block(std::span<const float* const> rows, HashWorkspace& workspace,
                         const BlockCodes& out) const {
  CHECK(rows.size() <= kCodeRows, rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    out.slack[r] = select_top({rows[r], shape().dimension}, workspace);
    hash_set(workspace.index.span().first(top_), workspace, workspace.codes.span());
    for (std::size_t t = 0; t < shape().tables; ++t) out.codes[t * kCodeRows + r] = workspace.codes[t];
  }
}

void MinHash::hash(const data::SparseRow& vector, HashWorkspace& workspace,
                   std::span<std::uint32_t> codes) const {
  hash_set(vector.index, workspace, codes);
}

void MinHash::hash_dense(std::span<const float> vector, HashWorkspace& workspace,
                         std::span<std::uint32_t> codes) const {
  select_top(vector, workspace);
  hash_set(workspace.index.span().first(top_), workspace, codes);
}

// Philox permutes the 128-bit counters, so that different indices have different random words. The first word
// tells the bin, the next two the rank in it, the last the answer.
void MinHash::hash_set(std::span<const std::uint32_t> set, HashWorkspace& workspace,
                       std::span<std::uint32_t> codes) const {
  const std::size_t bins = shape().functions * shape().tables;
  CHECK(codes.size() == shape().tables, codes.size(), shape().tables);
  std::uint64_t* rank = workspace.function_rank.data();
  std::uint32_t* answer = workspace.function_winner.data();
  std::fill_n(rank, bins, kEmpty);
  for (const std::uint32_t i : set) {
    const std::array<std::uint32_t, 4> word = philox4x32({i, 0, 0, 0}, key_);
    const std::size_t bin = (std::uint64_t{word[0]} * bins) >> 32;
    const std::uint64_t r = (std::uint64_t{word[1]} << 31) ^ word[2];
    if (r >= rank[bin]) continue;
    rank[bin] = r;
    answer[bin] = word[3] >> (32 - bits_);
  }
  const auto filled = [&](std::size_t bin) { return rank[bin] != kEmpty; };
  for (std::size_t t = 0; t < codes.size(); ++t) {
    std::uint32_t code = 0;
    for (std::size_t k = 0; k < shape().functions && !set.empty(); ++k) {
      const std::size_t bin = t * shape().functions + k;
      const std::size_t from = filled(bin) ? bin : donor_of(bin, {.count = bins, .seed = seed_}, filled);
      code |= answer[from] << (bits_ * k);
    }
    codes[t] = code;
  }
}

}  // namespace gossamer::lsh
