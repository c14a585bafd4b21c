// SPDX-License-Identifier: Apache-2.0
//
// Recovery: what a member computes before it goes on with a new layout (recovery_plan.h). It goes in stages,
// like the rounds of a step. In each stage the member computes from what all members gave in the stage
// before, and gives them something.
//
// 1. kLogs: members without the log of the steps since the last snapshot get it, with h and the partition
//    sums.
// 2. kCopies: copies of lost pieces come from the members that keep them.
// 3. kGradients of a hidden layer, from the last layer to the first. Lost output rows are trained anew from
//    the logs, which gives what they added to dh of the last layer. The logs also have what all other members
//    added. With both, lost units and columns are trained anew, layer by layer.
// 4. kSnapshot, if pieces move. It gives each of them also to its new holder. Logs of the steps before would
//    be wrong about the holders then.
// 5. kFinish: members that were behind apply the step that others have applied. The parts are put together.
// 6. kDone, if pieces have moved. Only then may a member leave that gave its part away.
//
// In every fourth stage of gradients each member gives each other a byte, whatever else it gives. So members
// are at most four of these stages apart.
//
// A recovery may be given up at any time. Until it has finished it changes two things alone: a member that
// was behind is so no more, and the log knows more. Thread rule: as for FleetLearner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "engines/sparse/fleet/recovery/recovery_plan.h"
#include "engines/sparse/fleet/recovery/vault.h"
#include "engines/sparse/fleet/step/fleet_learner.h"
#include "engines/sparse/fleet/step/step_order.h"

namespace gossamer::sparse_engine {

struct RecoveryStage {
  enum class Kind { kLogs, kCopies, kGradients, kSnapshot, kFinish, kDone };
  Kind kind;
  std::size_t layer = 0;  // of kGradients
};
[[nodiscard]] std::vector<RecoveryStage> recovery_stages(const RecoveryPlan& plan, std::size_t layers);
// Bytes that the member of rank `from` gives the member of rank `to` in a stage.
[[nodiscard]] std::uint64_t stage_bytes(const FleetJob& job, const RecoveryPlan& plan, RecoveryStage stage,
                                        std::size_t from, std::size_t to);

class Recovery {
 public:
  // Borrows the learner for its life.
  Recovery(FleetLearner& learner, const Vault& vault, const Layout& layout, std::size_t rank);

  // Computes what this member gives in a stage, for all ranks one after the other. `got` is what all members
  // gave in the stage before, by rank. Requires that stages come in the order of recovery_stages(). kSnapshot
  // gives nothing; sources() are then complete. kBadData for bytes that no member can have given.
  [[nodiscard]] Result<Slices> stage(RecoveryStage stage, std::span<const Slices> got);
  // The rank of the member that gave what cannot be, if the last stage failed for that.
  [[nodiscard]] std::optional<std::size_t> giver() const { return giver_; }
  // An error if the state that the run began with could not be read, or if a lost piece has no copy. Then the
  // other results are worth nothing.
  [[nodiscard]] const Result<void>& restored() const { return restored_; }
  // All pieces that this member has, recomputed ones among them. If two members have a piece, the one of
  // higher rank counts.
  [[nodiscard]] PieceSources sources() const;

 private:
  // A piece that this member gets: lost, or moved to it.
  struct Patch {
    sparse::NetworkPiece piece;  // for output rows: all of them together
    std::unique_ptr<sparse::Network> network;
    bool replayed = false;
  };
  // The sum for a want: for each step [rows][columns].
  struct Sum {
    RecoveryPlan::Want want;
    std::vector<std::vector<float>> steps;
  };
  using Gradients = std::vector<std::vector<ColumnPiece>>;  // by layer

  [[nodiscard]] bool copied(const sparse::NetworkPart& part) const;
  [[nodiscard]] std::unique_ptr<sparse::Network> begin_with(sparse::NetworkPart part);
  void make_patches();
  void load_copies(sparse::Network& network);
  [[nodiscard]] std::unique_ptr<sparse::Network> loaded(sparse::NetworkPart part) const;
  void take_moved();
  [[nodiscard]] Result<void> take(RecoveryStage stage, std::span<const Slices> got);
  [[nodiscard]] Result<void> take_log(const Slices& bytes);
  [[nodiscard]] Result<void> take_copies(std::span<const Slices> got);
  [[nodiscard]] Result<void> take_gradients(std::size_t layer, std::span<const Slices> got);
  [[nodiscard]] Error wrong(std::size_t rank, std::string_view what, float most);
  void replay_above(std::size_t layer);
  void replay(Patch& patch);
  void replay_round(const Patch& patch, sparse::Learner& learner, const StepOrder::Item& item);
  void begin_again(const Patch& patch, sparse::Learner& learner, StepNumber step);
  void take_sum(const Patch& patch, sparse::Learner& learner, StepNumber step);
  void log_added(const Patch& patch, sparse::Learner& learner, StepNumber step);
  [[nodiscard]] const Sum& sum_of(std::size_t layer, const host::Range& columns) const;
  void catch_up();
  [[nodiscard]] Slices marked(RecoveryStage stage, Slices given) const;
  [[nodiscard]] Slices give_logs() const;
  [[nodiscard]] Slices give_copies() const;
  [[nodiscard]] Slices give_gradients(std::size_t layer) const;
  void add_logged(StepNumber step, const RecoveryPlan::Want& want, std::span<float> out) const;
  void take_over(sparse::Network& network, sparse::Network& before) const;
  [[nodiscard]] std::unique_ptr<sparse::Network> put_together();
  void finish();

  FleetLearner& learner_;
  const Vault& vault_;
  const FleetJob& job_;
  const Layout layout_;
  const RecoveryPlan plan_;
  const std::size_t me_;
  const std::size_t layers_;
  std::vector<Patch> patches_;
  std::map<PieceId, Slices> copies_;               // from others
  std::vector<Sum> sums_;                          // for this member's wants
  std::map<StepNumber, Gradients> added_;          // what patches added to dh, for the log
  std::map<StepNumber, data::BatchCopy> batches_;  // of the steps that are computed anew
  std::optional<RecoveryStage> before_;
  std::optional<std::size_t> giver_;
  Result<void> restored_;
};

}  // namespace gossamer::sparse_engine
