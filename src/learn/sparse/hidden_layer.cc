// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/hidden_layer.h"

#include "base/check.h"

namespace gossamer::sparse {

void HiddenLayer::forward(const data::SparseRow& features, float* out) const {
  kernels_.weighted_sum({.out = out,
                         .table = network_.embedding.weights(0),
                         .stride = stride(),
                         .indices = features.index.data(),
                         .values = features.value.data(),
                         .count = features.index.size(),
                         .width = stride()});
  kernels_.activate[static_cast<std::size_t>(activation_)](
      {.y = out, .h = out, .kept = nullptr, .scale = 1, .n = stride()});
}

void HiddenLayer::forward(const data::SparseRows& features, std::span<float> out) const {
  CHECK(out.size() >= features.rows() * stride(), out.size(), features.rows(), stride());
  for (std::size_t i = 0; i < features.rows(); ++i) forward(features.row(i), out.data() + i * stride());
}

}  // namespace gossamer::sparse
