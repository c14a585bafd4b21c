// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/recovery/recovery.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/block_pool.h"
#include "engines/sparse/fleet/recovery/vault.h"
#include "engines/sparse/fleet/step/fleet_learner.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::sparse_engine {
namespace {

// A member that takes up the whole network, which nobody holds any more. It has copies of all of it as of a
// step.
class LostNetwork {
 public:
  explicit LostNetwork(StepNumber base) : base_(base) {
    const auto network = initial_network(*job_, everything());
    PieceSources sources;
    for (const PieceId& piece : whole_) sources[piece] = network.get();
    const BlockPool memory;
    const auto delta =
        make_delta(*job_, sources, {.keeps = whole_, .has = {}, .since = {}, .step = base, .memory = memory});
    EXPECT_TRUE(vault_.apply(base, std::vector<Slices>{*delta}).ok());
  }

  [[nodiscard]] const Pieces& whole() const { return whole_; }
  // How the member gets its part, if members know of these copies.
  [[nodiscard]] Result<void> recovered(Pieces copies) {
    const Layout layout{.resume = base_,
                        .base = base_,
                        .members = {{.node = NodeId(1),
                                     .before = no_part(problem_.shape()),
                                     .applied = base_,
                                     .after = everything(),
                                     .copies_before = std::move(copies),
                                     .copies_after = {}}}};
    FleetLearner learner(*job_);
    Recovery recovery(learner, vault_, layout, 0);
    EXPECT_TRUE(recovery.stage({RecoveryStage::Kind::kFinish}, {}).ok());
    return recovery.restored();
  }

 private:
  [[nodiscard]] sparse::NetworkPart everything() const {
    sparse::NetworkPart part = sparse::whole(problem_.shape().network);
    part.rows = {problem_.shape().network.labels, problem_.shape().shard_shift};
    return part;
  }

  const StepNumber base_;
  const simulation::TinyProblem problem_{{.dense = {96, 64}, .steps = 40}};
  const std::shared_ptr<const FleetJob> job_ = problem_.make_job();
  const Pieces whole_ = pieces_of(problem_.shape(), everything());
  Vault vault_{*job_};
};

// Claim: once the run has learnt something, a lost piece without a copy is an error, whichever piece it is.
// The state that the run began with does not take its place.
TEST(Recovery, BeginsNoLostPieceAnew) {
  LostNetwork lost(StepNumber(5));
  EXPECT_TRUE(lost.recovered(lost.whole()).ok());
  for (const PieceId& piece : lost.whole()) {
    Pieces others = lost.whole();
    others.erase(piece);
    EXPECT_FALSE(lost.recovered(others).ok()) << "piece " << piece.index << " of layer " << piece.layer;
  }
}

// Claim: where the run has learnt nothing yet, no copies are needed.
TEST(Recovery, BeginsWithTheStartOfTheRun) { EXPECT_TRUE(LostNetwork(StepNumber()).recovered({}).ok()); }

}  // namespace
}  // namespace gossamer::sparse_engine
