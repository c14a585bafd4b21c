// SPDX-License-Identifier: Apache-2.0
#include "learn/lsh/simhash.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"

namespace gossamer::lsh {
namespace {

using kernels::kCodeRows;
using kernels::kLanes;

std::size_t terms_of(const SimHashOptions& o) {
  CHECK(o.density > 0 && o.density <= 1, o.density);
  const double terms = std::round(o.density * static_cast<double>(o.shape.dimension));
  return std::max<std::size_t>(1, static_cast<std::size_t>(terms));
}

// Chooses different numbers below order.size() for `out`, increasing. `order` is any permutation, and is left
// as another.
void choose(Rng& rng, std::span<std::uint32_t> order, std::span<std::uint32_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::swap(order[i], order[i + rng.below(order.size() - i)]);
    out[i] = order[i];
  }
  std::ranges::sort(out);
}

}  // namespace

SimHash::SimHash(const SimHashOptions& options)
    : HashFamily(options.shape, options.shape.functions),
      kernels_(kernels::kernels_for(options.isa)),
      terms_(terms_of(options)),
      stride_((options.shape.functions * options.shape.tables + kLanes - 1) / kLanes * kLanes),
      index_(options.shape.functions * options.shape.tables * terms_),
      sign_(index_.size()),
      matrix_(options.shape.dimension * stride_) {
  std::vector<std::uint32_t> order(options.shape.dimension);
  for (std::size_t f = 0; f < options.shape.functions * options.shape.tables; ++f) {
    Rng rng(options.seed, Purpose::kHashFunctions, f);
    std::iota(order.begin(), order.end(), 0U);
    const auto index = std::span(index_).subspan(f * terms_, terms_);
    choose(rng, order, index);
    for (std::size_t t = 0; t < terms_; ++t) {
      const float sign = (rng.next_u32() & 1U) == 0 ? 1.0F : -1.0F;
      sign_[f * terms_ + t] = sign;
      matrix_[index[t] * stride_ + f] = sign;
    }
  }
}

void SimHash::hash_block(std::span<const float* const> rows, HashWorkspace& workspace,
                         const BlockCodes& out) const {
  transpose_block(kernels_, shape(), rows, workspace);
  kernels_.sign_codes({.columns = workspace.columns.data(),
                       .index = index_.data(),
                       .sign = sign_.data(),
                       .codes = shape().tables,
                       .functions = shape().functions,
                       .terms = terms_,
                       .out = out.codes,
                       .smallest = out.slack});
  // A move by d changes a sum of s terms by at most sqrt(s) d. Taken off are s roundings of at most |x|
  // sqrt(s) 2^-24 each, now and after the move (collisions.md).
  const double root = std::sqrt(static_cast<double>(terms_));
  const double rounding = static_cast<double>(terms_) * 0x1p-22;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const float* row = workspace.rows.data() + r * workspace.stride;
    const double norm = std::sqrt(static_cast<double>(kernels_.squared_norm(row, workspace.stride)));
    const double slack = (static_cast<double>(out.slack[r]) / root - rounding * norm) * (1 - rounding);
    out.slack[r] = static_cast<float>(std::max(0.0, slack));
  }
}

// The same sums as in hash_block, in the same order: a product by +1 or -1 is exact, one by 0 adds nothing.
void SimHash::project(const data::SparseRow& vector, HashWorkspace& workspace) const {
  kernels_.weighted_sum({.out = workspace.function_value.data(),
                         .table = matrix_.data(),
                         .stride = stride_,
                         .indices = vector.index.data(),
                         .values = vector.value.data(),
                         .count = vector.index.size(),
                         .width = stride_});
}

void SimHash::hash(const data::SparseRow& vector, HashWorkspace& workspace,
                   std::span<std::uint32_t> codes) const {
  project(vector, workspace);
  codes_of(workspace.function_value.span().first(shape().functions * shape().tables), codes);
}

void SimHash::add_projections(const data::SparseRow& change, HashWorkspace& workspace,
                              std::span<float> projections) const {
  CHECK(projections.size() == shape().functions * shape().tables, projections.size());
  project(change, workspace);
  for (std::size_t f = 0; f < projections.size(); ++f) projections[f] += workspace.function_value[f];
}

void SimHash::codes_of(std::span<const float> projections, std::span<std::uint32_t> codes) const {
  const std::size_t functions = shape().functions;
  CHECK(codes.size() == shape().tables, codes.size(), shape().tables);
  for (std::size_t t = 0; t < codes.size(); ++t) {
    std::uint32_t code = 0;
    for (std::size_t f = 0; f < functions; ++f) {
      code |= (projections[t * functions + f] >= 0.0F ? 1U : 0U) << f;
    }
    codes[t] = code;
  }
}

}  // namespace gossamer::lsh
