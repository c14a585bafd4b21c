// SPDX-License-Identifier: Apache-2.0
//
// Runs of the sparse engine in virtual time: what members train together is what one of them would train
// alone.
#include "engines/sparse/fleet/fleet_engine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simulation/sparse/sparse_fleet.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::engine {
namespace {

using simulation::SparseFleet;
using simulation::TinyProblem;

// Claim: on 1, 2, 4 and 8 nodes the same is trained, with dense layers and without.
TEST(FleetEngine, TrainsLikeOneNode) {
  for (const std::vector<std::size_t>& dense : {std::vector<std::size_t>{}, {96, 64}}) {
    const TinyProblem problem({.dense = dense, .steps = 200});
    sparse::Network alone = problem.train_alone();
    for (const std::size_t nodes : {1, 2, 4, 8}) {
      SparseFleet fleet(problem, {.first_members = nodes});
      fleet->run_for(60);
      ASSERT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
      ASSERT_TRUE(fleet.done()) << nodes << " nodes\n" << fleet->log();
      EXPECT_LT(fleet.distance_to(alone), 1e-4) << nodes << " nodes, " << dense.size() << " dense layers";
    }
  }
}

// Claim: so it is, to what is rounded, where fewer bits travel; who is killed costs no more than that.
TEST(FleetEngine, RoundsWhatTravels) {
  for (const auto& [codec, distance] :
       {std::pair(net::Codec::kBf16, 0.05), std::pair(net::Codec::kInt8, 0.07)}) {
    for (const bool kill : {false, true}) {
      const TinyProblem problem({.dense = {96, 64}, .steps = 100, .codec = codec});
      SparseFleet fleet(problem, {});
      while (fleet.step() < StepNumber(20)) fleet->run_for(0.01);
      if (kill) fleet->kill("m2");
      fleet->run_for(60);
      ASSERT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
      ASSERT_TRUE(fleet.done()) << fleet->log();
      sparse::Network alone = problem.train_alone();
      const double got = fleet.distance_to(alone);
      EXPECT_LT(got, distance) << name(codec) << (kill ? ", one killed" : "");
      EXPECT_GT(got, 1e-4) << name(codec);
    }
  }
}

// Claim: at n = 4, H = 128, B = 256 in bf16 a member sends at most 1.15 times the least that three exchanges
// can take, and a step costs at most 1.3 one-way delays for each.
TEST(FleetEngine, CostsLittleMoreThanItMust) {
  const TinyProblem problem(
      {.hidden = 128, .samples = 256, .steps = 60, .snapshot_every = 1000, .codec = net::Codec::kBf16});
  SparseFleet fleet(problem, {.longest_work = Duration{1}});
  while (fleet.step() < StepNumber(10)) fleet->run_for(0.001);
  const Instant begin = fleet->timeline().now();
  const std::uint64_t before = fleet.engine("m1").fleet_counters().step_bytes;
  const std::uint64_t first = fleet.engine("m1").fleet_counters().steps;
  while (fleet.step() < StepNumber(50)) fleet->run_for(0.001);
  const double steps = static_cast<double>(fleet.engine("m1").fleet_counters().steps - first);
  const double least = 2.0 * 3 / 4 * 256 * 128 * 2 + 8.0 * 256 * 3;
  const double bytes = static_cast<double>(fleet.engine("m1").fleet_counters().step_bytes - before) / steps;
  const double seconds = (fleet->timeline().now() - begin).seconds() / 40;
  EXPECT_LE(bytes, 1.15 * least);
  // Paths of the simulated internet take 10 ms, one way.
  EXPECT_LE(seconds, 3 * 1.3 * 0.010);
  RecordProperty("bytes_of_a_step", std::to_string(bytes));
  RecordProperty("milliseconds_of_a_step", std::to_string(1000 * seconds));
}

// Claim: however many members are killed, one after the other or at once, at any moment, the others compute
// anew what is lost and lose no step, as long as one is left.
TEST(FleetEngine, KilledMembersCostNoStep) {
  for (const std::vector<std::size_t>& dense : {std::vector<std::size_t>{}, {96, 64}}) {
    const TinyProblem problem({.dense = dense, .steps = 60});
    sparse::Network alone = problem.train_alone();
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      SparseFleet fleet(problem, {.copies = 3, .seed = seed});
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

// Claim: members that join get a part, and members that leave in order give theirs away, without a step that
// is computed again.
TEST(FleetEngine, MembersComeAndGo) {
  for (const std::vector<std::size_t>& dense : {std::vector<std::size_t>{}, {96, 64}}) {
    const TinyProblem problem({.dense = dense, .steps = 100});
    sparse::Network alone = problem.train_alone();
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SparseFleet fleet(problem, {.first_members = 2, .seed = seed});
      while (!fleet.step()) fleet->run_for(0.01);
      fleet->run_for(1);
      const std::string third = fleet.join();
      const std::string fourth = fleet.join();
      fleet->run_for(2);
      EXPECT_FALSE(fleet.holds_nothing(third)) << "seed " << seed << "\n" << fleet->log();
      EXPECT_GT(fleet.engine(third).part()->columns.end, 0u) << "seed " << seed;
      EXPECT_FALSE(fleet.holds_nothing(fourth)) << "seed " << seed << "\n" << fleet->log();
      fleet->member("m1").drain("it was told to");
      fleet->run_for(2);
      EXPECT_TRUE(fleet->member("m1").done()) << "seed " << seed << "\n" << fleet->log();
      fleet->kill("m1");
      fleet->run_for(60);
      ASSERT_EQ(fleet->failure(), std::nullopt) << *fleet->failure() << "\n" << fleet->log();
      ASSERT_TRUE(fleet.done()) << "seed " << seed << "\n" << fleet->log();
      EXPECT_LT(fleet.distance_to(alone), 1e-4) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace gossamer::engine
