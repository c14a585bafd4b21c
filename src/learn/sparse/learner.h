// SPDX-License-Identifier: Apache-2.0
//
// Learner: one optimizer step of the sparse network on one node. Softmax cross-entropy over the step's active
// labels (the batch's own and drawn negatives), targets 1 / |own labels|, mean over the batch; gradients by
// the label-major two-pass scheme (panel_softmax.h); every touched row is updated once, by the worker that
// owns it.
//
//   Learner learner({.network = network, .labels = counts, .kernels = k, .compute = c, .clock = &clock},
//   options); const StepReport report = learner.step(batch, StepNumber{t}, {.learning_rate =
//   schedule.learning_rate(t)});
//
// A step is four parallel phases (a barrier after each):
//   1 by sample  own active rows and feature lists; h, layer by layer; scores of the own labels
//   2 by label   scores, exponentials, sums, gradient of h
//   3 by sample  partition sums, loss, gradient through the activation and down the layers
//   4 by row     gradients and updates of output rows, dense rows and embedding rows
// Where hash tables find further labels (hash_negatives.h), h comes first in a phase of its own, the asking
// samples' questions in a second; tables are built and updated before the step.
//
// Results depend on the seed, the step number, the batch, the weights and the number of workers, and are then
// equal to the bit; another number of workers gives the same to rounding. Samples without labels count in the
// mean but add nothing to loss or gradient. Samples without features work. Memory: see bytes(). A step
// allocates only when it is larger than all before it. Owner and thread rule: one thread, that of the
// Compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "host/api/clock.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/data/rows.h"
#include "learn/sparse/adam.h"
#include "learn/sparse/dense_layers.h"
#include "learn/sparse/hash_negatives.h"
#include "learn/sparse/hidden_layer.h"
#include "learn/sparse/inverted_lists.h"
#include "learn/sparse/logq.h"
#include "learn/sparse/negatives.h"
#include "learn/sparse/network.h"
#include "learn/sparse/panel_softmax.h"
#include "learn/sparse/sample_phases.h"
#include "learn/sparse/schedule.h"

namespace gossamer::sparse {

struct LearnerOptions {
  std::size_t batch_max = 256;  // samples of the largest step, >= 1
  kernels::Activation activation = kernels::Activation::kRelu;
  double dropout = 0;  // [0, 1)
  NegativeOptions negatives = {};
  LogQ logq = LogQ::kAll;
  std::optional<kernels::Element> element = {};  // of the products; empty: the faster one on this CPU
  OptimizerOptions optimizer = {};
  std::uint64_t seed = 1;  // of dropout and negatives
};

// Milliseconds, mean over workers; all zero without a clock. `waiting` is the rest of the step's wall time:
// barriers and uneven shares.
struct LearnerPhases {
  double select = 0;     // active rows and feature lists
  double embed = 0;      // embedding bag, activation, dropout
  double find = 0;       // upkeep of the hash tables, and questions to them
  double positives = 0;  // scores of the samples' own labels
  double forward = 0;    // pass 1 over the output rows
  double reduce = 0;     // partition sums, loss, gradient through the activation
  double weights = 0;    // pass 2 over the output rows, with their update
  double dense = 0;      // dense layers: forward, backward, update
  double embedding = 0;  // gradients and updates of the embedding rows
  double waiting = 0;

  [[nodiscard]] double total() const {
    return select + embed + find + positives + forward + reduce + weights + dense + embedding + waiting;
  }
  LearnerPhases& operator+=(const LearnerPhases& other);
};

struct StepReport {
  double loss = 0;  // mean over the batch, nats; scores with their logQ corrections
  std::size_t labelled_samples = 0;
  std::size_t active_rows = 0;
  std::size_t unique_features = 0;
  bool grew = false;  // a buffer had to grow: the first steps, or a step larger than all before
  LearnerPhases phases = {};
};

class Learner {
 public:
  // Borrowed for the learner's life; clock may be null.
  struct Parts {
    Network& network;
    const LabelCounts& labels;
    const kernels::Kernels& kernels;
    host::Compute& compute;
    const host::Clock* clock = nullptr;
    HashNegatives* hashed = nullptr;  // null: no labels are found by hash tables
  };

  // Requires a network with moments, and labels.count of its size.
  Learner(const Parts& parts, const LearnerOptions& options);
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;
  ~Learner();

  // Requires 1 <= batch.size() <= batch_max, labels for each sample, indices within the network. Steps count
  // from 0 and need not be consecutive.
  StepReport step(const data::Batch& batch, StepNumber step, const StepSchedule& schedule);

  [[nodiscard]] kernels::Element element() const { return softmax_->element(); }
  // Bytes of all buffers, without the network.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct Worker;

  void select(Worker& worker, const data::Batch& batch, StepNumber step) const;
  void embed(Worker& worker, const data::Batch& batch, StepNumber step, host::Range samples);
  void update_embedding(Worker& worker) const;
  [[nodiscard]] host::Range samples_of(int worker) const;
  void run_phases(const data::Batch& batch, StepNumber step);
  void find_negatives(const data::Batch& batch, StepNumber step);
  void add_found(Worker& worker, const data::Batch& batch) const;
  [[nodiscard]] StepReport report() const;

  Parts parts_;
  LearnerOptions options_;
  NegativeSampler sampler_;
  LogQCorrection logq_;
  RowOptimizer optimizer_;
  BatchState state_;
  SamplePhases samples_;
  bool finding_ = false;  // whether samples ask in this step
  DenseLayers dense_;
  std::unique_ptr<PanelSoftmax> softmax_;
  std::vector<Worker> workers_;
  std::vector<SamplePhases::Part> parts_of_hidden_gradient_;
};

}  // namespace gossamer::sparse
