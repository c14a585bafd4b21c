// SPDX-License-Identifier: Apache-2.0
//
// Network: the parameters of a sparse classifier, or one node's part of them, and what training keeps beside
// them.
//
//   z = sum over features of value * embedding row;  h = activation(z);
//   for each dense layer:  h = activation(weights h + bias);
//   score(label) = output row . h + bias
//
// `order` says where a label's output row and bias stand (row_order.h): among the shards that nodes hold
// while training, else at the label's own number.
// A part of a network (network_shape.h) has only its columns of the embedding and its units of a dense layer.
// Its output has a place for every row. Rows of other nodes are never touched: they take no memory.
//
// Owner: the trainer or the predictor; a Network moves, never copies. Thread rule: see RowTable; a row's bias
// belongs to the worker that owns the row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/aligned_array.h"
#include "host/api/compute.h"
#include "learn/sparse/network/adam.h"
#include "learn/sparse/network/network_shape.h"
#include "learn/sparse/network/row_table.h"

namespace gossamer::sparse {

// A dense layer from one hidden layer to the next. A unit's row and bias belong to one worker.
struct DenseLayer {
  DenseLayer() = default;
  DenseLayer(RowTableShape shape, Moments moments);

  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] AdamScalar bias_scalar(std::size_t unit) {
    return {&bias[unit], &bias_moment1[unit], &bias_moment2[unit]};
  }

  RowTable weights;                  // [units][width of the layer before]
  AlignedArray<float> bias;          // [units], zeros up to row_stride(units)
  AlignedArray<float> bias_moment1;  // empty without moments
  AlignedArray<float> bias_moment2;
};

// The moments of the two tables. Dense layers and biases, which are small, always have Moments::kElement.
struct TableMoments {
  Moments embedding;
  Moments output;
};

struct Network {
  Network() = default;
  Network(const NetworkShape& network_shape, Moments moments)
      : Network(network_shape, TableMoments{.embedding = moments, .output = moments}) {}
  Network(const NetworkShape& network_shape, TableMoments moments)
      : Network(network_shape, sparse::whole(network_shape), moments) {}
  // Requires that both are Moments::kNone or neither is.
  Network(NetworkShape network_shape, NetworkPart held, TableMoments moments);

  [[nodiscard]] std::uint64_t bytes() const;
  // Frees what only training needs.
  void drop_moments();
  [[nodiscard]] AdamScalar bias_scalar(std::uint32_t row) {
    return {&bias[row], &bias_moment1[row], &bias_moment2[row]};
  }

  NetworkShape shape;
  NetworkPart part;                  // the part of it that is here
  RowOrder order;                    // order of the output rows
  RowTable embedding;                // [features][hidden]
  std::vector<DenseLayer> dense;     // from the first hidden layer upwards; may be empty
  RowTable output;                   // [labels][last hidden]
  AlignedArray<float> bias;          // [labels]
  AlignedArray<float> bias_moment1;  // [labels], empty without moments; last steps are those of `output`
  AlignedArray<float> bias_moment2;
};

struct NetworkInit {
  float embedding_stddev = 0.05F;  // larger ones lose accuracy (measured: 10 points at 0.5)
  float output_stddev = 0.01F;
  // Dense weights have the standard deviation gain / sqrt(inputs). sqrt(2) suits relu.
  float dense_gain = 1.414F;
  std::uint64_t seed = 1;
};
// The bias of a label that no training record has: low enough never to be predicted.
inline constexpr float kUnseenBias = -50.0F;

// Sets random weights, and biases to 0, or kUnseenBias where count_of_row is 0; only in rows that no step has
// updated. count_of_row is [labels], by row. A label's row gets the same values for any number of workers,
// any part and any order.
void initialize(Network& network, const NetworkInit& init, std::span<const std::uint32_t> count_of_row,
                host::Compute& compute);

// Ends the order: moves each label's row and bias, within the memory that they are in, to the label's own
// number. Requires all rows, and no moments.
void order_by_label(Network& network);

}  // namespace gossamer::sparse
