// SPDX-License-Identifier: Apache-2.0
//
// Members exchange in another way than the usual one, all outputs, or more than links carry at once.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "engines/sparse/config/config.h"
#include "engines/sparse/fleet/fleet_engine.h"
#include "net/codec/codec.h"
#include "simulation/sparse/sparse_fleet.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::sparse_engine {
namespace {

using simulation::SparseFleet;
using simulation::TinyProblem;

// Trains to the end. With four or more nodes, two are killed at once after `deaths` steps, and another one
// joins.
void train_with_deaths(SparseFleet& fleet, std::size_t nodes, StepNumber deaths) {
  while (fleet.step() < deaths && !fleet->failure()) fleet->run_for(0.01);
  if (nodes >= 4) {
    fleet->kill("m2");
    fleet->kill("m4");
    fleet.join();
  }
  fleet->run_for(60);
  ASSERT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
  ASSERT_TRUE(fleet.done()) << nodes << " nodes\n" << fleet->log();
}

// Claim: members that exchange all outputs, as D-SLIDE does, train the same network, too. A killed member
// costs nothing, with one step in flight or two.
TEST(FleetExchange, GathersOutputs) {
  for (const std::vector<std::size_t>& dense : {std::vector<std::size_t>{}, {96, 64}}) {
    for (const std::size_t staleness : {0U, 1U}) {
      for (const std::size_t nodes : {1U, 2U, 4U, 8U}) {
        std::set<StepNumber> fresh;
        const TinyProblem problem({.dense = dense,
                                   .steps = 100,
                                   .exchange = ExchangeKind::kDslide,
                                   .staleness = staleness,
                                   .fresh = &fresh});
        SparseFleet fleet(problem, {.first_members = nodes, .copies = 2, .seed = nodes});
        ASSERT_NO_FATAL_FAILURE(train_with_deaths(fleet, nodes, StepNumber(20)));
        sparse::Network alone = problem.train_alone(fresh);
        EXPECT_LT(fleet.distance_to(alone), 1e-4)
            << nodes << " nodes, " << dense.size() << " dense layers, staleness " << staleness;
      }
    }
  }
}

// Claim: the network is the same, too, where hash tables find all rows of a part for all samples. A sample
// scores a row once, whether it found it, has it for a label, or both.
TEST(FleetExchange, GathersOutputsThatAllSamplesFind) {
  const std::size_t samples = 6;
  const std::size_t labels = 40;
  const TinyProblem problem({.features = 24,
                             .labels = labels,
                             .hidden = 32,
                             .samples = samples,
                             .hashed = {{.functions = 1,
                                         .tables = 4,
                                         .key_bits = 1,
                                         .sets = sparse::HashSets::kOwn,
                                         .queries = samples,
                                         .found = samples * labels,
                                         .tolerance = 0,
                                         .update_every = 1}},
                             .steps = 30,
                             .exchange = ExchangeKind::kDslide});
  sparse::Network alone = problem.train_alone();
  for (const std::size_t nodes : {2U, 4U}) {
    SparseFleet fleet(problem, {.first_members = nodes, .copies = 2, .seed = nodes});
    ASSERT_NO_FATAL_FAILURE(train_with_deaths(fleet, nodes, StepNumber(11)));
    EXPECT_LT(fleet.distance_to(alone), 1e-4) << nodes << " nodes";
  }
}

// Claim: a member that exchanges outputs sends each other member 8 bytes for each score of its rows, and 4
// for each sample. Here all samples score all rows.
TEST(FleetExchange, OutputsCostWhatThePageSays) {
  const auto bytes_of_a_step = [](ExchangeKind exchange) {
    const TinyProblem problem({.labels = 512,
                               .hidden = 128,
                               .samples = 256,
                               .sampled = 4096,
                               .steps = 30,
                               .snapshot_every = 1000,
                               .codec = net::Codec::kBf16,
                               .exchange = exchange});
    SparseFleet fleet(problem, {});
    const auto go_to = [&](std::uint64_t step) {
      while (fleet.step() < StepNumber(step) && !fleet->failure()) fleet->run_for(0.001);
    };
    go_to(5);
    const FleetCounters before = fleet.engine("m1").fleet_counters();
    go_to(25);
    EXPECT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
    const FleetCounters after = fleet.engine("m1").fleet_counters();
    return static_cast<double>(after.step_bytes - before.step_bytes) /
           static_cast<double>(after.steps - before.steps);
  };
  const double own = bytes_of_a_step(ExchangeKind::kShares);
  const double all = bytes_of_a_step(ExchangeKind::kDslide);
  const double scored = 3 * (4.0 * 256 + 8.0 * 256 * 512 / 4);
  EXPECT_NEAR(all - own, scored - 3 * 8.0 * 256, 0.02 * scored);
}

// Claim: in a recovery of many layers a member that needs nothing does not run ahead of the others. What it
// gives to one that is slow does not heap up in memory, and nobody is accused of being too far ahead.
TEST(FleetExchange, NobodyRunsAheadInARecovery) {
  const TinyProblem problem(
      {.hidden = 64, .dense = {64, 64, 64, 64, 64, 64}, .samples = 768, .steps = 60, .snapshot_every = 1000});
  SparseFleet fleet(problem, {.first_members = 4, .copies = 2, .longest_work = Duration{1}});
  while (!fleet.step() || *fleet.step() < StepNumber(45)) fleet->run_for(0.01);
  fleet->internet().set_rates("m4", {.up_bytes_per_second = 1e6});
  fleet->kill("m2");
  fleet->run_for(200);
  ASSERT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
  EXPECT_EQ(fleet->log().find("too far ahead"), std::string::npos) << fleet->log();
  EXPECT_EQ(fleet->lives(), 4U);
  EXPECT_TRUE(fleet.done()) << fleet->log();
}

}  // namespace
}  // namespace gossamer::sparse_engine
