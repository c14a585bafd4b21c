// SPDX-License-Identifier: Apache-2.0
//
// Members that end the open step before they rest (docs/protocols/membership.md, "A change that can wait"),
// as whole fleets.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulation/cluster_chaos.h"

namespace gossamer::simulation {
namespace {

using Steps = CountingWorkload::Steps;

ChaosOptions ends_steps(std::uint64_t seed, std::vector<FaultKind> kinds = {}) {
  return {.seed = seed,
          .view_change = cluster::ViewChange::kFrozen,
          .steps = Steps::kEnd,
          .kinds = std::move(kinds)};
}

// Members that come and go in order, by the seed.
ChaosOptions in_order(std::uint64_t seed, Steps steps) {
  ChaosOptions options = ends_steps(seed);
  options.steps = steps;
  options.store = StoreKind::kFile;
  options.members = 5;
  options.freeze_time = from_seconds(30);
  options.memory = 1;
  options.hidden = 0;
  const double shift = 0.031 * static_cast<double>(seed);
  for (const double at : {8.0, 13.0, 18.0})
    options.script.push_back({.kind = FaultKind::kJoin, .at = {from_seconds(at + shift).ns}, .lasts = {}});
  for (const double at : {23.0, 28.0}) {
    options.script.push_back({.kind = FaultKind::kDrain,
                              .at = {from_seconds(at + 2 * shift).ns},
                              .lasts = {},
                              .member = static_cast<std::uint64_t>(at)});
  }
  return options;
}

// Claim: members that join, drain and leave cut no step short: all that have begun one end it. Members that
// stop at once lose some.
TEST(OpenStepsOfFleets, ChangesInOrderCutNoStepShort) {
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const ChaosReport report = run_cluster_chaos(in_order(seed, Steps::kEnd));
    EXPECT_EQ(report.violation, std::nullopt) << "seed " << seed << ": " << *report.violation;
    EXPECT_EQ(report.cut_short, 0U) << "seed " << seed;
    EXPECT_GT(report.steps_committed, 50U) << "seed " << seed;
    lost += run_cluster_chaos(in_order(seed, Steps::kStop)).cut_short;
  }
  EXPECT_GT(lost, 20U);
}

// Claim: a fleet gets back to work within seconds, though a member dies, hangs or loses a link while others
// wait for the end of a step with it.
TEST(OpenStepsOfFleets, TroubleWhileAChangeWaits) {
  for (const FaultKind kind :
       {FaultKind::kKill, FaultKind::kReset, FaultKind::kPause, FaultKind::kPowerOff, FaultKind::kLeave}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      ChaosOptions options = in_order(seed, Steps::kEnd);
      for (const double after : {0.02, 0.2, 0.45}) {
        const std::uint64_t which = seed + static_cast<std::uint64_t>(100 * after);
        options.script.push_back({.kind = kind,
                                  .at = options.script[which % 3].at + from_seconds(after),
                                  .lasts = from_seconds(0.7),
                                  .member = which,
                                  .other = which + 1});
      }
      const ChaosReport report = run_cluster_chaos(options);
      EXPECT_EQ(report.violation, std::nullopt)
          << name(kind) << ", seed " << seed << ": " << *report.violation;
    }
  }
}

// Claim: the invariants hold under all faults with members that wait, too.
TEST(OpenStepsOfFleets, SeedsHold) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const ChaosReport report = run_cluster_chaos(ends_steps(seed));
    EXPECT_EQ(report.violation, std::nullopt) << "seed " << seed << ": " << *report.violation;
  }
}

// Claim: one seed is one history here, too, and another one than with members that stop.
TEST(OpenStepsOfFleets, OneSeedIsOneHistory) {
  ChaosOptions stops = ends_steps(3);
  stops.steps = Steps::kStop;
  const ChaosReport one = run_cluster_chaos(ends_steps(3));
  EXPECT_EQ(one.state_hash, run_cluster_chaos(ends_steps(3)).state_hash);
  EXPECT_NE(one.frames_hash, run_cluster_chaos(stops).frames_hash);
}

}  // namespace
}  // namespace gossamer::simulation
