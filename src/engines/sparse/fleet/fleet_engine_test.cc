// SPDX-License-Identifier: Apache-2.0
//
// Runs of the sparse engine in virtual time: what members train together is what one of them would train
// alone.
#include "engines/sparse/fleet/fleet_engine.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engines/sparse/fleet/sparse_fleet.h"

namespace gossamer::engine {
namespace {

// Claim: on 1, 2, 4 and 8 nodes the same is trained, with dense layers and without.
TEST(FleetEngine, TrainsLikeOneNode) {
  for (const std::vector<std::size_t>& dense : {std::vector<std::size_t>{}, {96, 64}}) {
    const TinyProblem problem(dense, 200);
    const sparse::Network alone = problem.train_alone();
    for (const std::size_t nodes : {1, 2, 4, 8}) {
      SparseFleet fleet(problem, nodes, 1);
      fleet->run_for(60);
      ASSERT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
      ASSERT_TRUE(fleet.done()) << nodes << " nodes\n" << fleet->log();
      EXPECT_LT(fleet.distance_to(alone), 1e-4) << nodes << " nodes, " << dense.size() << " dense layers";
    }
  }
}

// Claim: however many members are killed, one after the other or at once, at any moment, the others compute
// anew what is lost and lose no step, as long as one is left.
TEST(FleetEngine, KilledMembersCostNoStep) {
  for (const std::vector<std::size_t>& dense : {std::vector<std::size_t>{}, {96, 64}}) {
    const TinyProblem problem(dense, 60);
    const sparse::Network alone = problem.train_alone();
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      SparseFleet fleet(problem, 4, seed);
      Rng rng(seed, Purpose::kTest);
      while (!fleet.step()) fleet->run_for(0.01);
      for (std::size_t left = 4; left > 1;) {
        fleet->run_for(1.5 * static_cast<double>(rng.uniform()));
        for (std::size_t k = 1 + rng.below(left - 1); k > 0; --k, --left) {
          const auto at = static_cast<std::ptrdiff_t>(rng.below(left));
          fleet->kill(std::next(fleet->members().begin(), at)->first);
        }
      }
      fleet->run_for(60);
      ASSERT_EQ(fleet->failure(), std::nullopt) << *fleet->failure() << "\n" << fleet->log();
      ASSERT_TRUE(fleet.done()) << "seed " << seed << "\n" << fleet->log();
      EXPECT_LT(fleet.distance_to(alone), 1e-4) << "seed " << seed << ", " << dense.size() << " dense layers";
    }
  }
}

}  // namespace
}  // namespace gossamer::engine
