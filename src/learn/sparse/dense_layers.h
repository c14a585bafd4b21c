// SPDX-License-Identifier: Apache-2.0
//
// DenseLayers: the hidden layers after the first, in training. With x the vector of the layer before and g
// the gradient of the mean loss by a layer's input z:
//
//   forward   z = W x + b;  h = dropout(activation(z))                 samples split among workers
//   backward  gradient by x = W^T g                                    likewise
//   update    dW = sum over samples of g x^T, db = sum of g; Adam      rows of W split among workers
//
// A node that holds some of a layer's units has their rows of W. It needs all of x, and computes its own
// columns of h and what those add to the gradient by x.
//
// Products are f32 (kernels/dense_products.h). Unlike rows of the tables every weight is updated in every
// step: this is plain Adam. No extra barrier is needed. A worker's samples need W as the last step left it. A
// worker's rows need the whole batch, which lies behind two barriers by then.
//
// Owner: the learner. Thread rule: forward and backward concurrently on disjoint ranges of samples, update on
// all workers at once; barriers separate the three. The weights belong to update() alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned_array.h"
#include "base/ids.h"
#include "host/api/compute.h"
#include "kernels/dense_products.h"
#include "kernels/kernels.h"
#include "learn/sparse/hidden_activation.h"
#include "learn/sparse/network/adam.h"
#include "learn/sparse/network/batch_state.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse {

class DenseLayers {
 public:
  // Borrowed.
  struct Parts {
    Network& network;
    const RowOptimizer& optimizer;
    const kernels::Kernels& kernels;
  };
  // For batches of `padded` samples on `workers`.
  struct Size {
    std::size_t padded;
    int workers;
  };
  DenseLayers(const Parts& parts, const HiddenOptions& options, Size size);

  [[nodiscard]] bool empty() const { return layers_.empty(); }
  // Forward through dense layer `i`: from h of hidden layer i to the own columns of h of hidden layer i + 1.
  // Ranges begin and end at multiples of kernels::kLanes.
  void forward(std::size_t i, StepNumber step, host::Range samples, BatchState& state);
  // Backward through dense layer `i`: from the own columns of dh by the activation's input to dh of the layer
  // before.
  void backward(std::size_t i, host::Range samples, BatchState& state) const;
  // Updates this worker's rows of all layers. Requires dh of all samples by the layers' inputs.
  void update(int worker, const BatchState& state);
  // Copies this worker's rows of the weights as they are now. Without it a step sees them as this object's
  // update() left them, or as they were when it was made.
  void read_weights(int worker);

  [[nodiscard]] std::uint64_t bytes() const;

 private:
  // The products of one layer and their right operands.
  struct Layer {
    Layer(kernels::Isa isa, const DenseLayer& layer, const LayerColumns& out, std::size_t padded);

    kernels::DenseProduct forward;          // x W^T
    kernels::DenseProduct backward;         // g W
    kernels::DenseProduct weight_gradient;  // g^T x
    AlignedArray<float> packed_transposed;  // W^T
    AlignedArray<float> packed_weights;     // W
    AlignedArray<float> packed_inputs;      // x of all samples
  };
  // One worker's buffers for the rows that it updates together (a work share).
  struct Share {
    AlignedArray<float> gradients;  // g^T of those rows [kLanes][padded]
    AlignedArray<float> dw;         // [kLanes][widest layer]
  };

  void pack(std::size_t layer, kernels::SampleRange rows);
  // The blocks of kLanes rows that the worker updates.
  [[nodiscard]] host::Range blocks_of(std::size_t layer, int worker) const;
  void update_rows(std::size_t layer, std::size_t first, Share& share, const LayerState& outputs);

  Parts parts_;
  HiddenActivation activation_;
  std::size_t padded_;
  std::vector<Layer> layers_;
  std::vector<Share> shares_;
  AlignedArray<float> ones_;  // [padded]
};

}  // namespace gossamer::sparse
