// SPDX-License-Identifier: Apache-2.0
//
// What is left of a run when several members die together, or all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engines/sparse/fleet/fleet_engine.h"
#include "host/sim/disk.h"
#include "simulation/sparse/sparse_fleet.h"
#include "simulation/sparse/tiny_problem.h"
#include "tensors/fleet_files.h"

namespace gossamer::sparse_engine {
namespace {

using simulation::Fleet;
using simulation::SparseFleet;
using simulation::TinyProblem;

// A part of a run that keeps checkpoints on the disk of `options`. It lasts until its members have taken so
// many steps or more. Then all are gone at once, the coordinator too.
void run_until(StepNumber step, std::size_t nodes, TinyProblem::Options options) {
  const TinyProblem problem(std::move(options));
  SparseFleet fleet(problem, {.first_members = nodes});
  while (!fleet.step() || *fleet.step() < step) fleet->run_for(0.01);
  EXPECT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
}

// Claim: when all nodes and the coordinator have died, the run goes on from the last checkpoint. Any number
// of nodes may go on with it, with shards of any size. They end with what one node trains.
TEST(FleetOutage, AllDieAndOthersGoOn) {
  for (const std::vector<std::size_t>& dense : {std::vector<std::size_t>{}, {96, 64}}) {
    host::SimDisk disk;
    TinyProblem::Options options{.dense = dense, .steps = 90, .disk = &disk, .checkpoint_every = 8};
    run_until(StepNumber(27), 4, options);
    options.shard_shift = 4;
    EXPECT_EQ(TinyProblem(options).start(), StepNumber(24));
    run_until(StepNumber(50), 2, options);
    options.shard_shift = 1;
    EXPECT_EQ(TinyProblem(options).start(), StepNumber(48));
    run_until(StepNumber(66), 1, options);
    const TinyProblem problem(options);
    EXPECT_EQ(problem.start(), StepNumber(64));
    SparseFleet fleet(problem, {.first_members = 5, .copies = 2});
    while (!fleet.step() || *fleet.step() < StepNumber(66)) fleet->run_for(0.01);
    // One dies before the first snapshot, and one after it.
    fleet->kill("m2");
    while (*fleet.step() < StepNumber(80)) fleet->run_for(0.01);
    fleet->kill("m1");
    fleet->run_for(60);
    ASSERT_EQ(fleet->failure(), std::nullopt) << *fleet->failure() << "\n" << fleet->log();
    ASSERT_TRUE(fleet.done()) << fleet->log();
    sparse::Network alone = problem.train_alone();
    EXPECT_LT(fleet.distance_to(alone), 1e-4) << dense.size() << " dense layers";
    EXPECT_EQ(fleet.other_last_step(alone), std::nullopt);
  }
}

// Claim: with two copies of each piece two members may die, the second at any moment of the recovery from the
// first. It may be a recovery in which pieces move.
TEST(FleetOutage, OneDiesWhileAnotherIsMadeGood) {
  const TinyProblem problem({.features = 24,
                             .labels = 40,
                             .hidden = 64,
                             .dense = {64, 32},
                             .samples = 6,
                             .shard_shift = 3,
                             .steps = 200,
                             .snapshot_every = 4});
  std::vector<std::string> machines{"m1", "m2", "m3", "m4"};
  std::uint64_t seed = 0;
  do {
    for (std::uint64_t later = 0; later < 12; ++later) {
      SparseFleet fleet(problem, {.first_members = 4,
                                  .copies = 2,
                                  .seed = ++seed,
                                  .longest_work = from_milliseconds(20),
                                  .path = {.delay = from_milliseconds(40)}});
      const auto run_until = [&](const auto& there) {
        while (!fleet->failure() && !there()) fleet->run_for(0.002);
      };
      run_until([&] { return fleet.step() && *fleet.step() >= StepNumber(2 + later); });
      fleet->member(machines[0]).drain("it was told to");
      run_until([&] { return fleet->member(machines[0]).done(); });
      fleet->run_for(0.4);  // the others go on
      const Epoch before = fleet->durable().installed();
      fleet->kill(machines[1]);
      run_until([&] { return fleet->durable().installed() > before; });
      fleet->run_for(0.03 * static_cast<double>(later));
      fleet->kill(machines[2]);
      const Epoch second = fleet->durable().installed();
      run_until([&] { return fleet->durable().installed() > second; });
      fleet->run_for(1);
      ASSERT_EQ(fleet->failure(), std::nullopt) << seed << ": " << *fleet->failure() << "\n" << fleet->log();
    }
  } while (std::ranges::next_permutation(machines).found);
}

// Claim: all nodes may die at any moment, also while the others recover from a member's death. The run goes
// on.
TEST(FleetOutage, AllDieAtAnyMoment) {
  std::uint64_t resumed = 0;
  std::uint64_t recovering = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed, Purpose::kTest);
    host::SimDisk disk;
    TinyProblem::Options options{
        .features = 24,
        .labels = 40,
        .hidden = 64,
        .dense = seed % 2 == 0 ? std::vector<std::size_t>{} : std::vector<std::size_t>{64},
        .samples = 6,
        .steps = 200,
        .disk = &disk,
        .checkpoint_every = 1 + rng.below(8)};
    for (int part = 0; part < 4; ++part) {
      options.shard_shift = 1 + static_cast<unsigned>(rng.below(3));
      const TinyProblem problem(options);
      resumed += problem.start() > StepNumber() ? 1 : 0;
      SparseFleet fleet(problem, {.first_members = 2 + rng.below(4), .seed = seed * 10 + rng.below(10)});
      while (!fleet.step()) fleet->run_for(0.01);
      fleet->run_for(1.5 * static_cast<double>(rng.uniform()));
      const Epoch view = fleet->durable().begun();
      const std::uint64_t recoveries = fleet.engine("m2").fleet_counters().recoveries;
      const bool killed = rng.below(2) == 0;
      if (killed) fleet->kill("m1");
      if (killed && rng.below(2) == 0) {
        for (int i = 0; i < 2000 && fleet->durable().begun() == view; ++i) fleet->run_for(0.001);
        fleet->run_for(0.4 * static_cast<double>(rng.uniform()));
      } else {
        fleet->run_for(3 * static_cast<double>(rng.uniform()));
      }
      const bool changes = killed && fleet->durable().begun() > view;
      recovering += changes && fleet.engine("m2").fleet_counters().recoveries == recoveries ? 1 : 0;
      ASSERT_EQ(fleet->failure(), std::nullopt) << "seed " << seed << ": " << *fleet->failure();
    }
    const TinyProblem problem(options);
    SparseFleet fleet(problem, {.first_members = 1 + rng.below(4)});
    fleet->run_for(60);
    ASSERT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
    ASSERT_TRUE(fleet.done()) << "seed " << seed << "\n" << fleet->log();
    sparse::Network alone = problem.train_alone();
    EXPECT_LT(fleet.distance_to(alone), 1e-4) << "seed " << seed;
    EXPECT_EQ(fleet.other_last_step(alone), std::nullopt) << "seed " << seed;
  }
  EXPECT_GT(resumed, 40U);
  EXPECT_GE(recovering, 5U);
}

// Claim: a run that is stopped saves the same step at all members before they leave. It does not matter which
// of them hears of it first.
TEST(FleetOutage, StopsWithACheckpoint) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    host::SimDisk disk;
    const TinyProblem::Options options{.steps = 1000, .disk = &disk};
    const TinyProblem problem(options);
    SparseFleet fleet(problem, {.first_members = 1 + seed % 5, .seed = seed});
    while (!fleet.step() || *fleet.step() < StepNumber(20)) fleet->run_for(0.01);
    fleet->run_for(0.001 * static_cast<double>(seed));
    fleet->stop("enough");
    fleet->run_for(3);
    for (const auto& [machine, member] : fleet->members()) EXPECT_TRUE(member->done()) << machine;
    const StepNumber start = TinyProblem(options).start();
    EXPECT_GE(start, StepNumber(20)) << "seed " << seed;
    EXPECT_LT(start, StepNumber(60)) << "seed " << seed;
  }
}

// Claim: members that are all told to leave, at once or one after the other, lose no step. The last ones save
// the step that they have reached. Others, or the same, go on from it, many times, and end with what one node
// trains. Rounding adds up over 400 steps.
TEST(FleetOutage, AWeekOfLeavingAndReturning) {
  std::uint64_t days = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed, Purpose::kTest);
    host::SimDisk disk;
    TinyProblem::Options options{
        .features = 24,
        .labels = 40,
        .hidden = 64,
        .dense = seed % 2 == 0 ? std::vector<std::size_t>{} : std::vector<std::size_t>{64},
        .samples = 6,
        .steps = 400,
        .disk = &disk};
    StepNumber reached;
    for (int day = 0; day < 7; ++day) {
      options.shard_shift = 1 + static_cast<unsigned>(rng.below(3));
      const TinyProblem problem(options);
      ASSERT_EQ(problem.start(), reached) << "day " << day;
      const std::size_t members = 1 + rng.below(4);
      SparseFleet fleet(problem, {.first_members = members, .seed = seed * 10 + rng.below(10)});
      const auto run_for = [&](double seconds) {
        for (double past = 0; past < seconds; past += 0.001) {
          fleet->run_for(0.001);
          reached = std::max(reached, fleet.step().value_or(StepNumber()));
        }
      };
      while (!fleet.step()) run_for(0.01);
      run_for(0.1 * static_cast<double>(rng.uniform()));
      const double within = rng.below(2) == 0 ? 0.02 : 0.3;
      for (std::size_t i = 1; i <= members; ++i) {
        fleet->member("m" + std::to_string(i)).drain("it was told to");
        run_for(within * static_cast<double>(rng.uniform()));
      }
      const auto gone = [&] {
        return std::ranges::all_of(fleet->members(), [](const auto& one) { return one.second->done(); });
      };
      for (int i = 0; i < 4000 && !gone(); ++i) run_for(0.002);
      ASSERT_TRUE(gone()) << "day " << day << "\n" << fleet->log();
      ASSERT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
      if (reached.value >= 400) break;
      ++days;
    }
    if (reached.value >= 400) continue;
    const TinyProblem problem(options);
    SparseFleet fleet(problem, {.first_members = 2});
    fleet->run_for(60);
    ASSERT_TRUE(fleet.done()) << fleet->log();
    sparse::Network alone = problem.train_alone();
    EXPECT_LT(fleet.distance_to(alone), 1e-3);
    EXPECT_EQ(fleet.other_last_step(alone), std::nullopt);
  }
  EXPECT_GT(days, 25U);
}

enum class Leaving { kDrain, kStop, kUnled, kInAChange };

// A day of a run: members work, and then all leave in order. It notes how far any of them has come.
class Day {
 public:
  Day(const TinyProblem::Options& options, std::size_t members, std::uint64_t seed)
      : problem_(options),
        fleet_(problem_, {.first_members = members, .copies = 2, .seed = seed}),
        reached_(problem_.start()) {
    while (!fleet_.step()) run_for(0.01);
  }
  void run_for(double seconds) {
    for (double past = 0; past < seconds; past += 0.001) {
      fleet_->run_for(0.001);
      for (const auto& [machine, member] : fleet_->members())
        reached_ = std::max(reached_, fleet_.engine(machine).step().value_or(StepNumber()));
    }
  }
  void restart_the_coordinator(double seconds) {
    fleet_->kill_coordinator_for("c1", from_seconds(seconds));
    run_for(seconds + 3);
  }
  void leave(Leaving how, Rng& rng) {
    const double within = rng.below(2) == 0 ? 0.02 : 2;  // at once, or one after the other
    if (how == Leaving::kStop) fleet_->stop("enough");
    if (how == Leaving::kInAChange) {
      const Epoch before = fleet_->durable().begun();
      fleet_.join();
      while (fleet_->durable().begun() == before) run_for(0.001);
      run_for(0.2 * static_cast<double>(rng.uniform()));
    }
    const bool led = how == Leaving::kDrain || how == Leaving::kStop;
    if (!led) {
      fleet_->kill_coordinator_for("c1", from_seconds(36'000));
      run_for(11);
    }
    for (const std::string& machine : fleet_->member_machines()) {
      if (how == Leaving::kDrain) fleet_->member(machine).drain("it was told to");
      if (!led) fleet_->member(machine).save_and_leave("it was told to");
      run_for(within * static_cast<double>(rng.uniform()));
    }
    for (int i = 0; i < 200 && !all_gone(); ++i) run_for(1);
  }
  [[nodiscard]] bool all_gone() {
    return std::ranges::all_of(fleet_->members(), [](const auto& one) { return one.second->done(); });
  }
  [[nodiscard]] StepNumber start() const { return problem_.start(); }
  [[nodiscard]] StepNumber reached() const { return reached_; }
  [[nodiscard]] Fleet& fleet() { return *fleet_; }

 private:
  TinyProblem problem_;
  SparseFleet fleet_;
  StepNumber reached_;
};

// Claim: in a week of leaving and returning no step is lost, whoever leads. Each day another number of
// machines comes. The coordinator may be killed and come back. In the end all leave: while somebody leads,
// because the run is stopped, while nobody leads, or in a change of the view that nobody ends.
TEST(FleetOutage, AWeekWithACoordinatorThatFails) {
  std::map<Leaving, int> days;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Rng rng(seed, Purpose::kTest);
    host::SimDisk disk;
    const TinyProblem::Options options{
        .features = 24, .labels = 40, .hidden = 64, .samples = 6, .steps = 100'000, .disk = &disk};
    StepNumber reached;
    for (std::uint64_t number = 0; number < 7; ++number) {
      const auto how = static_cast<Leaving>(rng.below(4));
      SCOPED_TRACE(::testing::Message()
                   << "seed " << seed << ", day " << number << ", way " << static_cast<int>(how));
      Day day(options, 1 + rng.below(4), seed * 10 + number);
      ASSERT_GE(day.start(), reached);
      day.run_for(0.2 * static_cast<double>(rng.uniform()));
      if (rng.below(2) == 0) day.restart_the_coordinator(0.5 + 3 * static_cast<double>(rng.uniform()));
      day.leave(how, rng);
      ASSERT_TRUE(day.all_gone()) << day.fleet().log();
      ASSERT_EQ(day.fleet().failure(), std::nullopt) << *day.fleet().failure();
      reached = day.reached();
      ++days[how];
    }
    EXPECT_GE(TinyProblem(options).start(), reached) << "seed " << seed;
  }
  for (const auto& [how, count] : days) EXPECT_GT(count, 4) << static_cast<int>(how);
  EXPECT_EQ(days.size(), 4U);
}

// Claim: while nobody leads, members that are told to go, at once or one after the other, save the same step.
// Those that are not told yet save with them.
TEST(FleetOutage, LeaveWithoutACoordinator) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    host::SimDisk disk;
    const TinyProblem::Options options{.steps = 10000, .disk = &disk};
    const TinyProblem problem(options);
    const std::size_t members = 2 + seed % 4;
    SparseFleet fleet(problem, {.first_members = members, .seed = seed});
    while (!fleet.step() || *fleet.step() < StepNumber(20)) fleet->run_for(0.01);
    fleet->kill_coordinator_for("c1", from_seconds(3600));
    fleet->run_for(0.001 * static_cast<double>(seed));
    StepNumber reached;
    for (std::size_t i = 1; i <= members; ++i) {
      fleet->member("m" + std::to_string(i)).save_and_leave("it was told to");
      fleet->run_for(seed % 2 == 0 ? 20 : 0.001);
      reached = std::max(reached, fleet.step().value_or(StepNumber()));
      if (seed % 2 != 0 || i == members) continue;
      EXPECT_TRUE(fleet->member("m" + std::to_string(i)).done());
      EXPECT_FALSE(fleet->member("m" + std::to_string(i + 1)).done());
    }
    fleet->run_for(20);
    for (const auto& [machine, member] : fleet->members()) EXPECT_TRUE(member->done()) << machine;
    const StepNumber start = TinyProblem(options).start();
    EXPECT_GE(start, StepNumber(20));
    EXPECT_GE(start, reached);
  }
}

// Claim: while nobody leads, one of several members that is told to go waits for nobody who stays: the others
// tell it at once that they have saved, too. They save the same step, and leave as quickly later.
TEST(FleetOutage, OneGoesWhileTheOthersStay) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    host::SimDisk disk;
    const TinyProblem::Options options{.steps = 10000, .disk = &disk};
    const TinyProblem problem(options);
    SparseFleet fleet(problem, {.first_members = 4, .seed = seed});
    while (!fleet.step() || *fleet.step() < StepNumber(20)) fleet->run_for(0.01);
    fleet->kill_coordinator_for("c1", from_seconds(3600));
    fleet->run_for(11);
    for (int i = 1; i <= 4; ++i) {
      const std::string machine = "m" + std::to_string(i);
      fleet->member(machine).save_and_leave("it was told to");
      fleet->run_for(1);
      EXPECT_TRUE(fleet->member(machine).done()) << machine;
      fleet->run_for(seed % 2 == 0 ? 40 : 0);
      if (i == 4) break;
      EXPECT_FALSE(fleet->member("m" + std::to_string(i + 1)).done());
      EXPECT_EQ(fleet.step(), fleet.engine("m4").step());
    }
    EXPECT_GE(TinyProblem(options).start(), StepNumber(20));
  }
}

// Claim: members that have halted with one that left go on, once somebody leads. What it held is made good of
// copies.
TEST(FleetOutage, WhoHaltsWithAnotherGoesOn) {
  host::SimDisk disk;
  const TinyProblem problem({.steps = 10000, .disk = &disk});
  SparseFleet fleet(problem, {.first_members = 3});
  while (!fleet.step() || *fleet.step() < StepNumber(40)) fleet->run_for(0.01);
  fleet->kill_coordinator_for("c1", from_seconds(60));
  fleet->run_for(1);
  fleet->member("m1").save_and_leave("it was told to");
  fleet->run_for(20);
  EXPECT_TRUE(fleet->member("m1").done());
  const auto halted = fleet.engine("m2").step();
  fleet->run_for(10);
  EXPECT_EQ(fleet.engine("m2").step(), halted);
  fleet->run_for(60);
  EXPECT_EQ(fleet->failure(), std::nullopt);
  EXPECT_FALSE(fleet->member("m2").done());
  EXPECT_GT(fleet.engine("m2").step(), halted);
}

// Claim: members that can take no step when they are told to go, as another one was killed, save what they
// hold before they leave: those that wait for it, and those that rest since somebody knows.
TEST(FleetOutage, MembersThatCannotStepSaveToo) {
  host::SimDisk disk;
  const TinyProblem::Options options{.steps = 10000, .disk = &disk};
  const TinyProblem problem(options);
  SparseFleet fleet(problem, {.first_members = 3});
  while (!fleet.step() || *fleet.step() < StepNumber(20)) fleet->run_for(0.01);
  fleet->kill_coordinator_for("c1", from_seconds(3600));
  fleet->kill("m1");
  fleet->run_for(5);
  std::map<std::string, StepNumber> held;
  for (const char* const machine : {"m2", "m3"}) {
    held[machine] = fleet.engine(machine).step().value();
    fleet->member(machine).save_and_leave("it was told to");
  }
  fleet->run_for(100);
  for (const auto& [machine, step] : held) {
    EXPECT_TRUE(fleet->member(machine).done()) << machine;
    const auto file =
        tensors::fleet_file_name({.step = step, .node = machine == "m2" ? NodeId(2) : NodeId(3)});
    EXPECT_TRUE(*disk.exists("/checkpoints/" + file))
        << file << " of " << ::testing::PrintToString(*disk.list("/checkpoints"));
  }
}

// Claim: a member that is told to go at any moment of a change of the view saves what it holds, also while
// the view is installed.
TEST(FleetOutage, ToldToGoWhileTheViewChanges) {
  std::map<std::string, int> met;
  for (int after = 0; after < 120; ++after) {
    SCOPED_TRACE(after);
    host::SimDisk disk;
    const TinyProblem problem({.steps = 10000, .disk = &disk});
    SparseFleet fleet(problem, {.first_members = 3,
                                .seed = static_cast<std::uint64_t>(after),
                                .longest_work = from_milliseconds(50)});
    while (!fleet.step() || *fleet.step() < StepNumber(20)) fleet->run_for(0.01);
    const Epoch epoch = fleet->durable().begun();
    const std::uint64_t recoveries = fleet.engine("m2").fleet_counters().recoveries;
    fleet.join();
    while (fleet->durable().begun() == epoch) fleet->run_for(0.001);
    fleet->run_for(0.005 * after);
    const bool installed = fleet->durable().installed() > epoch;
    const bool recovered = fleet.engine("m2").fleet_counters().recoveries > recoveries;
    ++met[recovered ? "recovered" : installed ? "installed" : "begun"];
    fleet->member("m2").save_and_leave("it was told to");
    for (int i = 0; i < 200 && !fleet->member("m2").done(); ++i) fleet->run_for(0.1);
    EXPECT_TRUE(fleet->member("m2").done());
    EXPECT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
    const StepNumber then = fleet.step().value();
    EXPECT_GE(then, StepNumber(20));
    for (int i = 0; i < 10 && fleet.step().value() <= then; ++i) fleet->run_for(1);
    EXPECT_GT(fleet.step().value(), then) << "the others go on";
    EXPECT_EQ(fleet->failure(), std::nullopt) << *fleet->failure();
  }
  for (const char* const moment : {"begun", "installed", "recovered"}) EXPECT_GE(met[moment], 5) << moment;
}

// Claim: no member leaves while the saved state does not outlive it yet, as when it is still on its way to
// the coordinator. A member that dies meanwhile delays the others for seconds only, and they save once more.
TEST(FleetOutage, StopsOnceWhatWasSavedLasts) {
  for (const bool one_dies : {false, true}) {
    host::SimDisk disk;
    bool lasts = false;
    const TinyProblem::Options options{.steps = 1000, .disk = &disk, .lasts = [&lasts] { return lasts; }};
    const TinyProblem problem(options);
    SparseFleet fleet(problem, {.first_members = 3});
    while (!fleet.step() || *fleet.step() < StepNumber(20)) fleet->run_for(0.01);
    fleet->stop("enough");
    fleet->run_for(3);
    const StepNumber saved = TinyProblem(options).start();
    EXPECT_GE(saved, StepNumber(20));
    for (const auto& [machine, member] : fleet->members()) EXPECT_FALSE(member->done()) << machine;
    if (one_dies) fleet->kill("m1");
    fleet->run_for(5);
    lasts = true;
    fleet->run_for(one_dies ? 12 : 1);
    for (const auto& [machine, member] : fleet->members()) {
      const bool dead = one_dies && machine == "m1";
      EXPECT_EQ(member->done(), !dead) << machine;
    }
    if (one_dies) {
      EXPECT_GT(TinyProblem(options).start(), saved);
    } else {
      EXPECT_EQ(TinyProblem(options).start(), saved);
    }
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
