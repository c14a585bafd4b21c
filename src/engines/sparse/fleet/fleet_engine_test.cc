// SPDX-License-Identifier: Apache-2.0
//
// Runs of the sparse engine in virtual time. What members train together is what one of them would train
// alone.
#include "engines/sparse/fleet/fleet_engine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "simulation/sparse/sparse_fleet.h"
#include "simulation/sparse/sparse_measuring.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::sparse_engine {
namespace {

using simulation::SparseFleet;
using simulation::TinyProblem;

// Claim: the network that is trained is the same on 1, 2, 4 and 8 nodes, with dense layers and without.
TEST(FleetEngine, TrainsLikeOneNode) {
  for (const std::vector<std::size_t>& dense : {std::vector<std::size_t>{}, {96, 64}}) {
    const TinyProblem problem({.dense = dense, .steps = 200});
    sparse::Network alone = problem.train_alone();
    for (const std::size_t nodes : {1U, 2U, 4U, 8U}) {
      SparseFleet fleet(problem, {.first_members = nodes});
      fleet->run_for(60);
      ASSERT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
      ASSERT_TRUE(fleet.done()) << nodes << " nodes\n" << fleet->log();
      EXPECT_LT(fleet.distance_to(alone), 1e-4) << nodes << " nodes, " << dense.size() << " dense layers";
    }
  }
}

// Claim: the trained network is the same for any number of columns, also where rows in memory end in padding.
TEST(FleetEngine, AnyNumberOfColumns) {
  for (const std::size_t hidden : {5U, 16U, 36U, 48U, 100U}) {
    const TinyProblem problem({.hidden = hidden, .steps = 40});
    sparse::Network alone = problem.train_alone();
    for (const std::size_t nodes : {2U, 4U}) {
      SparseFleet fleet(problem, {.first_members = nodes});
      while (fleet.step() < StepNumber(12)) fleet->run_for(0.01);
      if (nodes == 4) fleet->kill("m2");
      fleet->run_for(60);
      ASSERT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
      ASSERT_TRUE(fleet.done()) << hidden << " columns, " << nodes << " nodes\n" << fleet->log();
      EXPECT_LT(fleet.distance_to(alone), 1e-4) << hidden << " columns, " << nodes << " nodes";
    }
  }
}

// Claim: rounded exchanges train the same network up to the rounding. A killed member costs no more than
// that.
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
// can take. A step costs at most 1.3 one-way delays for each.
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
  // Paths of the simulated internet take 10 ms one way.
  EXPECT_LE(seconds, 3 * 1.3 * 0.010);
  RecordProperty("bytes_of_a_step", std::to_string(bytes));
  RecordProperty("milliseconds_of_a_step", std::to_string(1000 * seconds));
}

// Claim: members name the one whose engine hangs, in a step and in a recovery. A member whose recovery needs
// nothing of that one waits in the first step, for the others, too.
TEST(FleetEngine, NamesWhoIsAwaited) {
  const TinyProblem problem({.steps = 200, .snapshot_every = 1000});
  for (const bool recovers : {false, true}) {
    SparseFleet fleet(problem, {});
    while (!fleet.step() || fleet.step() < StepNumber(20)) fleet->run_for(0.01);
    const Epoch before = fleet.engine("m3").taken_up()->epoch;
    if (recovers) {
      fleet->kill("m2");
      while (fleet.engine("m3").taken_up()->epoch == before) fleet->run_for(0.001);
    }
    fleet->member("m3").hang(from_seconds(30));
    fleet->run_for(10);
    int recovering = 0;
    for (const char* const machine : {"m1", "m4"}) {
      const auto awaited = fleet.engine(machine).awaits();
      ASSERT_TRUE(awaited) << machine << recovers;
      EXPECT_TRUE(awaited->nodes.contains(fleet->member("m3").node())) << machine << recovers;
      const bool recovered = fleet.engine(machine).taken_up()->recovered;
      if (!recovered || !recovers) {
        EXPECT_EQ(awaited->nodes.size(), 1U) << machine << recovers;
      }
      recovering += recovered ? 0 : 1;
    }
    EXPECT_EQ(recovering > 0, recovers);
  }
}

// Claim: where a step waits for a snapshot, members name the one whose part of it does not come. It names all
// others.
TEST(FleetEngine, NamesWhoIsAwaitedForASnapshot) {
  const TinyProblem problem({.steps = 2000, .snapshot_every = 20});
  SparseFleet fleet(problem, {});
  while (!fleet.step() || fleet.step() < StepNumber(30)) fleet->run_for(0.01);
  for (const char* const other : {"m1", "m2", "m4", "c1"}) {
    fleet->internet().cut("m3", other, host::Lane::kBulk);
    fleet->internet().cut(other, "m3", host::Lane::kBulk);
  }
  fleet->run_for(60);
  ASSERT_LT(fleet.step(), StepNumber(100));
  const NodeId cut = fleet->member("m3").node();
  for (const char* const machine : {"m1", "m2", "m4"}) {
    const auto awaited = fleet.engine(machine).awaits();
    ASSERT_TRUE(awaited) << machine;
    EXPECT_EQ(awaited->nodes, std::set{cut}) << machine;
  }
  EXPECT_EQ(fleet.engine("m3").awaits()->nodes.size(), 3U);
}

// Claim: the lost pieces of a killed member are computed anew where their copies are, so that few copies
// travel. All columns go to a keeper. At most half of the output shards travel, to keep the members' numbers
// of shards even.
TEST(FleetEngine, CopiesAreWhereTheyAreNeeded) {
  const TinyProblem problem({.hidden = 128, .steps = 200});
  for (const char* const victim : {"m1", "m2", "m4"}) {
    SparseFleet fleet(problem, {});
    while (!fleet.step() || fleet.step() < StepNumber(60)) fleet->run_for(0.01);
    const std::string other = "m3";
    const Epoch before = fleet.engine(other).taken_up()->epoch;
    fleet->kill(victim);
    const auto next = [&] {
      const auto taken_up = fleet.engine(other).taken_up();
      return taken_up && taken_up->epoch > before && !taken_up->plan.lost.empty();
    };
    for (int i = 0; i < 2000 && !next(); ++i) fleet->run_for(0.005);
    ASSERT_TRUE(next()) << fleet->log();
    const RecoveryPlan& plan = fleet.engine(other).taken_up()->plan;
    std::size_t columns = 0;
    std::size_t shards = 0;
    std::size_t shards_travel = 0;
    for (const RecoveryPlan::Fetch& fetch : plan.fetches) {
      if (fetch.piece.layer < problem.shape().layers()) {
        ++columns;
        EXPECT_EQ(fetch.from, fetch.to) << victim << ", columns " << fetch.piece.index;
        continue;
      }
      ++shards;
      shards_travel += fetch.from != fetch.to ? 1 : 0;
    }
    EXPECT_GE(columns, 2U) << victim;
    EXPECT_GE(shards, 4U) << victim;
    EXPECT_LE(2 * shards_travel, shards) << victim;
  }
}

// Claim: members are killed at any moment, one after the other or at once. The others compute the lost pieces
// anew and lose no step, as long as one member is left.
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

// Tables that are as if built anew before each step, and that cut no answer short. So what they find depends
// on the weights alone.
sparse::HashNegativeOptions exact_tables(sparse::HashSets sets) {
  return {.functions = 3,
          .tables = 3,
          .key_bits = 3,
          .sets = sets,
          .queries = 8,
          .found = std::size_t{8} * 150,
          .tolerance = 0,
          .first_step = 7,
          .update_every = 1};
}

// Claim: members that each have hash tables of their own train the same network, too. A killed member costs
// nothing: the others know what its tables had found.
TEST(FleetEngine, FindsWhatOneNodeFinds) {
  for (const auto& [sets, exchange] : {std::pair(sparse::HashSets::kShared, ExchangeKind::kShares),
                                       std::pair(sparse::HashSets::kOwn, ExchangeKind::kShares),
                                       std::pair(sparse::HashSets::kOwn, ExchangeKind::kDslide)}) {
    const TinyProblem problem({.hashed = exact_tables(sets), .steps = 50, .exchange = exchange});
    const TinyProblem without({.steps = 50});
    sparse::Network alone = problem.train_alone();
    for (const std::size_t nodes : {1U, 2U, 4U, 8U}) {
      SparseFleet fleet(problem, {.first_members = nodes, .copies = 2});
      while (fleet.step() < StepNumber(18)) fleet->run_for(0.01);
      if (nodes > 2) {
        fleet->kill("m2");
        fleet->kill("m3");
        fleet.join();
      }
      fleet->run_for(60);
      ASSERT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
      ASSERT_TRUE(fleet.done()) << nodes << " nodes\n" << fleet->log();
      EXPECT_LT(fleet.distance_to(alone), 1e-4) << nodes << " nodes";
      sparse::Network other = without.train_alone();
      EXPECT_GT(fleet.distance_to(other), 1e-3) << "hash tables change nothing";
    }
  }
}

// Claim: with staleness 1 any number of members trains the same network, too. After a change of the view,
// steps begin when all before them are applied. Apart from that, a killed member costs nothing.
TEST(FleetEngine, TwoStepsInFlight) {
  for (const std::vector<std::size_t>& dense : {std::vector<std::size_t>{}, {96, 64}}) {
    for (const bool kill : {false, true}) {
      for (const std::size_t nodes : {1U, 2U, 4U, 8U}) {
        if (kill && nodes < 4) continue;
        std::set<StepNumber> fresh;
        const TinyProblem problem(
            {.dense = dense, .steps = 80, .snapshot_every = 16, .staleness = 1, .fresh = &fresh});
        SparseFleet fleet(problem, {.first_members = nodes, .copies = 2, .seed = nodes});
        while (fleet.step() < StepNumber(20)) fleet->run_for(0.01);
        if (kill) {
          fleet->kill("m2");
          fleet->kill("m4");
          fleet.join();
        }
        while (fleet.step() < StepNumber(40)) fleet->run_for(0.01);
        if (kill) fleet->kill("m1");
        fleet->run_for(60);
        ASSERT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
        ASSERT_TRUE(fleet.done()) << nodes << " nodes\n" << fleet->log();
        if (!kill) {
          EXPECT_EQ(fresh, (std::set<StepNumber>{
                               {}, StepNumber(16), StepNumber(32), StepNumber(48), StepNumber(64)}));
        }
        sparse::Network alone = problem.train_alone(fresh);
        EXPECT_LT(fleet.distance_to(alone), 1e-4) << nodes << " nodes" << (kill ? ", killed" : "");
        sparse::Network prompt = TinyProblem({.dense = dense, .steps = 80}).train_alone();
        EXPECT_GT(fleet.distance_to(prompt), 1e-3) << "nothing is stale";
      }
    }
  }
}

// Claim: with staleness 1 a step takes half of its exchanges' delays, plus the pauses for snapshots.
TEST(FleetEngine, TwoStepsShareTheirDelays) {
  const TinyProblem problem({.steps = 160, .snapshot_every = 16, .staleness = 1});
  SparseFleet fleet(problem, {.longest_work = Duration{1}});
  while (fleet.step() < StepNumber(16)) fleet->run_for(0.001);
  const Instant begin = fleet->timeline().now();
  while (fleet.step() < StepNumber(144)) fleet->run_for(0.001);
  // Three exchanges of 10 ms one way. In 16 steps there is one more that begins alone.
  EXPECT_LE((fleet->timeline().now() - begin).seconds() / 128, 1.08 * (17.0 / 16) * 1.5 * 0.010);
}

// Claim: members that join get a part, and members that leave in order give theirs away. No step is computed
// twice.
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

// Claim: a kill, a join and a departure are each reported with their cost by all members that stay. The parts
// add up to the cost, except for the time by which the first step differs from others.
TEST(FleetEngine, TellsWhatRecoveriesCost) {
  std::map<Epoch, std::vector<engine::FleetRecovery>> told;
  const TinyProblem problem({.dense = {96}, .steps = 150, .recovered = [&](const engine::FleetRecovery& one) {
                               told[one.epoch].push_back(one);
                             }});
  SparseFleet fleet(problem, {});
  const auto go_to = [&](std::uint64_t step) {
    while (fleet.step() < StepNumber(step)) fleet->run_for(0.001);
  };
  go_to(23);
  EXPECT_TRUE(told.empty());
  const double before = (fleet->timeline().now() - Instant{}).seconds();
  fleet->kill("m2");
  while (told.empty()) fleet->run_for(0.001);
  const double passed = (fleet->timeline().now() - Instant{}).seconds() - before;
  go_to(60);
  const std::string fifth = fleet.join();
  go_to(100);
  fleet->member(fifth).drain("it was told to");
  fleet->run_for(60);
  ASSERT_TRUE(fleet.done()) << fleet->log();
  ASSERT_EQ(told.size(), 3U);

  const std::vector<engine::FleetRecovery>& killed = told.begin()->second;
  EXPECT_EQ(killed.size(), 3U);
  for (const engine::FleetRecovery& one : killed) {
    EXPECT_EQ(one.cause, "m2 was lost");
    EXPECT_LE(one.total.seconds(), passed);
    EXPECT_GT(one.total.seconds(), 0.5 * passed);
    EXPECT_GT(one.detect.ns, 0);
    EXPECT_GT(one.agree.ns, 0);
    EXPECT_GT(one.load.ns, 0);
    EXPECT_GT(one.replay.ns, 0);
    // Replay begins at the snapshot of step 20, or the one before.
    EXPECT_GE(one.steps_replayed, 3U);
    EXPECT_LE(one.steps_replayed, 9U);
    const Duration parts = one.detect + one.agree + one.load + one.replay;
    EXPECT_NEAR(parts.seconds(), one.total.seconds(), 0.1);
  }
  const std::vector<engine::FleetRecovery>& joined = std::next(told.begin())->second;
  EXPECT_EQ(joined.size(), 3U);
  EXPECT_EQ(joined.front().cause, fifth + " joined");
  // No step is replayed, except by a member that was a step behind.
  EXPECT_LE(joined.front().steps_replayed, 1U);
  const std::vector<engine::FleetRecovery>& left = std::next(told.begin(), 2)->second;
  EXPECT_EQ(left.size(), 3U);
  EXPECT_EQ(left.front().cause, fifth + " left");
  EXPECT_LE(left.front().steps_replayed, 1U);
  // What moves has come from others.
  for (const auto* const moved : {&joined, &left}) {
    for (const engine::FleetRecovery& one : *moved) {
      if (one.steps_replayed == 0) {
        EXPECT_GT(one.load.ns, one.replay.ns) << one.cause;
      }
    }
  }
}

// The fraction of places that are the same in both.
double agreement(const std::vector<std::uint32_t>& one, const std::vector<std::uint32_t>& other) {
  EXPECT_EQ(one.size(), other.size());
  double same = 0;
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) same += one[i] == other[i] ? 1 : 0;
  return same / static_cast<double>(one.size());
}

// A fleet whose lead measures the trained network.
class MeasuredFleet {
 public:
  MeasuredFleet(const TinyProblem& problem, SparseFleet::Options options)
      : fleet_(problem, heard(std::move(options))), measuring_(std::in_place, problem, *fleet_) {}
  [[nodiscard]] SparseFleet* operator->() { return &fleet_; }
  [[nodiscard]] simulation::Fleet& operator*() { return *fleet_; }
  [[nodiscard]] const simulation::SparseMeasuring& measuring() const { return *measuring_; }

 private:
  SparseFleet::Options heard(SparseFleet::Options options) {
    options.others = [this](const net::Arrived& arrived) {
      if (measuring_) measuring_->on(arrived);
    };
    return options;
  }
  SparseFleet fleet_;
  std::optional<simulation::SparseMeasuring> measuring_;
};

// Claim: after the last step the lead measures what one process measures. If members are killed, join or
// leave meanwhile, or the lead is killed, it begins anew, and its ranks are of all records. (The trained
// network differs from one process's by rounding, which may move a rank.)
TEST(FleetEngine, IsMeasuredAsOneProcess) {
  for (const std::vector<std::size_t>& dense : {std::vector<std::size_t>{}, {96, 64}}) {
    std::vector<std::uint32_t> want;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(::testing::Message() << dense.size() << " dense layers, seed " << seed);
      const TinyProblem problem({.hidden = 112, .dense = dense, .steps = 30, .test_records = 3000});
      if (want.empty()) want = problem.ranks_alone(problem.train_alone());
      MeasuredFleet fleet(problem, {.first_members = 4, .copies = 2, .seed = 1 + seed});
      while (!fleet->step() || fleet->step() < StepNumber(30)) (*fleet).run_for(0.001);
      (*fleet).run_for(0.03 * static_cast<double>(1 + seed));
      EXPECT_FALSE(fleet.measuring().ranks());
      if (seed % 4 == 1) (*fleet).kill("m2");
      if (seed % 4 == 2) fleet->join();
      if (seed % 4 == 3) (*fleet).member("m3").drain("it was told to");
      if (seed > 3) (*fleet).kill_coordinator_for("c1", from_seconds(0.5));
      if (seed % 4 == 2) {
        (*fleet).run_for(0.2);
        (*fleet).kill("m1");
      }
      (*fleet).run_for(60);
      ASSERT_EQ((*fleet).failure(), std::nullopt) << *(*fleet).failure();
      ASSERT_TRUE(fleet->done()) << (*fleet).log();
      ASSERT_TRUE(fleet.measuring().ranks()) << (*fleet).log();
      EXPECT_GT(agreement(*fleet.measuring().ranks(), want), 0.99);
      EXPECT_EQ(fleet.measuring().epoch(), (*fleet).durable().begun());
    }
  }
}

// Claim: the members that are left answer to the end, whenever others are killed, one after the other or at
// once. What they answer is within rounding of what all answered.
TEST(FleetEngine, KilledMembersEndNoMeasuring) {
  std::uint64_t in_between = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const TinyProblem problem({.hidden = 64, .steps = 12, .test_records = 2000});
    const std::vector<std::uint32_t> want = problem.ranks_alone(problem.train_alone());
    MeasuredFleet fleet(problem, {.first_members = 5, .copies = 4, .seed = seed});
    Rng rng(seed, Purpose::kTest);
    while (!fleet->step() || fleet->step() < StepNumber(12)) (*fleet).run_for(0.001);
    for (std::size_t left = 5; left > 1;) {
      (*fleet).run_for(0.4 * static_cast<double>(rng.uniform()) + (rng.below(2) == 0 ? 2.5 : 0));
      in_between += fleet.measuring().ranks() ? 0 : 1;
      for (std::size_t k = 1 + rng.below(left - 1); k > 0; --k, --left) {
        const auto at = static_cast<std::ptrdiff_t>(rng.below(left));
        (*fleet).kill(std::next((*fleet).members().begin(), at)->first);
      }
    }
    (*fleet).run_for(60);
    ASSERT_EQ((*fleet).failure(), std::nullopt) << *(*fleet).failure() << "\n" << (*fleet).log();
    ASSERT_TRUE(fleet->done()) << (*fleet).log();
    ASSERT_TRUE(fleet.measuring().ranks()) << (*fleet).log();
    EXPECT_GT(agreement(*fleet.measuring().ranks(), want), 0.99);
  }
  EXPECT_GT(in_between, 10U);
}

}  // namespace
}  // namespace gossamer::sparse_engine
