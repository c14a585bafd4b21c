// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/hidden_layer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

namespace gossamer::sparse {

void HiddenLayer::activate(float* values, std::size_t n) const {
  kernels_.activate[static_cast<std::size_t>(activation_)](
      {.y = values, .h = values, .kept = nullptr, .scale = 1, .n = n});
}

void HiddenLayer::forward(const DenseLayer& layer, const float* in, float* out) const {
  const RowTable& weights = layer.weights;
  const std::size_t stride = row_stride(weights.rows());
  for (std::size_t unit = 0; unit < weights.rows(); ++unit) {
    out[unit] = layer.bias[unit] + kernels_.dot(weights.weights(unit), in, weights.stride());
  }
  std::fill(out + weights.rows(), out + stride, 0.0F);
  activate(out, stride);
}

void HiddenLayer::forward(const data::SparseRow& features, float* out) const {
  const std::size_t first = network_.embedding.stride();
  std::size_t widest = first;
  for (const DenseLayer& layer : network_.dense) widest = std::max(widest, row_stride(layer.weights.rows()));
  std::vector<float> buffer(network_.dense.empty() ? 0 : 2 * widest);
  float* in = network_.dense.empty() ? out : buffer.data();
  float* next = buffer.data() + (network_.dense.empty() ? 0 : widest);
  kernels_.weighted_sum({.out = in,
                         .table = network_.embedding.weights(0),
                         .stride = first,
                         .indices = features.index.data(),
                         .values = features.value.data(),
                         .count = features.index.size(),
                         .width = first});
  activate(in, first);
  for (std::size_t i = 0; i < network_.dense.size(); ++i) {
    if (i + 1 == network_.dense.size()) next = out;
    forward(network_.dense[i], in, next);
    std::swap(in, next);
  }
}

void HiddenLayer::forward(const data::SparseRows& features, std::span<float> out) const {
  CHECK(out.size() >= features.rows() * stride(), out.size(), features.rows(), stride());
  for (std::size_t i = 0; i < features.rows(); ++i) forward(features.row(i), out.data() + i * stride());
}

}  // namespace gossamer::sparse
