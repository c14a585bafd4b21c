// SPDX-License-Identifier: Apache-2.0
//
// BatchState: what a step keeps per sample between its phases. All matrices are [padded][stride], row-major;
// `padded` is the batch size rounded up for the panel products. Rows from `samples` on are padding: h = 0 and
// inv = 0, so that they change nothing.
//
// Owner: the learner. Thread rule: in the phases by sample each row belongs to one worker; in the phases by
// label everything here is read only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/aligned_array.h"

namespace gossamer::sparse {

struct BatchState {
  BatchState(std::size_t padded_samples, std::size_t row_stride)
      : padded(padded_samples),
        stride(row_stride),
        y(padded * stride),
        h(padded * stride),
        dh(padded * stride),
        kept(padded * stride),
        shift(padded),
        target(padded),
        positive_mean(padded),
        inv(padded),
        loss(padded) {}

  [[nodiscard]] std::uint64_t bytes() const {
    return padded * stride * (3 * sizeof(float) + 1) + 5 * padded * sizeof(float);
  }

  std::size_t padded;
  std::size_t stride;
  std::size_t samples = 0;            // of the present step
  AlignedArray<float> y;              // activation output, before dropout
  AlignedArray<float> h;              // after dropout: what the output layer sees
  AlignedArray<float> dh;             // gradient of the mean loss by h, then by the input of the activation
  AlignedArray<std::uint8_t> kept;    // dropout: 1 = kept
  AlignedArray<float> shift;          // largest score of the sample's own labels; 0 without labels
  AlignedArray<float> target;         // 1 / own labels; 0 without labels
  AlignedArray<float> positive_mean;  // mean score of the own labels
  AlignedArray<float> inv;            // 1 / (Z * samples), Z = sum of exp(score - shift); 0 without labels
  AlignedArray<float> loss;           // nats; 0 without labels
};

}  // namespace gossamer::sparse
