// SPDX-License-Identifier: Apache-2.0
//
// ReferenceLearner: for tests, the sparse training step in the plainest double-precision C++. Every formula
// is written out; there are no panels, no workers, no sparsity beyond the active set. Learner must agree with
// it.
//
// Thread rule: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "base/ids.h"
#include "learn/data/rows.h"
#include "learn/sparse/learner.h"

namespace gossamer::sparse {

struct Parameters {
  std::vector<double> embedding;                // [features][hidden]
  std::vector<double> output;                   // [labels][hidden]
  std::vector<double> bias;                     // [labels]
  std::vector<std::vector<double>> dense;       // of each layer [units][inputs]
  std::vector<std::vector<double>> dense_bias;  // [units]

  [[nodiscard]] std::vector<std::vector<double>*> all() {
    std::vector<std::vector<double>*> tensors = {&embedding, &output, &bias};
    for (std::vector<double>& layer : dense) tensors.push_back(&layer);
    for (std::vector<double>& layer : dense_bias) tensors.push_back(&layer);
    return tensors;
  }
};

// The values of a network, without padding.
[[nodiscard]] Parameters parameters_of(Network& network);

class ReferenceLearner {
 public:
  // Borrows the counts.
  ReferenceLearner(NetworkShape shape, Parameters parameters, const LabelCounts& counts,
                   const LearnerOptions& options)
      : shape_(std::move(shape)), options_(options), counts_(counts), now(std::move(parameters)) {}

  // The labels that a step scores.
  [[nodiscard]] std::set<std::uint32_t> active_set(const data::Batch& batch, StepNumber step) const;
  // Mean loss over the batch, nats.
  [[nodiscard]] double loss(const data::Batch& batch, StepNumber step) const {
    return loss_over(batch, step, active_set(batch, step));
  }
  [[nodiscard]] double loss_over(const data::Batch& batch, StepNumber step,
                                 const std::set<std::uint32_t>& active) const;
  // partition(): the sum of exp(score) over the labels that a sample scores, with their corrections. score():
  // one label's score.
  [[nodiscard]] double partition(const data::Batch& batch, StepNumber step, std::size_t sample,
                                 const std::set<std::uint32_t>& active) const;
  [[nodiscard]] double score(const std::vector<double>& h, std::uint32_t label) const;
  [[nodiscard]] std::vector<double> hidden(const data::Batch& batch, StepNumber step,
                                           std::size_t sample) const;
  // The gradient of loss() by central differences.
  [[nodiscard]] Parameters gradient(const data::Batch& batch, StepNumber step);
  // One step of lazy Adam on the rows that the step touches, and of Adam on the dense layers.
  void step(const data::Batch& batch, StepNumber step, double learning_rate);

 private:
  struct Moments {
    double m = 0;
    double v = 0;
  };

  [[nodiscard]] double correction(const data::Batch& batch, std::size_t sample, std::uint32_t label) const;
  [[nodiscard]] bool scores(const data::Batch& batch, std::size_t sample, std::uint32_t label) const;
  // Whether the tables gave this label to the batch's asking samples.
  [[nodiscard]] bool is_found(std::uint32_t label) const;
  void activate(StepNumber step, HiddenRow row, std::vector<double>& h) const;
  void update_dense(const Parameters& gradient);
  void adam(double& w, Moments& moments, double gradient, std::uint64_t skipped) const;

  NetworkShape shape_;
  LearnerOptions options_;
  const LabelCounts& counts_;
  std::vector<Moments> embedding_moments_;
  std::vector<Moments> output_moments_;
  std::vector<Moments> bias_moments_;
  std::vector<std::vector<Moments>> dense_moments_;  // weights of each layer, then biases
  std::vector<std::uint64_t> embedding_last_;
  std::vector<std::uint64_t> output_last_;
  double t_ = 0;
  double learning_rate_ = 0;

 public:
  Parameters now;
  // What each asking sample found (HashNegatives::found); empty: none asks.
  std::vector<std::vector<std::uint32_t>> found;
  HashSets sets = HashSets::kShared;
};

}  // namespace gossamer::sparse
