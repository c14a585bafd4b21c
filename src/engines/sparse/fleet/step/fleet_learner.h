// SPDX-License-Identifier: Apache-2.0
//
// FleetLearner: a member's part of the network, and its part of the steps, which go in rounds. In each round
// it computes from what all members gave in the round before, and gives them something
// (docs/protocols/sparse-step.md). It knows ranks, not peers, and does not carry its bytes itself.
//
//   learner.join({parts by rank}, my rank);
//   for each round of step_rounds(): given = learner.round(step, round, got);   // got: by rank
//
// If the job has staleness, two steps may be in flight, in the order of step_order.h.
//
// Weights change in the last round alone, which needs the gradients of all members. So a step is applied as a
// whole or not at all, and a step that has begun can be begun again. The output and dense rows need nothing
// of other members, and the first round of the next step does not read them. So they are updated after that
// round has been computed; finish_rows() tells when at the latest. network() finishes them first. A matrix
// has as many rows as the largest step has samples.
//
// Thread rule: the one thread of the job's Compute.
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
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/fleet/step/step_log.h"
#include "host/api/clock.h"
#include "learn/data/batch_copy.h"
#include "learn/sparse/learner.h"
#include "learn/sparse/negatives/hash_negatives.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse_engine {

struct FleetRound {
  enum class Kind {
    kHidden,    // gathers h of the layer
    kShares,    // gathers loss shares of the partition sums
    kGradient,  // each member gives each other the receiver's columns of dh of the layer
    kFinish,    // nothing more is given
  };
  Kind kind;
  std::size_t layer = 0;  // a hidden one
};
// What a member may ask of all when a step is done. A member that has applied the step knows the wishes of
// all members. So all of them save at the same step.
enum class StepWish : std::uint8_t { kNothing, kCheckpoint, kHalt };
// The rounds of a step with so many hidden layers. A round needs the gifts of the round before.
[[nodiscard]] std::vector<FleetRound> step_rounds(std::size_t layers);

// The time that computing has taken, by the clock, and as CPU of the threads that compute.
struct ComputeTime {
  Duration took;
  Duration cpu;
  Duration process_cpu;  // of all threads meanwhile
};

// Pieces of a step's work that need nothing of other members. Its samples are read before its rounds, and
// turned round after the first. Its output rows are updated after the last.
inline constexpr int kPiecesAhead = 3;

class FleetLearner {
 public:
  // The clock, if there is one, outlives the learner.
  explicit FleetLearner(const FleetJob& job, const host::Clock* clock = nullptr);

  // The most bytes that the holder of `part` gives in a round of any step. In kHidden and kShares it gives
  // them to all members, in kGradient each other member gives them to it.
  [[nodiscard]] static std::uint64_t most_round_bytes(const FleetJob& job, FleetRound round,
                                                      const sparse::NetworkPart& part);

  // Takes up a part. Its values come from elsewhere: initial ones, or values that a recovery has computed
  // anew.
  void hold(std::unique_ptr<sparse::Network> network);
  [[nodiscard]] bool holds() const { return network_ != nullptr; }
  [[nodiscard]] sparse::Network& network();
  // All steps below this one are applied.
  [[nodiscard]] StepNumber applied() const { return applied_; }
  void set_applied(StepNumber applied) { applied_ = applied; }

  void join(std::vector<sparse::NetworkPart> parts, std::size_t rank);
  // Computes what this member gives in a round. In a gradient round it is the parts for all ranks, one after
  // the other. Requires that a step's rounds come in order, and that steps end in order. kBadData for what no
  // member can have given: giver() did. kFailed: what this member would give is beyond all bounds
  // (value_bounds.h). The step can be begun again.
  [[nodiscard]] Result<Slices> round(StepNumber step, FleetRound round, std::span<const Slices> got);
  // The rank of the member that gave what cannot be, if the last round failed for that.
  [[nodiscard]] std::optional<std::size_t> giver() const { return giver_; }
  // Work that can be done while others are waited for. round() does what has not been done ahead. First the
  // samples of a step that has not begun, of one step at a time:
  [[nodiscard]] bool has_read(StepNumber step) const { return ahead_ == step; }
  void read(StepNumber step);
  // the rows and features of a step that has begun,
  [[nodiscard]] bool listed(StepNumber step) const { return opens_ != step && learner(step).listed(); }
  void list(StepNumber step);
  // and the output and dense rows of the step applied last.
  [[nodiscard]] bool rows_left() const { return rows_left_.has_value(); }
  void finish_rows();
  // By rank: the bytes that the member gives all others, or that they give it, in a round that this member
  // has computed.
  [[nodiscard]] std::vector<std::uint64_t> round_bytes(StepNumber step, FleetRound round) const;
  // What this member asks for from now on.
  void wish(StepWish wish) { wish_ = wish; }
  // What members asked for in the step applied last, by rank. Empty if that step was applied in a recovery.
  [[nodiscard]] const std::vector<StepWish>& wishes() const { return wishes_; }
  // This member's part of the loss of the step applied last.
  [[nodiscard]] double loss() const { return loss_; }
  // The computing time of all rounds since the last call, as far as it depends on how much of the network is
  // held. The rest of a round (samples, codec, logs) is the same whatever is held. Zero without a clock.
  [[nodiscard]] ComputeTime take_part_time() { return std::exchange(part_time_, {}); }
  // Tells the job of the step applied last, which was one of this epoch.
  void tell(Epoch epoch, const engine::SentBytes& sent) const;

  [[nodiscard]] StepLog& log() { return log_; }
  [[nodiscard]] const PieceCodec& codec() const { return codec_; }
  [[nodiscard]] const FleetJob& job() const { return job_; }
  [[nodiscard]] std::size_t rows() const { return job_.learner.batch_max; }

  // Ends the step that lacks nothing but the members' gradients of the first layer, with their sum:
  // [rows][columns held].
  void catch_up(std::span<const float> gradient);

 private:
  // A step in flight.
  struct Stepping {
    std::unique_ptr<sparse::Learner> learner;
    data::BatchCopy batch;
    std::vector<std::uint64_t> scores = {};  // by rank, if outputs are exchanged: the most there can be
  };
  [[nodiscard]] Stepping& stepping(StepNumber step) { return stepping_[step.value % stepping_.size()]; }
  [[nodiscard]] sparse::Learner& learner(StepNumber step) { return *stepping(step).learner; }
  [[nodiscard]] const sparse::Learner& learner(StepNumber step) const {
    return *stepping_[step.value % stepping_.size()].learner;
  }
  // Runs `compute`, which works on the part that is held, and counts its time.
  void timed(FunctionRef<void()> compute);
  [[nodiscard]] ComputeTime time_now() const;
  void begin_step(StepNumber step);
  void open(StepNumber step);
  [[nodiscard]] Result<void> take_hidden(StepNumber step, std::size_t layer, std::span<const Slices> got);
  [[nodiscard]] Result<void> take_shares(StepNumber step, std::span<const Slices> got);
  [[nodiscard]] Result<void> take_gradient(StepNumber step, std::size_t layer, std::span<const Slices> got);
  // The result, which is an error by what the member of `rank` gave.
  [[nodiscard]] Result<void> given_by(std::size_t rank, Result<void> taken);
  [[nodiscard]] Result<Slices> give_hidden(StepNumber step, FleetRound round);
  [[nodiscard]] Result<Slices> give_shares(StepNumber step);
  [[nodiscard]] Result<Slices> own_shares(StepNumber step);
  // The most scores that the member of `rank` may tell; 0 where scores are not exchanged.
  [[nodiscard]] std::uint64_t scores(StepNumber step, std::size_t rank) const {
    return stepping_[step.value % stepping_.size()].scores[rank];
  }
  [[nodiscard]] Result<Slices> give_gradient(StepNumber step, FleetRound round);
  void finish(StepNumber step);

  const FleetJob job_;
  const host::Clock* const clock_;
  ComputeTime part_time_;
  const PieceCodec codec_;
  std::vector<float> gradient_;  // of this member's columns, while parts are added up
  std::unique_ptr<sparse::Network> network_;
  std::unique_ptr<sparse::HashNegatives> hashed_;  // null: none, or no rows are held
  std::vector<Stepping> stepping_;
  std::optional<StepNumber> rows_left_;  // the step whose output and dense rows are not updated
  std::optional<StepNumber> opens_;      // the step that has embedded `samples_ahead_`, and nothing else
  std::optional<StepNumber> ahead_;      // the step of `samples_ahead_`
  data::BatchCopy samples_ahead_;
  std::vector<sparse::NetworkPart> parts_;  // by rank
  std::size_t me_ = 0;
  StepNumber applied_;
  std::optional<std::size_t> giver_;
  StepLog log_;  // also has the steps in flight, which may be begun again
  double loss_ = 0;
  StepWish wish_ = StepWish::kNothing;
  std::vector<StepWish> wishes_;  // by rank
};

// A network of zeros.
[[nodiscard]] std::unique_ptr<sparse::Network> empty_network(const FleetJob& job, sparse::NetworkPart part);
// A network in the state that the run begins with, for any part. Fails if that state cannot be read.
[[nodiscard]] Result<std::unique_ptr<sparse::Network>> starting_network(const FleetJob& job,
                                                                        sparse::NetworkPart part);
// A network of initial values, for any part.
[[nodiscard]] std::unique_ptr<sparse::Network> initial_network(const FleetJob& job, sparse::NetworkPart part);
// Fills columns of h of a hidden layer from the log.
void fill_hidden(const LoggedStep& logged, const PieceCodec& codec, const sparse::NetworkPiece& wanted,
                 sparse::BatchState& state);
// Sets the layer's own columns of dh to `sum`, [rows][own columns].
void set_columns(std::span<const float> sum, std::size_t rows, sparse::LayerState& layer);

}  // namespace gossamer::sparse_engine
