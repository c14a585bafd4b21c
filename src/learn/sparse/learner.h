// SPDX-License-Identifier: Apache-2.0
//
// Learner: one node's work in an optimizer step of the sparse network. The node holds all of the network or a
// part of it (network_shape.h).
// - Loss: softmax cross-entropy over the step's active labels (the batch's own and drawn negatives), with
//   targets 1 / |own labels|, mean over the batch.
// - Gradients: by the label-major two-pass scheme (panel_softmax.h).
// - Update: every touched row once, by the worker that owns it.
//
//   Learner learner({.network = network, .labels = counts, .kernels = k, .compute = c, .clock = &clock},
//                   options);
//   const StepReport report = learner.step(batch, StepNumber{t}, {.learning_rate = rate});
//
// The phases of a step, and what nodes that hold parts give each other between them, all of it by sample
// (docs/protocols/sparse-step.md):
//   embed       own columns of the first hidden layer         then: all columns of h from their owners
//   list        the step's active rows and features, those held here; beside that exchange
//   deepen(i)   own units of dense layer i, from below        then: likewise
//   score       scores, exponentials and sums of own rows     then: everybody's loss shares
//   normalise   loss, gradient of the last h by own rows      then: own columns of dh, summed over nodes
//   descend(i)  dh of the layer below dense layer i           then: likewise; the last layer first
//   finish      output rows, dense rows and embedding rows
//
// A node may only want to bring some of its rows up to date, from what a step is known to have given. It need
// not go through the other phases: without score and normalise finish() updates no output row, and takes dh
// as it stands in state().
//
// Where hash tables find further labels (hash_negatives.h), samples ask before the scores. The tables are
// built and updated before the step. A step that is computed anew is told what its samples found (recall()).
//
// A label here is the number of its output row (row_order.h): batches and counts come with rows for labels.
//
// Results depend on the seed, the step number, the batch, the weights, the parts and the number of workers.
// With all these the same they are equal to the bit. Other parts or another number of workers give the same
// to rounding. Samples without labels count in the mean but add nothing to loss or gradient. Samples without
// features work.
//
// The parts of a step are its rows (step_rows.h), its times (step_times.h) and its work. The work is done by
// sample (sample_phases.h), by output row (panel_softmax.h), by dense layer (dense_layers.h) and by embedding
// row (embedding_update.h).
//
// Memory: see bytes(). A step allocates only when it is larger than all before it. Owner and thread rule: one
// thread, the owner of the Compute.
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
#include "learn/sparse/dense_layers.h"
#include "learn/sparse/embedding_update.h"
#include "learn/sparse/hidden_layer.h"
#include "learn/sparse/negatives/hash_negatives.h"
#include "learn/sparse/negatives/logq.h"
#include "learn/sparse/negatives/negatives.h"
#include "learn/sparse/network/adam.h"
#include "learn/sparse/network/network.h"
#include "learn/sparse/network/schedule.h"
#include "learn/sparse/panel_softmax.h"
#include "learn/sparse/row_scores.h"
#include "learn/sparse/sample_phases.h"
#include "learn/sparse/step_rows.h"
#include "learn/sparse/step_times.h"

namespace gossamer::sparse {

struct LearnerOptions {
  std::size_t batch_max = 256;  // samples of the largest step, >= 1
  kernels::Activation activation = kernels::Activation::kRelu;
  double dropout = 0;  // [0, 1)
  NegativeOptions negatives = {};
  LogQ logq = LogQ::kAll;
  std::optional<kernels::Element> element = {};  // of the products; empty: the faster one on this CPU
  OptimizerOptions optimizer = {};
  bool keep_scores = false;  // the rows' scores are kept, for scores()
  std::uint64_t seed = 1;    // for dropout and negatives
};

struct StepReport {
  double loss = 0;  // mean over the batch, nats; scores with their logQ corrections
  std::size_t labelled_samples = 0;
  std::size_t active_rows = 0;
  std::size_t unique_features = 0;
  bool grew = false;  // a buffer had to grow: the first steps, or a step larger than all before
  LearnerPhases phases = {};
};

// Whether other nodes take part in the step. Alone, dh of a layer is complete as soon as it is made.
enum class Company { kAlone, kOthers };

class Learner {
 public:
  // Borrowed for the learner's life; clock may be null.
  struct Parts {
    Network& network;
    const LabelCounts& labels;  // by row
    const kernels::Kernels& kernels;
    host::Compute& compute;
    const host::Clock* clock = nullptr;
    HashNegatives* hashed = nullptr;  // null: no labels are found by hash tables
  };

  // Requires a network with moments, and labels.count of its size.
  Learner(const Parts& parts, const LearnerOptions& options);
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  // One whole step, on a node that holds everything. Requires 1 <= batch.size() <= batch_max, labels for each
  // sample, indices within the network. Steps count from 0 and need not be consecutive.
  StepReport step(const data::Batch& batch, StepNumber step, const StepSchedule& schedule);

  // The same in phases. `batch` must live until finish() or finish_rows().
  void begin(const data::Batch& batch, StepNumber step, const StepSchedule& schedule,
             Company company = Company::kAlone);
  // Before begin(): another learner has changed the network since this one's last step.
  void others_changed() { dense_changed_ = true; }
  // Between begin() and embed(): no sample asks, since `found` is what they found when the step was computed
  // before. On any node, with hash tables or without. `found` must live until finish().
  void recall(const FoundRows& found);
  void embed();
  // Before begin() of that step; rows of the step before may be unfinished. Computes the own columns of the
  // first hidden layer into ahead(). begin() takes them over, and embed() then does the rest. May be done
  // again. `batch` is to be the one of begin().
  void embed_ahead(const data::Batch& batch, StepNumber step);
  [[nodiscard]] LayerState& ahead() { return *ahead_; }
  // Lists the rows and features of the step, after embed(). Where it was not called, score() or finish() does
  // it.
  void list();
  [[nodiscard]] bool listed() const { return listed_; }
  void deepen(std::size_t layer);
  void score();
  // `sums`: the loss shares of all nodes, added up in the same order everywhere (add_share), [samples].
  void normalise(std::span<const PartitionShare> sums);
  void descend(std::size_t layer);
  // Ends the step. The reported loss covers the labels whose rows are here: the sum over nodes is the loss of
  // the step.
  StepReport finish();
  // finish() in two parts. finish_columns(): the embedding, which the next embed_ahead() reads.
  // finish_rows(): output and dense rows, which need nothing of other nodes.
  void finish_columns();
  void finish_rows();
  // The loss of finish(). After normalise().
  [[nodiscard]] double loss() const;
  [[nodiscard]] BatchState& state() { return state_; }
  // With options.keep_scores, after score(): the scores of the rows held here, by worker.
  [[nodiscard]] std::span<const RowScores> scores() const { return scores_; }
  // After list(): the most scores of samples that there will be; without hash tables exactly. Requires that
  // what the tables find is not shared.
  [[nodiscard]] std::uint64_t most_scores() const { return rows_.most_scores(batch_); }

  [[nodiscard]] kernels::Element element() const { return softmax_->element(); }
  // Bytes of all buffers, without the network.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  // One worker's times.
  using Worker = StepTimes::Worker;

  // Runs task(worker number, worker) on all workers; each worker's timer starts with it.
  template <class Task>
  void run(Task&& task);
  void select(int number, Worker& worker);
  void complete_gradient();
  void update_rows(int number, Worker& worker);
  void update_embedding(int number, Worker& worker);
  [[nodiscard]] host::Range samples_of(int worker) const;
  void find_negatives();
  [[nodiscard]] StepReport report() const;

  Parts parts_;
  LearnerOptions options_;
  NegativeSampler sampler_;
  LogQCorrection logq_;
  RowOptimizer optimizer_;
  BatchState state_;
  std::optional<LayerState> ahead_;           // the first layer of a step that has not begun; dh unused
  std::optional<StepNumber> embedded_ahead_;  // that step
  bool embedded_ = false;                     // the present step was it
  SamplePhases samples_;
  DenseLayers dense_;
  EmbeddingUpdate embedding_;
  std::vector<RowScores> scores_;  // by worker; none: they are not kept
  std::unique_ptr<PanelSoftmax> softmax_;
  std::vector<SamplePhases::Part> parts_of_hidden_gradient_;
  StepRows rows_;
  StepTimes times_;
  // The state of the present step.
  data::Batch batch_ = {};
  StepNumber step_ = {};
  bool alone_ = true;  // no other node adds anything
  bool listed_ = false;
  bool dense_changed_ = false;  // by another learner
  std::uint64_t bytes_before_ = 0;
};

}  // namespace gossamer::sparse
