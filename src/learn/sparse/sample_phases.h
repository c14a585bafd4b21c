// SPDX-License-Identifier: Apache-2.0
//
// The two phases of a step that work sample by sample: everything before the output layer's first pass, and
// everything between its two passes.
//
// Owner: the learner. Thread rule: concurrently on disjoint ranges of samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/data/rows.h"
#include "learn/sparse/batch_state.h"
#include "learn/sparse/logq.h"
#include "learn/sparse/network.h"

namespace gossamer::sparse {

struct HiddenOptions {
  kernels::Activation activation = kernels::Activation::kRelu;
  double dropout = 0;  // of hidden units, in [0, 1); kept ones are scaled by 1 / (1 - dropout)
  std::uint64_t seed = 1;
};

// Dropout in units of 2^-16: what a sample's mask is drawn by, and the scale that keeps the mean.
class DropoutMask {
 public:
  explicit DropoutMask(const HiddenOptions& options);

  [[nodiscard]] bool active() const { return drop_below_ > 0; }
  [[nodiscard]] float scale() const { return scale_; }
  // kept[i] = 1 with probability 1 - dropout; the same for the same seed, step and sample. n is even.
  void draw(StepNumber step, std::size_t sample, std::span<std::uint8_t> kept) const;

 private:
  std::uint64_t seed_;
  std::uint32_t drop_below_;
  float scale_;
};

class SamplePhases {
 public:
  struct Parts {
    const Network& network;
    const LabelCounts& labels;
    const LogQCorrection& logq;
    const kernels::Kernels& kernels;
  };
  // Borrows all parts for its life.
  SamplePhases(const Parts& parts, const HiddenOptions& options)
      : parts_(parts), options_(options), dropout_(options) {}

  // h (and y, kept) of the samples in `range`; rows from batch.size() on become padding.
  void embed(const data::Batch& batch, StepNumber step, host::Range range, BatchState& state) const;
  // Scores of the samples' own labels: shift, target, positive_mean; starts dh with minus the targets' rows.
  void score_positives(const data::Batch& batch, host::Range range, BatchState& state) const;

  // One worker's results of PanelSoftmax::forward.
  struct Part {
    const float* sums;
    const float* hidden_gradient;
  };
  // Adds up the workers' parts (in the order given): inv, loss, and dh back through the activation.
  void reduce(std::span<const Part> parts, host::Range range, BatchState& state) const;

 private:
  void embed_sample(const data::SparseRow& features, StepNumber step, std::size_t sample,
                    BatchState& state) const;
  [[nodiscard]] bool has_dropout() const { return dropout_.active(); }

  Parts parts_;
  HiddenOptions options_;
  DropoutMask dropout_;
};

}  // namespace gossamer::sparse
