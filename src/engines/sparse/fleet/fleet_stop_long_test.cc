// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine told to end while a recovery takes long.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "engines/sparse/fleet/fleet_engine.h"
#include "host/sim/disk.h"
#include "simulation/sparse/sparse_fleet.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::sparse_engine {
namespace {

// A fleet in a recovery that takes almost three minutes, as a member has joined, and all lines are slow.
class SlowlyRecovering {
 public:
  explicit SlowlyRecovering(std::size_t members, double bytes_per_second = 1.5e5)
      : fleet_(problem_, {.first_members = members}) {
    while (!fleet_.step() || *fleet_.step() < StepNumber(80)) fleet_->run_for(0.01);
    const Epoch before = fleet_->durable().installed();
    recoveries_ = fleet_.engine("m1").fleet_counters().recoveries;
    fleet_.join();
    while (fleet_->durable().installed() == before) fleet_->run_for(0.001);
    for (const auto& [machine, member] : fleet_->members())
      fleet_->internet().set_rates(machine, {.up_bytes_per_second = bytes_per_second});
  }
  [[nodiscard]] SparseFleet& fleet() { return fleet_; }
  [[nodiscard]] bool recovered() { return fleet_.engine("m1").fleet_counters().recoveries > recoveries_; }
  [[nodiscard]] std::set<std::string> left() {
    std::set<std::string> left;
    for (const auto& [machine, member] : fleet_->members()) {
      if (member->done()) left.insert(machine);
    }
    return left;
  }
  // The step from which the run goes on.
  [[nodiscard]] StepNumber resumes_at() const { return TinyProblem(options_).start(); }

 private:
  host::SimDisk disk_;
  const TinyProblem::Options options_{
      .hidden = 256, .samples = 256, .steps = 10000, .snapshot_every = 1000, .disk = &disk_};
  const TinyProblem problem_{options_};
  SparseFleet fleet_;
  std::uint64_t recoveries_ = 0;
};

// Claim: a run that is told to end during a long recovery waits for it, also where a member gives and gets
// nothing meanwhile. All save the same step.
TEST(FleetStop, DuringALongRecovery) {
  SlowlyRecovering run(2);
  run.fleet()->stop("enough");
  run.fleet()->run_for(120);
  EXPECT_FALSE(run.recovered()) << "it is no long recovery";
  EXPECT_TRUE(run.left().empty()) << run.fleet()->log();
  run.fleet()->run_for(200);
  EXPECT_EQ(run.left().size(), 3U) << run.fleet()->log();
  EXPECT_GE(run.resumes_at(), StepNumber(80));
  EXPECT_EQ(run.fleet()->failure(), std::nullopt) << *run.fleet()->failure();
}

// Claim: while nobody leads, too, members that are told to leave wait as long as they get or give bytes.
TEST(FleetStop, AllLeaveDuringALongRecovery) {
  SlowlyRecovering run(1);
  run.fleet()->run_for(1);
  run.fleet()->kill_coordinator_for("c1", from_seconds(3600));
  run.fleet()->run_for(11);
  for (const auto& [machine, member] : run.fleet()->members()) member->save_and_leave("it was told to");
  run.fleet()->run_for(120);
  EXPECT_FALSE(run.recovered()) << "it is no long recovery";
  EXPECT_TRUE(run.left().empty()) << run.fleet()->log();
  run.fleet()->run_for(200);
  EXPECT_EQ(run.left().size(), 2U) << run.fleet()->log();
  EXPECT_GE(run.resumes_at(), StepNumber(80));
}

// Claim: if that takes longer than seven minutes, they save what they hold before they end for want of a
// coordinator.
TEST(FleetStop, AllLeaveDuringTooLongARecovery) {
  SlowlyRecovering run(1, 4e4);
  run.fleet()->run_for(1);
  run.fleet()->kill_coordinator_for("c1", from_seconds(3600));
  run.fleet()->run_for(11);
  for (const auto& [machine, member] : run.fleet()->members()) member->save_and_leave("it was told to");
  run.fleet()->run_for(400);
  EXPECT_FALSE(run.recovered()) << "the recovery is not long enough";
  EXPECT_TRUE(run.left().empty()) << run.fleet()->log();
  run.fleet()->run_for(60);
  EXPECT_EQ(run.left().size(), 2U) << run.fleet()->log();
  EXPECT_GE(run.resumes_at(), StepNumber(80));
}

// Claim: if the coordinator dies in such a recovery, and a machine with it, the others do not wait for that
// one until the time is over.
TEST(FleetStop, TheCoordinatorDiesInALongRecovery) {
  SlowlyRecovering run(2);
  run.fleet()->stop("enough");
  run.fleet()->run_for(20);
  run.fleet()->kill_coordinator_for("c1", from_seconds(3600));
  for (const auto& [machine, member] : run.fleet()->members()) {
    if (machine != "m1") continue;
    run.fleet()->pause_for(machine, from_seconds(10000));
  }
  run.fleet()->run_for(340);
  EXPECT_EQ(run.left(), (std::set<std::string>{"m2", "m3"})) << run.fleet()->log();
}

// Claim: if an engine hangs in such a recovery, the others save what they hold before the time is over in
// which the coordinator lets them leave.
TEST(FleetStop, AnEngineHangsInALongRecovery) {
  SlowlyRecovering run(2);
  run.fleet()->stop("enough");
  run.fleet()->run_for(60);
  run.fleet()->member("m1").hang(from_seconds(10000));
  run.fleet()->run_for(300);
  EXPECT_TRUE(run.left().empty()) << run.fleet()->log();
  run.fleet()->run_for(120);
  EXPECT_EQ(run.left(), (std::set<std::string>{"m2", "m3"})) << run.fleet()->log();
}

// Claim: once such a recovery has ended, the others wait for an engine that hangs no longer than for a step.
TEST(FleetStop, AnEngineHangsAfterALongRecovery) {
  SlowlyRecovering run(2);
  run.fleet()->stop("enough");
  for (int i = 0; i < 3000 && !run.recovered(); ++i) run.fleet()->run_for(0.1);
  run.fleet()->member("m1").hang(from_seconds(10000));
  run.fleet()->run_for(60);
  EXPECT_EQ(run.left(), (std::set<std::string>{"m2", "m3"})) << run.fleet()->log();
}

}  // namespace
}  // namespace gossamer::sparse_engine
