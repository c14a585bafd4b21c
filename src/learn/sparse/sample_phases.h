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
#include "learn/sparse/hidden_activation.h"
#include "learn/sparse/logq.h"
#include "learn/sparse/network.h"

namespace gossamer::sparse {

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
      : parts_(parts), activation_(options, parts.kernels) {}

  // h (and y, kept) of the first hidden layer for the samples in `range`; rows from batch.size() on become
  // padding.
  void embed(const data::Batch& batch, StepNumber step, host::Range range, BatchState& state) const;
  // Scores of the samples' own labels: shift, target, positive_mean; starts dh with minus the targets' rows.
  void score_positives(const data::Batch& batch, host::Range range, BatchState& state) const;

  // One worker's results of PanelSoftmax::forward.
  struct Part {
    const float* sums;
    const float* hidden_gradient;
  };
  // Adds up the workers' parts (in the order given): inv, loss, and dh of the last hidden layer back through
  // its activation.
  void reduce(std::span<const Part> parts, host::Range range, BatchState& state) const;

 private:
  void prefetch_labels(std::span<const std::uint32_t> labels) const;
  void embed_sample(const data::SparseRow& features, StepNumber step, std::size_t sample,
                    BatchState& state) const;

  Parts parts_;
  HiddenActivation activation_;
};

}  // namespace gossamer::sparse
