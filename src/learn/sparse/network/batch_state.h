// SPDX-License-Identifier: Apache-2.0
//
// BatchState: what a step keeps per sample between its phases. `padded` is the batch size rounded up for the
// panel products. Rows from `samples` on are padding: h = 0 and inv = 0, so that they change nothing.
//
// Owner: the learner. Thread rule: in the phases by sample each row belongs to one worker; in the phases by
// label everything here is read only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_array.h"
#include "host/api/compute.h"

namespace gossamer::sparse {

// The columns of a hidden layer: their stride, and the ones that this node computes.
struct LayerColumns {
  std::size_t stride;
  host::Range own;
};

// One hidden layer of all samples; matrices are [padded][stride], row-major. A node gets the columns of h
// that are not its own from the other nodes, and gives them their columns of dh.
struct LayerState {
  LayerState(std::size_t padded_samples, const LayerColumns& columns)
      : stride(columns.stride),
        own(columns.own),
        y(padded_samples * stride),
        h(padded_samples * stride),
        dh(padded_samples * stride),
        kept(padded_samples * stride) {}

  [[nodiscard]] std::uint64_t bytes() const { return y.size() * (3 * sizeof(float) + 1); }

  std::size_t stride;
  host::Range own;
  AlignedArray<float> y;            // activation output, before dropout
  AlignedArray<float> h;            // after dropout: what the next layer sees
  AlignedArray<float> dh;           // gradient of the mean loss by h, then (own) by the activation's input
  AlignedArray<std::uint8_t> kept;  // dropout: 1 = kept
};

// A node's loss share of a sample: what its rows contribute to the sample's partition sum, the sum of
// exp(score - shift) over them.
struct PartitionShare {
  float shift = 0;
  float sum = 0;
};
// Adds a loss share to a sum of loss shares. The shift of the sum is the largest of theirs. A node without
// active rows has sum 0, and its shift says nothing.
inline void add_share(PartitionShare& sum, const PartitionShare& share) {
  if (share.sum == 0) return;
  if (sum.sum == 0) {  // far from that shift its 0 would become a NaN
    sum = share;
    return;
  }
  const float shift = std::max(sum.shift, share.shift);
  sum = {.shift = shift,
         .sum = sum.sum * std::exp(sum.shift - shift) + share.sum * std::exp(share.shift - shift)};
}

struct BatchState {
  // `hidden`: the columns of the hidden layers, at least one.
  BatchState(std::size_t padded_samples, std::span<const LayerColumns> hidden)
      : padded(padded_samples),
        shift(padded),
        target(padded),
        positives(padded),
        positive_sum(padded),
        inv(padded),
        loss(padded),
        shares(padded) {
    for (const LayerColumns& layer : hidden) layers.emplace_back(padded, layer);
  }

  // The first hidden layer is what the embedding becomes; the last is what the output layer sees. One layer
  // is both.
  [[nodiscard]] LayerState& first() { return layers.front(); }
  [[nodiscard]] const LayerState& first() const { return layers.front(); }
  [[nodiscard]] LayerState& last() { return layers.back(); }
  [[nodiscard]] const LayerState& last() const { return layers.back(); }

  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t total = (6 * sizeof(float) + sizeof(PartitionShare)) * padded;
    for (const LayerState& layer : layers) total += layer.bytes();
    return total;
  }

  std::size_t padded;
  std::size_t samples = 0;  // samples of the present step
  std::vector<LayerState> layers;
  AlignedArray<float> shift;         // what is subtracted from the sample's scores; 0 without labels
  AlignedArray<float> target;        // 1 / labels; 0 without labels
  AlignedArray<float> positives;     // how many of its labels are held here
  AlignedArray<float> positive_sum;  // sum of the scores of these labels
  AlignedArray<float> inv;   // exp(shift - s) / (Z * samples), Z = sum of exp(score - s); 0 without labels
  AlignedArray<float> loss;  // nats, for the labels that are held here alone; 0 without labels
  AlignedArray<PartitionShare> shares;  // this node's loss shares
};

}  // namespace gossamer::sparse
