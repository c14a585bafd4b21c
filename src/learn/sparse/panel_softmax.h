// SPDX-License-Identifier: Apache-2.0
//
// PanelSoftmax: softmax cross-entropy over a step's active labels, label-major. Each worker takes the rows it
// owns in panels of 64, reads each row once per pass and updates it in the second (kernels/panel_softmax.md):
//
//   forward   per panel: S = W h^T, P = exp(S + bias - shift), sums += P, dh += P^T W; P is kept
//   (the caller turns sums into inv = 1 / (Z * samples), see sample_phases.h)
//   backward  per panel: dW = P (inv h) - targets, then the row's optimizer update while it is in the cache
//
// One implementation for f32 products, one for bf16 (make_panel_softmax); h, gradients, weights and sums are
// f32 in both. Memory: P takes one element per (active row, sample), the largest of the step's buffers.
// Owner: the learner. Thread rule: forward, backward and the pack functions run on all workers at once, each
// with its own number and its own range of samples. Barriers separate the four.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "host/api/compute.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "kernels/products.h"
#include "learn/sparse/active_set.h"
#include "learn/sparse/negatives/hash_negatives.h"
#include "learn/sparse/negatives/logq.h"
#include "learn/sparse/network/adam.h"
#include "learn/sparse/network/batch_state.h"
#include "learn/sparse/network/network.h"
#include "learn/sparse/row_scores.h"

namespace gossamer::sparse {

// The parts of a learner that the output layer works with. Borrowed.
struct OutputLayer {
  Network& network;
  const LabelCounts& labels;
  const LogQCorrection& logq;
  const RowOptimizer& optimizer;
  HashNegatives* hashed = nullptr;           // learns of every change of a row
  std::vector<RowScores>* scores = nullptr;  // by worker: what forward leaves there; null: nobody wants it
};

struct PanelSoftmaxOptions {
  kernels::Element element = kernels::Element::kF32;
  kernels::PanelShape shape = {};
  int workers = 1;
};

class PanelSoftmax {
 public:
  PanelSoftmax() = default;
  PanelSoftmax(const PanelSoftmax&) = delete;
  PanelSoftmax& operator=(const PanelSoftmax&) = delete;
  virtual ~PanelSoftmax() = default;

  // h into the products' layout. Ranges of samples begin and end at multiples of kernels::kLanes.
  virtual void pack_hidden(const BatchState& batch, host::Range samples) = 0;
  // Takes the rows `active`. They are all owned by `worker`, first those with samples.
  virtual void forward(int worker, const ActiveSet& active, const BatchState& batch) = 0;
  // What a worker's forward left: sums of exp [padded], and its part of P^T W [padded][stride].
  [[nodiscard]] virtual const float* sums(int worker) const = 0;
  [[nodiscard]] virtual const float* hidden_gradient(int worker) const = 0;
  // inv * h into the products' layout.
  virtual void pack_scaled_hidden(const BatchState& batch, host::Range samples) = 0;
  // Requires forward with the same rows, and inv in `batch`.
  virtual void backward(int worker, const ActiveSet& active, const BatchState& batch) = 0;

  [[nodiscard]] virtual kernels::Element element() const = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
};

[[nodiscard]] std::unique_ptr<PanelSoftmax> make_panel_softmax(const OutputLayer& layer,
                                                               const PanelSoftmaxOptions& options,
                                                               const kernels::Kernels& kernels);

}  // namespace gossamer::sparse
