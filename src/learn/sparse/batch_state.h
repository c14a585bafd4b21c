// SPDX-License-Identifier: Apache-2.0
//
// BatchState: what a step keeps per sample between its phases. `padded` is the batch size rounded up for the
// panel products. Rows from `samples` on are padding: h = 0 and inv = 0, so that they change nothing.
//
// Owner: the learner. Thread rule: in the phases by sample each row belongs to one worker; in the phases by
// label everything here is read only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_array.h"

namespace gossamer::sparse {

// One hidden layer of all samples; matrices are [padded][stride], row-major.
struct LayerState {
  LayerState(std::size_t padded_samples, std::size_t row_stride)
      : stride(row_stride),
        y(padded_samples * stride),
        h(padded_samples * stride),
        dh(padded_samples * stride),
        kept(padded_samples * stride) {}

  [[nodiscard]] std::uint64_t bytes() const { return y.size() * (3 * sizeof(float) + 1); }

  std::size_t stride;
  AlignedArray<float> y;            // activation output, before dropout
  AlignedArray<float> h;            // after dropout: what the next layer sees
  AlignedArray<float> dh;           // gradient of the mean loss by h, then by the input of the activation
  AlignedArray<std::uint8_t> kept;  // dropout: 1 = kept
};

struct BatchState {
  // Strides of the hidden layers, at least one.
  BatchState(std::size_t padded_samples, std::span<const std::size_t> strides)
      : padded(padded_samples),
        shift(padded),
        target(padded),
        positive_mean(padded),
        inv(padded),
        loss(padded) {
    for (const std::size_t stride : strides) layers.emplace_back(padded, stride);
  }

  // What the embedding becomes, and what the output layer sees. One layer is both.
  [[nodiscard]] LayerState& first() { return layers.front(); }
  [[nodiscard]] const LayerState& first() const { return layers.front(); }
  [[nodiscard]] LayerState& last() { return layers.back(); }
  [[nodiscard]] const LayerState& last() const { return layers.back(); }

  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t total = 5 * padded * sizeof(float);
    for (const LayerState& layer : layers) total += layer.bytes();
    return total;
  }

  std::size_t padded;
  std::size_t samples = 0;  // of the present step
  std::vector<LayerState> layers;
  AlignedArray<float> shift;          // largest score of the sample's own labels; 0 without labels
  AlignedArray<float> target;         // 1 / own labels; 0 without labels
  AlignedArray<float> positive_mean;  // mean score of the own labels
  AlignedArray<float> inv;            // 1 / (Z * samples), Z = sum of exp(score - shift); 0 without labels
  AlignedArray<float> loss;           // nats; 0 without labels
};

}  // namespace gossamer::sparse
