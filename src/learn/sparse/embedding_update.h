// SPDX-License-Identifier: Apache-2.0
//
// EmbeddingUpdate: gradients and updates of the embedding rows of a step. A row's gradient is the sum, over
// the samples with the feature, of value * dh of the first hidden layer, in this node's own columns.
//
// Owner: the learner. Thread rule: gather() concurrently on disjoint ranges of samples, update() on all
// workers at once, each with its own features; a barrier separates the two. Allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned_array.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/sparse/inverted_lists.h"
#include "learn/sparse/network/adam.h"
#include "learn/sparse/network/batch_state.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse {

class EmbeddingUpdate {
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
  EmbeddingUpdate(const Parts& parts, const LayerColumns& first, Size size);

  // Whether update() reads what gather() has copied: the node's own columns are a part of all.
  [[nodiscard]] bool gathers() const { return own_gradient_.size() > 0; }
  // Copies dh of the own columns, if update() is to read it so.
  void gather(const LayerState& first, host::Range samples);
  // Updates the rows of these features, which the worker owns.
  void update(int worker, const InvertedLists& features, const LayerState& first);

  // Bytes of what grows with the batch.
  [[nodiscard]] std::uint64_t bytes() const { return sizeof(float) * own_gradient_.size(); }

 private:
  Parts parts_;
  // The first layer's dh of its own columns, [padded][own], if the node's own columns are a part of all; else
  // empty. In dh itself, where rows are long and only some columns are read, these would share few of the
  // cache's sets.
  AlignedArray<float> own_gradient_;
  std::vector<AlignedArray<float>> row_gradients_;  // by worker: of one embedding row
};

}  // namespace gossamer::sparse
