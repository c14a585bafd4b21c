// SPDX-License-Identifier: Apache-2.0
//
// The phases of a step that work sample by sample: everything before the output layer's first pass, and
// between its two passes.
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
#include "learn/sparse/hidden_activation.h"
#include "learn/sparse/negatives/logq.h"
#include "learn/sparse/network/batch_state.h"
#include "learn/sparse/network/network.h"

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

  // Sets target, and the own columns of h (and y, kept) of the first hidden layer, for the samples in
  // `range`. Rows from batch.size() on become padding.
  void embed(const data::Batch& batch, StepNumber step, host::Range range, BatchState& state) const;
  // The same in two: the target alone, and the rest alone.
  void set_targets(const data::Batch& batch, host::Range range, BatchState& state) const;
  void embed(const data::Batch& batch, StepNumber step, host::Range range, LayerState& first) const;
  // Scores the samples' own labels whose rows are here. Sets shift (kNoShift where there are none), positives
  // and positive_sum; starts dh with minus the targets' rows. Requires targets.
  void score_positives(const data::Batch& batch, host::Range range, BatchState& state) const;
  // Where other nodes hold all labels of a sample, its scores are shifted by the mean shift of the other
  // samples. Any number will do that keeps exp() in range.
  static void fill_shifts(BatchState& state);

  // One worker's results of PanelSoftmax::forward.
  struct Part {
    const float* sums;
    const float* hidden_gradient;
  };
  // Adds up the workers' sums, in the order given, into shares.
  static void add_shares(std::span<const Part> parts, BatchState& state);
  // From the partition sums of all nodes together, [samples]: sets inv and loss, and adds the workers' parts
  // to dh of the last hidden layer.
  void normalise(std::span<const PartitionShare> sums, std::span<const Part> parts, host::Range range,
                 BatchState& state) const;
  // Takes dh of the own columns of a hidden layer back through its activation.
  void through_activation(std::size_t layer, host::Range range, BatchState& state) const;

 private:
  void prefetch_labels(std::span<const std::uint32_t> labels) const;
  void set_target(const data::Batch& batch, std::size_t sample, BatchState& state) const;
  void embed_sample(const data::Batch& batch, StepNumber step, std::size_t sample, LayerState& first) const;

  Parts parts_;
  HiddenActivation activation_;
};

}  // namespace gossamer::sparse
