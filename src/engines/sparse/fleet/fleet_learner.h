// SPDX-License-Identifier: Apache-2.0
//
// FleetLearner: a member's part of the network, and its share of the steps, in rounds: in each it computes
// from what all members gave in the round before, and gives them something (docs/protocols/sparse-step.md).
// It knows ranks, not peers; who carries its bytes is not its matter.
//
//   learner.join({parts by rank}, my rank);
//   for each round of step_rounds(): given = learner.round(step, round, got);   // got: by rank
//
// The samples of a step may go through its rounds in microbatches: exchanges of one are under way while
// another is computed.
//
// Two steps may be in flight where the job has staleness, in the order of step_order.h.
//
// Weights change in the last round alone, which needs everybody's gradients: a step is applied as a whole or
// not at all, and one that was begun can be begun again. What of it needs nothing of others and is not read
// by the first round of the next step, output and dense rows, is done after that has been computed
// (finish_rows() says when at the latest); who looks at the network sees them done. A matrix has as many rows
// as the largest step has samples. Thread rule: one thread, that of the job's Compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "base/time.h"
#include "engines/sparse/fleet/fleet_job.h"
#include "engines/sparse/fleet/layout.h"
#include "engines/sparse/fleet/step_log.h"
#include "host/api/clock.h"
#include "learn/data/batch_copy.h"
#include "learn/sparse/hash_negatives.h"
#include "learn/sparse/learner.h"
#include "learn/sparse/network.h"

namespace gossamer::engine {

struct FleetRound {
  enum class Kind {
    kHidden,    // gathers h of the layer
    kShares,    // gathers shares of the partition sums
    kGradient,  // each gives each the receiver's columns of dh of the layer
    kFinish,    // nothing more is given; the last microbatch's ends the step
  };
  Kind kind;
  std::size_t layer = 0;       // a hidden one
  std::size_t microbatch = 0;  // whose samples
};
// What a member may ask of all when a step is done. Who has applied the step knows the most that anybody
// asked, so all do it at the same step.
enum class StepWish : std::uint8_t { kNothing, kCheckpoint, kHalt };
// Of a step with so many hidden layers. A round needs what was given in the one of the same microbatch
// before, which lies `microbatches` before it.
[[nodiscard]] std::vector<FleetRound> step_rounds(std::size_t layers, std::size_t microbatches = 1);

// What computing has taken, by the clock and of the CPU of the threads that compute.
struct ComputeTime {
  Duration took;
  Duration cpu;
  Duration process_cpu;  // of all threads meanwhile
};

// What needs nothing of others: reading a step's samples, before its rounds; turning them round, after the
// first; updating its output rows, after the last.
inline constexpr int kPiecesAhead = 3;

class FleetLearner {
 public:
  // The clock, if there is one, outlives it.
  explicit FleetLearner(const FleetJob& job, const host::Clock* clock = nullptr);

  // Bytes that whoever holds the part gives everybody (kHidden, kShares), or each member gives it
  // (kGradient): in any step, at most.
  [[nodiscard]] static std::uint64_t most_round_bytes(const FleetJob& job, FleetRound round,
                                                      const sparse::NetworkPart& part);

  // Takes up a part, with values from elsewhere: initial ones, or what a Replay has made anew.
  void hold(std::unique_ptr<sparse::Network> network);
  [[nodiscard]] bool holds() const { return network_ != nullptr; }
  [[nodiscard]] sparse::Network& network();
  // All steps below it.
  [[nodiscard]] StepNumber applied() const { return applied_; }
  void set_applied(StepNumber applied) { applied_ = applied; }

  void join(std::vector<sparse::NetworkPart> parts, std::size_t rank);
  // Requires that a step's rounds come in order, and steps end in order. What this member gives: parts for
  // all ranks one after the other in a round of gradients. kBadData for what no member can have given.
  [[nodiscard]] Result<Slices> round(StepNumber step, FleetRound round, std::span<const Slices> got);
  // What can be done while others are waited for; round() does what was not done ahead. The samples of a step
  // that has not begun, of one at a time:
  [[nodiscard]] bool has_read(StepNumber step) const { return ahead_ == step; }
  void read(StepNumber step);
  // the rows and features of one that has,
  [[nodiscard]] bool listed(StepNumber step) const { return opens_ != step && learner(step).listed(); }
  void list(StepNumber step);
  // and the output and dense rows of the step applied last.
  [[nodiscard]] bool rows_left() const { return rows_left_.has_value(); }
  void finish_rows();
  // By rank what that member gives everybody, or everybody gives it, in a round that this one has computed.
  [[nodiscard]] std::vector<std::uint64_t> round_bytes(StepNumber step, FleetRound round) const;
  // What this member asks for from now on.
  void wish(StepWish wish) { wish_ = wish; }
  // What was asked for in the step that was applied last; nothing if that was done in a recovery.
  [[nodiscard]] StepWish agreed() const { return agreed_; }
  // Of the step that was applied last: this member's share of the loss.
  [[nodiscard]] double loss() const { return loss_; }
  // Of all rounds since this was last asked, what members that hold less of the network have less of; without
  // a clock zero. The rest of a round (samples, codec, logs) is the same whatever is held.
  [[nodiscard]] ComputeTime take_part_time() { return std::exchange(part_time_, {}); }
  // Tells the job of that step, which was one of the epoch's.
  void tell(Epoch epoch, const SentBytes& sent) const;

  [[nodiscard]] StepLog& log() { return log_; }
  [[nodiscard]] const PieceCodec& codec() const { return codec_; }
  [[nodiscard]] const FleetJob& job() const { return job_; }
  [[nodiscard]] std::size_t rows() const { return job_.learner.batch_max; }

  // Ends the step that only lacks everybody's gradients of the first layer, with their sum: [rows][columns
  // held].
  void catch_up(std::span<const float> gradient);

 private:
  // A step in flight.
  struct Stepping {
    std::unique_ptr<sparse::Learner> learner;
    data::BatchCopy batch;
    std::vector<std::uint64_t> scores = {};  // by rank, of the job's exchange of outputs: how many at most
  };
  [[nodiscard]] Stepping& stepping(StepNumber step) { return stepping_[step.value % stepping_.size()]; }
  [[nodiscard]] sparse::Learner& learner(StepNumber step) { return *stepping(step).learner; }
  [[nodiscard]] const sparse::Learner& learner(StepNumber step) const {
    return *stepping_[step.value % stepping_.size()].learner;
  }
  // Computes something of the part that is held.
  void timed(FunctionRef<void()> compute);
  [[nodiscard]] ComputeTime time_now() const;
  void begin_step(StepNumber step);
  void open(StepNumber step);
  // Of the samples of a microbatch.
  [[nodiscard]] host::Range samples_of(std::size_t microbatch) const;
  [[nodiscard]] Result<void> take_hidden(StepNumber step, FleetRound of, std::span<const Slices> got);
  [[nodiscard]] Result<void> take_shares(StepNumber step, std::size_t microbatch,
                                         std::span<const Slices> got);
  void take_gradient(StepNumber step, FleetRound of, std::span<const Slices> got);
  [[nodiscard]] Slices give_hidden(StepNumber step, FleetRound round);
  [[nodiscard]] Slices give_shares(StepNumber step, std::size_t microbatch);
  [[nodiscard]] Slices own_shares(StepNumber step, std::size_t microbatch);
  // How many the member of `rank` may tell of; 0 where they are not exchanged.
  [[nodiscard]] std::uint64_t scores(StepNumber step, std::size_t rank) const {
    return stepping_[step.value % stepping_.size()].scores[rank];
  }
  [[nodiscard]] Slices give_gradient(StepNumber step, FleetRound round);
  void finish(StepNumber step);

  const FleetJob job_;
  const host::Clock* const clock_;
  ComputeTime part_time_;
  const PieceCodec codec_;         // of all samples
  const PieceCodec travel_codec_;  // of a microbatch
  std::vector<float> gradient_;    // of this member's columns, while parts of it are added
  std::unique_ptr<sparse::Network> network_;
  std::unique_ptr<sparse::HashNegatives> hashed_;  // null: none, or no rows are held
  std::vector<Stepping> stepping_;
  std::optional<StepNumber> rows_left_;  // the step whose output and dense rows are not updated
  std::optional<StepNumber> opens_;      // the step that has embedded `samples_ahead_`, and nothing else
  std::optional<StepNumber> ahead_;      // the step that `samples_ahead_` is of
  data::BatchCopy samples_ahead_;
  std::vector<sparse::NetworkPart> parts_;  // by rank
  std::size_t me_ = 0;
  StepNumber applied_;
  StepLog log_;  // with the steps that are in flight, which may be begun again
  double loss_ = 0;
  StepWish wish_ = StepWish::kNothing;
  StepWish agreed_ = StepWish::kNothing;
};

// All zeros.
[[nodiscard]] std::unique_ptr<sparse::Network> empty_network(const FleetJob& job, sparse::NetworkPart part);
// A network in the state that the run begins with, whoever holds it. Fails where that cannot be read.
[[nodiscard]] Result<std::unique_ptr<sparse::Network>> starting_network(const FleetJob& job,
                                                                        sparse::NetworkPart part);
// A network of initial values, whoever holds it.
[[nodiscard]] std::unique_ptr<sparse::Network> initial_network(const FleetJob& job, sparse::NetworkPart part);
// Fills columns of h of a hidden layer from the log.
void fill_hidden(const LoggedStep& logged, const PieceCodec& codec, const sparse::NetworkPiece& wanted,
                 sparse::BatchState& state);
// dh of the layer's own columns becomes `sum`, [samples][own columns], for these samples.
void set_columns(std::span<const float> sum, const host::Range& samples, sparse::LayerState& layer);

}  // namespace gossamer::engine
