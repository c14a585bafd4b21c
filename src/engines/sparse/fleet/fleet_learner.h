// SPDX-License-Identifier: Apache-2.0
//
// FleetLearner: a member's part of the network, and its share of the steps, in rounds: in each it computes
// from what all members gave in the round before, and gives them something (docs/protocols/sparse-step.md).
// It knows ranks, not peers; who carries its bytes is not its matter.
//
//   learner.join({parts by rank}, my rank);
//   for each round of step_rounds(): given = learner.round(step, round, got);   // got: by rank
//
// Weights change in the last round alone, which needs everybody's gradients: a step is applied as a whole or
// not at all, and one that was begun can be begun again. A matrix has as many rows as the largest step has
// samples. Thread rule: one thread, that of the job's Compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/slice.h"
#include "engines/sparse/fleet/fleet_job.h"
#include "engines/sparse/fleet/layout.h"
#include "engines/sparse/fleet/step_log.h"
#include "learn/sparse/learner.h"
#include "learn/sparse/network.h"

namespace gossamer::engine {

struct FleetRound {
  enum class Kind {
    kHidden,    // gathers h of the layer
    kShares,    // gathers shares of the partition sums
    kGradient,  // each gives each the receiver's columns of dh of the layer
    kFinish,    // nothing more is given
  };
  Kind kind;
  std::size_t layer = 0;  // a hidden one
};
// Of a step with so many hidden layers.
[[nodiscard]] std::vector<FleetRound> step_rounds(std::size_t layers);

class FleetLearner {
 public:
  explicit FleetLearner(const FleetJob& job);

  // Bytes that the member of `rank` gives everybody (kHidden, kShares), or each member gives that of `rank`
  // (kGradient).
  [[nodiscard]] static std::uint64_t round_bytes(const FleetJob& job, FleetRound round,
                                                 const sparse::NetworkPart& part);

  // Takes up a part, with values from elsewhere: initial ones, or what a Replay has made anew.
  void hold(std::unique_ptr<sparse::Network> network);
  [[nodiscard]] bool holds() const { return network_ != nullptr; }
  [[nodiscard]] sparse::Network& network() { return *network_; }
  // All steps below it.
  [[nodiscard]] StepNumber applied() const { return applied_; }
  void set_applied(StepNumber applied) { applied_ = applied; }

  void join(std::vector<sparse::NetworkPart> parts, std::size_t rank);
  // Requires that rounds come in order, of step applied(). What this member gives: parts for all ranks one
  // after the other in a round of gradients.
  [[nodiscard]] Slices round(FleetRound round, std::span<const Slices> got);
  // Of the step that was applied last: this member's share of the loss.
  [[nodiscard]] double loss() const { return loss_; }
  // Tells the job of that step, which was one of the epoch's.
  void tell(Epoch epoch) const;

  [[nodiscard]] StepLog& log() { return log_; }
  [[nodiscard]] const PieceCodec& codec() const { return codec_; }
  [[nodiscard]] const FleetJob& job() const { return job_; }
  [[nodiscard]] std::size_t rows() const { return job_.learner.batch_max; }

  // One step at once, from the log and sums of dh that others have sent: [rows][columns held], by layer.
  void catch_up(std::span<const std::vector<float>> gradients);

 private:
  void begin_step();
  void take_hidden(std::size_t layer, std::span<const Slices> got);
  void take_shares(std::span<const Slices> got);
  void take_gradient(std::size_t layer, std::span<const Slices> got);
  [[nodiscard]] Slices give_hidden(std::size_t layer);
  [[nodiscard]] Slices give_shares();
  [[nodiscard]] Slices give_gradient(std::size_t layer);
  void finish();

  const FleetJob job_;
  const PieceCodec codec_;
  std::unique_ptr<sparse::Network> network_;
  std::unique_ptr<sparse::Learner> learner_;
  std::vector<sparse::NetworkPart> parts_;  // by rank
  std::size_t me_ = 0;
  StepNumber applied_;
  StepLog log_;  // with the step that is under way, which may be begun again
  double loss_ = 0;
};

// All zeros.
[[nodiscard]] std::unique_ptr<sparse::Network> empty_network(const FleetJob& job, sparse::NetworkPart part);
// A network of initial values, whoever holds it.
[[nodiscard]] std::unique_ptr<sparse::Network> initial_network(const FleetJob& job, sparse::NetworkPart part);
// Fills h of all layers from the log.
void fill_hidden(const LoggedStep& logged, const PieceCodec& codec, sparse::BatchState& state);
// dh of the layer's own columns becomes `sum`, [rows][own columns].
void set_columns(std::span<const float> sum, std::size_t rows, sparse::LayerState& layer);

}  // namespace gossamer::engine
