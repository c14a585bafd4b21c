// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/recovery/recovery.h"

#include <gtest/gtest.h>

#include <cstddef>
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

// Claim: two members that need nothing of each other wait for each other in every fourth stage of gradients
// alone, and where pieces have moved. So two that do not reach each other hold up few others.
TEST(Recovery, WhatIsNotNeededIsNotWaitedFor) {
  using Kind = RecoveryStage::Kind;
  const simulation::TinyProblem problem({.dense = {64, 64, 64, 64, 64, 64}, .steps = 40});
  const auto job = problem.make_job();
  RecoveryPlan plan;
  plan.base = StepNumber(5);
  plan.resume = StepNumber(8);
  plan.snapshot = true;
  plan.without_log = {2};
  const std::size_t layers = problem.shape().layers();
  for (std::size_t layer = 0; layer < layers; ++layer)
    plan.wants.push_back({.rank = 2, .layer = layer, .columns = {0, 8}, .begin = StepNumber(5)});
  plan.fetches.push_back({.from = 0, .to = 2, .piece = {.layer = 0, .index = 0}});
  plan.moves.push_back({.from = 0, .to = 2, .piece = {.layer = 0, .range = {0, 8}}});
  std::vector<std::size_t> waits;  // layers
  for (const RecoveryStage stage : recovery_stages(plan, layers)) {
    const std::uint64_t unneeded = stage_bytes(*job, plan, stage, 0, 1);
    if (stage.kind == Kind::kGradients) {
      if (unneeded > 0) waits.push_back(stage.layer);
    } else {
      EXPECT_EQ(unneeded, stage.kind == Kind::kDone ? 1U : 0U);
    }
    if (stage.kind == Kind::kLogs || stage.kind == Kind::kCopies) {
      EXPECT_GT(stage_bytes(*job, plan, stage, 0, 2), 1U);
    }
  }
  EXPECT_EQ(waits, std::vector<std::size_t>{3});
}

}  // namespace
}  // namespace gossamer::sparse_engine
