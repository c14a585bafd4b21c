// SPDX-License-Identifier: Apache-2.0
//
// Network: all parameters of a sparse classifier, and what training keeps beside them.
//
//   z = sum over features of value * embedding row;  h = activation(z);  score(label) = output row . h + bias
//
// Owner: whoever trains or predicts; moves, never copies. Thread rule: see RowTable; the bias of a label
// belongs to the worker that owns the label's row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/aligned_array.h"
#include "host/api/compute.h"
#include "learn/sparse/adam.h"
#include "learn/sparse/row_table.h"

namespace gossamer::sparse {

struct NetworkShape {
  std::size_t features = 0;
  std::size_t labels = 0;
  std::size_t hidden = 0;  // width of h
};

struct Network {
  Network() = default;
  Network(NetworkShape network_shape, Moments moments);

  [[nodiscard]] std::size_t stride() const { return embedding.stride(); }
  [[nodiscard]] std::uint64_t bytes() const;
  // Frees what only training needs.
  void drop_moments();
  [[nodiscard]] AdamScalar bias_scalar(std::uint32_t label) {
    return {&bias[label], &bias_moment1[label], &bias_moment2[label]};
  }

  NetworkShape shape;
  RowTable embedding;                // [features][hidden]
  RowTable output;                   // [labels][hidden]
  AlignedArray<float> bias;          // [labels]
  AlignedArray<float> bias_moment1;  // [labels], empty without moments; last steps are those of `output`
  AlignedArray<float> bias_moment2;
};

struct NetworkInit {
  float embedding_stddev = 0.05F;  // larger ones lose accuracy (measured: 10 points at 0.5)
  float output_stddev = 0.01F;
  std::uint64_t seed = 1;
};
// The bias of a label that no training record has: low enough never to be predicted.
inline constexpr float kUnseenBias = -50.0F;

// Random weights; biases 0, or kUnseenBias where label_count is 0. label_count is [labels]. The same for any
// number of workers.
void initialize(Network& network, const NetworkInit& init, std::span<const std::uint32_t> label_count,
                host::Compute& compute);

}  // namespace gossamer::sparse
