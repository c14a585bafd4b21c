// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/part_scorer.h"

#include <algorithm>

namespace gossamer::sparse_engine {

PartScorer::PartScorer(const sparse::Network& part, kernels::Activation activation,
                       const kernels::Kernels& kernels, host::Compute& compute)
    : part_(part), activation_(activation), kernels_(kernels), compute_(compute) {
  for (std::uint32_t label = 0; label < part.shape.labels; ++label) {
    const std::uint32_t row = part.order.row_of(label);
    if (!part.part.rows.contains(row)) continue;
    labels_.push_back(label);
    rows_.push_back(row);
  }
  if (rows_.empty()) return;
  search_.emplace(RowMatrix{.rows = rows_.size(),
                            .width = part.shape.last_hidden(),
                            .weights = part.output.all_weights().data(),
                            .stride = part.output.stride(),
                            .bias = part.bias.data(),
                            .at = rows_},
                  kernels, compute);
}

void PartScorer::activate(float* values, std::size_t count) const {
  kernels_.activate[static_cast<std::size_t>(activation_)](
      {.y = values, .h = values, .kept = nullptr, .scale = 1, .n = count});
}

void PartScorer::embed(const data::SparseRows& queries, HiddenRows out) const {
  const host::Range own = part_.part.columns;
  const std::size_t width = own.end - own.begin;
  if (width == 0) return;
  compute_.run([&](int worker) {
    const host::Range mine = host::worker_range(queries.rows(), worker, compute_.workers());
    for (std::size_t q = mine.begin; q < mine.end; ++q) {
      const data::SparseRow features = queries.row(q);
      float* const values = out.values + q * out.stride + own.begin;
      kernels_.weighted_sum({.out = values,
                             .table = part_.embedding.weights(0),
                             .stride = part_.embedding.stride(),
                             .indices = features.index.data(),
                             .values = features.value.data(),
                             .count = features.index.size(),
                             .width = width});
      activate(values, width);
    }
  });
}

// Computes the products of sparse::HiddenLayer for the units that are here.
void PartScorer::deepen(std::size_t layer, std::size_t queries, HiddenRows in, HiddenRows out) const {
  const sparse::DenseLayer& dense = part_.dense[layer - 1];
  const host::Range own = part_.part.units[layer - 1];
  const std::size_t width = own.end - own.begin;
  compute_.run([&](int worker) {
    const host::Range mine = host::worker_range(queries, worker, compute_.workers());
    for (std::size_t q = mine.begin; q < mine.end; ++q) {
      float* const values = out.values + q * out.stride + own.begin;
      const float* const inputs = in.values + q * in.stride;
      for (std::size_t unit = 0; unit < dense.weights.rows(); ++unit) {
        values[unit] =
            dense.bias[unit] + kernels_.dot(dense.weights.weights(unit), inputs, dense.weights.stride());
      }
      std::fill(values + dense.weights.rows(), values + width, 0.0F);
      activate(values, width);
    }
  });
}

void PartScorer::search(const QueryMatrix& queries, std::size_t k) {
  if (search_) search_->search(queries, k);
}

void PartScorer::found(std::size_t q, std::vector<Scored>& labels) const {
  if (!search_) return;
  for (const Scored& each : search_->found(q)) labels.push_back({labels_[each.id], each.score});
}

}  // namespace gossamer::sparse_engine
