// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <memory>

#include "commands/simulate/cluster_chaos_keys.h"
#include "host/posix/compute.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using ::testing::HasSubstr;
using ::testing::Not;
using Fold = SimulationFigure::Fold;

SimulateResult simulate_on(int workers, const SimulateRequest& request) {
  SimMachine machine;
  auto compute = host::PosixCompute::create(workers);
  CHECK(compute.ok());
  const run::NodeHost host{.disk = machine.disk,
                           .clock = machine.clock,
                           .compute = **compute,
                           .kernels = kernels::kernels_for(kernels::best_isa()),
                           .console = machine.console};
  return simulate(host, request);
}

// A report that is easy to foresee. Every seventh seed breaks.
SeedReport foreseen(std::uint64_t seed) {
  SeedReport report{.violation = std::nullopt,
                    .state_hash = seed * seed,
                    .virtual_seconds = 0.5,
                    .figures = {{"seeds", static_cast<double>(seed)},
                                {"rest", static_cast<double>(seed % 10), Fold::kMost}},
                    .probes = {{"even", "the seed was even", 1 - seed % 2}, {"never", "never", 0}}};
  if (seed % 7 == 0) report.violation = "it can be divided by seven";
  return report;
}

SimulateRequest foreseen_request(std::uint64_t seeds) {
  return {.name = "fake",
          .words = {"a=1"},
          .run_seed = [](std::uint64_t seed, const SimulationTrace&) { return foreseen(seed); },
          .first_seed = 1,
          .seeds = seeds};
}

// Sums, maxima, counts and violations are those of all seeds.
TEST(Simulate, FoldsAllSeeds) {
  const SimulateResult result = simulate_on(1, foreseen_request(100));
  EXPECT_EQ(result.seeds, 100U);
  EXPECT_FALSE(result.stopped);
  EXPECT_EQ(result.violations, 14U);
  ASSERT_EQ(result.first_violations.size(), kShownViolations);
  EXPECT_EQ(result.first_violations[0].seed, 7U);
  EXPECT_EQ(result.first_violations[9].seed, 70U);
  EXPECT_EQ(result.figures[0].value, 5050);
  EXPECT_EQ(result.figures[1].value, 9);
  EXPECT_EQ(result.most_at[1], 9U);
  EXPECT_EQ(result.probes[0].count, 50U);
  EXPECT_EQ(result.virtual_seconds, 50);
}

// The result depends neither on the number of workers nor on which of them is done first.
TEST(Simulate, WorkersDoNotMatter) {
  const SimulateRequest request = foreseen_request(500);
  const SimulateResult one = simulate_on(1, request);
  for (const int workers : {2, 3, 8}) {
    const SimulateResult many = simulate_on(workers, request);
    EXPECT_EQ(to_json(request, many), to_json(request, one)) << workers << " workers";
    EXPECT_EQ(many.most_at, one.most_at) << workers << " workers";
  }
}

// The hash is that of the seeds in their order. Another order, or one seed more or less, gives another hash.
TEST(Simulate, HashIsOfSeedsInOrder) {
  SimulateRequest request = foreseen_request(10);
  const std::uint64_t hash = simulate_on(1, request).state_hash;
  request.run_seed = [](std::uint64_t seed, const SimulationTrace&) { return foreseen(11 - seed); };
  EXPECT_NE(simulate_on(1, request).state_hash, hash);
  EXPECT_NE(simulate_on(1, foreseen_request(9)).state_hash, hash);
  EXPECT_NE(simulate_on(1, foreseen_request(11)).state_hash, hash);
}

// A seed with two histories is a violation. It is always found among the first seeds, and among all if asked.
TEST(Simulate, TwoHistoriesAreFound) {
  std::atomic<std::uint64_t> runs = 0;
  SimulateRequest request = foreseen_request(6);
  request.run_seed = [&](std::uint64_t seed, const SimulationTrace&) {
    SeedReport report = foreseen(seed);
    if (++runs; seed == 5) report.state_hash = runs;
    return report;
  };
  EXPECT_EQ(simulate_on(1, request).violations, 0U);
  EXPECT_EQ(runs, 6 + kFirstSeedsTwice);
  request.twice = Twice::kEverySeed;
  const SimulateResult result = simulate_on(1, request);
  ASSERT_EQ(result.violations, 1U);
  EXPECT_EQ(result.first_violations[0].seed, 5U);
  EXPECT_THAT(result.first_violations[0].what, HasSubstr("two histories"));
  request.twice = Twice::kFirstSeeds;
  request.first_seed = 5;
  EXPECT_EQ(simulate_on(1, request).violations, 2U);  // 5, and 7 as always
}

// A stop takes effect between two seeds. The result then has a whole number of first seeds.
TEST(Simulate, StopsBetweenSeeds) {
  std::atomic<int> asked = 0;
  SimulateRequest request = foreseen_request(1000);
  request.stop = [&] { return ++asked > 20; };
  for (const int workers : {1, 4}) {
    asked = 0;
    const SimulateResult result = simulate_on(workers, request);
    EXPECT_TRUE(result.stopped);
    EXPECT_LE(result.seeds, 20U);
    EXPECT_EQ(result.state_hash, simulate_on(1, foreseen_request(result.seeds)).state_hash);
  }
}

// The console names what broke as it comes, with the command that runs it again.
TEST(Simulate, SaysWhatBroke) {
  SimMachine machine;
  const SimulateRequest request = foreseen_request(20);
  const SimulateResult result = simulate(machine.host(), request);
  EXPECT_TRUE(machine.said("seed 7: it can be divided by seven"));
  EXPECT_TRUE(machine.said("gossamer simulate fake a=1 --seed 14 --trace"));
  const auto error = judge(request, result);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->kind, ErrorKind::kFailed);
  EXPECT_EQ(error->what, "2 of 20 seeds broke, 14 too");
  EXPECT_EQ(error->fix, "gossamer simulate fake a=1 --seed 7 --trace");
}

// Words that a shell would read otherwise are quoted.
TEST(Simulate, ReplayIsFitForAShell) {
  SimulateRequest request = foreseen_request(1);
  request.name = "my files/it's.toml";
  request.words = {"kinds=kill,cut", "store=$HOME"};
  EXPECT_EQ(replay_command(request, 3),
            "gossamer simulate 'my files/it'\\''s.toml' kinds=kill,cut 'store=$HOME' --seed 3 --trace");
}

// A rare branch that no seed reached fails the farm, but only for a preset as it is, and for many seeds.
TEST(Simulate, UnreachedProbesFail) {
  SimulateRequest request = foreseen_request(kProbeSeeds);
  request.run_seed = [](std::uint64_t, const SimulationTrace&) { return foreseen(2); };
  const SimulateResult many = simulate_on(2, request);
  EXPECT_FALSE(judge(request, many).has_value());
  request.needs_probes = true;
  const auto error = judge(request, many);
  ASSERT_TRUE(error.has_value());
  EXPECT_THAT(error->got, HasSubstr("never"));
  EXPECT_THAT(error->got, Not(HasSubstr("even")));
  request.seeds = kProbeSeeds - 1;
  EXPECT_FALSE(judge(request, simulate_on(2, request)).has_value());
}

// The JSON object has exactly these fields, on which scripts rely.
TEST(Simulate, JsonHasTheFieldsOfTheContract) {
  const SimulateRequest request = foreseen_request(6);
  const auto json = nlohmann::json::parse(to_json(request, simulate_on(1, request)));
  EXPECT_EQ(json.size(), 7U);
  EXPECT_EQ(json["scenario"], "fake");
  EXPECT_EQ(json["seeds"], 6);
  EXPECT_EQ(json["violations"], 0);
  EXPECT_TRUE(json["first_bad_seed"].is_null());
  EXPECT_EQ(json["virtual_seconds"], 3.0);
  EXPECT_TRUE(json["wall_seconds"].is_number());
  EXPECT_EQ(json["figures"]["seeds"], 21);
  EXPECT_EQ(json["figures"]["state_hash"].get<std::string>().size(), 16U);
  EXPECT_EQ(json["figures"]["probes_unreached"], nlohmann::json::array({"never"}));
}

// Real seeds give the same side by side as one after another, because runs share nothing.
TEST(Simulate, RealSeedsShareNothing) {
  const auto run_seed = prepare_cluster_chaos({.preset = "cluster-chaos", .settings = {}, .faults = {}});
  ASSERT_TRUE(run_seed.ok());
  SimulateRequest request = foreseen_request(4);
  request.run_seed = *run_seed;
  const SimulateResult one = simulate_on(1, request);
  EXPECT_EQ(one.violations, 0U);
  EXPECT_EQ(to_json(request, simulate_on(4, request)), to_json(request, one));
}

}  // namespace
}  // namespace gossamer::commands
