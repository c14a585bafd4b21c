// SPDX-License-Identifier: Apache-2.0
#include "simulation/cluster_chaos.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer::simulation {
namespace {

using cluster::Defect;
using cluster::DefectName;

// Claim: a fleet without faults forms and works, and no member begins twice, with either store.
TEST(ClusterChaos, QuietFleetCommitsSteps) {
  for (const StoreKind store : {StoreKind::kFile, StoreKind::kCluster}) {
    const ChaosOptions options{.store = store, .faults = 0};
    const ChaosReport report = run_cluster_chaos(options);
    EXPECT_EQ(report.violation, std::nullopt) << *report.violation;
    EXPECT_EQ(report.lives, options.members);
    EXPECT_GT(report.steps_committed, 50u);
  }
}

// Claim: one seed is one history, to the last bit of everything seen.
TEST(ClusterChaos, OneSeedIsOneHistory) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const ChaosReport first = run_cluster_chaos({.seed = seed});
    const ChaosReport second = run_cluster_chaos({.seed = seed});
    EXPECT_EQ(first.state_hash, second.state_hash) << "seed " << seed;
    EXPECT_EQ(first.events, second.events) << "seed " << seed;
    EXPECT_NE(first.state_hash, run_cluster_chaos({.seed = seed + 100}).state_hash) << "seed " << seed;
  }
}

// Counts how often a coordinator begins to lead, until so many seconds.
auto counts_leaders(std::size_t& led, double until = 3600) {
  return [&led, until](double now, const std::string&, const std::string& what) {
    if (now < until && what.starts_with("leads, generation")) ++led;
  };
}

// Claim: a coordinator that is killed at any moment and comes back to its file within seconds costs no member
// its life. Members go on without it, and find it again.
TEST(ClusterChaos, KilledCoordinatorCostsNoMember) {
  std::size_t led = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    ChaosOptions options{.seed = seed, .store = StoreKind::kFile};
    const double away = 0.05 + 0.09 * static_cast<double>(seed);
    const double again = 16.0 + away + 0.1 + 0.01 * static_cast<double>(seed);  // it has just come back
    for (const double at : {6.0, 11.0 + 0.037 * static_cast<double>(seed), 16.0, again}) {
      options.script.push_back(
          {.kind = FaultKind::kKillCoordinator, .at = {from_seconds(at).ns}, .lasts = from_seconds(away)});
    }
    options.trace = counts_leaders(led);
    const ChaosReport report = run_cluster_chaos(options);
    EXPECT_EQ(report.violation, std::nullopt) << "seed " << seed << ": " << *report.violation;
    EXPECT_EQ(report.lives, options.members) << "seed " << seed;
  }
  // A fault finds no leader where the store has taken its longest 0.6 s.
  EXPECT_GT(led, 140U) << "of 150";
}

// Claim: a leader that is stopped for 30 s and goes on (SIGSTOP, SIGCONT) finds that another leads, and harms
// nothing. Members lose neither a step nor a life.
TEST(ClusterChaos, StoppedLeaderIsReplaced) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    ChaosOptions options{.seed = seed, .store = StoreKind::kCluster};
    std::size_t led = 0;
    options.trace = counts_leaders(led, 36);
    options.script.push_back({.kind = FaultKind::kPauseCoordinator,
                              .at = {from_seconds(6 + 0.013 * static_cast<double>(seed)).ns},
                              .lasts = from_seconds(30)});
    const ChaosReport report = run_cluster_chaos(options);
    EXPECT_EQ(report.violation, std::nullopt) << "seed " << seed << ": " << *report.violation;
    EXPECT_EQ(report.lives, options.members) << "seed " << seed;
    EXPECT_EQ(led, 2U) << "seed " << seed;
  }
}

// Claim: any number of eight members killed in the same instant are one rest and one placement. The others
// are told two views: to rest for the first, and without the dead in the second. It takes at most 0.4 s if
// the disk does not hiccup. That is 0.25 s until they are declared dead, two writes of the store and two
// round trips of 20 ms. (A disk that hiccups takes up to 0.6 s more for each write.)
TEST(ClusterChaos, KilledTogether) {
  for (const std::size_t killed : {1U, 3U, 7U}) {
    std::vector<double> seconds;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      ChaosOptions options{.seed = seed, .members = 8, .things = 16, .store = StoreKind::kFile};
      const Instant at{from_seconds(10).ns};
      for (std::size_t i = 0; i < killed; ++i) {
        // Index 0 is another member each time, as the others move up.
        options.script.push_back(
            {.kind = FaultKind::kKill, .at = at, .lasts = from_seconds(30), .member = 0});
      }
      std::set<std::string> changes;
      std::set<std::string> rests;
      std::set<std::string> installs;
      std::optional<double> first;
      options.trace = [&](double now, const std::string& who, const std::string& what) {
        if (now < 10 || now > 35 || who[0] != 'm') return;
        if (what.starts_with("has the view")) changes.insert(what);
        if (what.ends_with(", freezes")) rests.insert(what);
        if (!what.starts_with("installs")) return;
        installs.insert(what);
        if (!first) first = now - 10;
      };
      const ChaosReport report = run_cluster_chaos(options);
      EXPECT_EQ(report.violation, std::nullopt) << "seed " << seed << ": " << *report.violation;
      EXPECT_EQ(changes.size(), 2u) << killed << " killed, seed " << seed;
      EXPECT_EQ(rests.size(), 1u) << killed << " killed, seed " << seed;
      EXPECT_EQ(installs.size(), 1u) << killed << " killed, seed " << seed;
      ASSERT_TRUE(first.has_value()) << killed << " killed, seed " << seed;
      seconds.push_back(*first);
    }
    std::ranges::sort(seconds);
    EXPECT_LT(seconds[seconds.size() / 4], 0.4) << killed << " killed";
  }
}

// Claim: members lose neither a step nor a life while coordinators are in trouble for up to 8 s each.
// Coordinators are killed, stopped, cut off from every member or from their store. Members need none of them
// for a while.
TEST(ClusterChaos, CoordinatorsInTroubleCostNoMember) {
  const std::vector<FaultKind> kinds{FaultKind::kKillCoordinator, FaultKind::kPauseCoordinator,
                                     FaultKind::kCutCoordinator, FaultKind::kStoreFails,
                                     FaultKind::kStoreAway};
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    ChaosOptions options{.seed = seed};
    options.script = draw_faults(seed, kinds, 5, {from_seconds(6).ns}, {from_seconds(90).ns});
    for (std::size_t i = 0; i < options.script.size(); ++i) {
      Fault& fault = options.script[i];
      fault.lasts.ns = std::min(fault.lasts.ns, from_seconds(8).ns);
      // One fault after the other, as two in a row may last longer than members are waited for.
      fault.at = Instant{from_seconds(6 + 22 * static_cast<double>(i)).ns};
    }
    const ChaosReport report = run_cluster_chaos(options);
    EXPECT_EQ(report.violation, std::nullopt) << "seed " << seed << ": " << *report.violation;
    EXPECT_EQ(report.lives, options.members) << "seed " << seed;
  }
}

// Claim: the invariants hold and the fleet gets back to work, whatever happens. Even these few seeds reach
// the branches that most of the protocol is about. (More seeds: tests/simulation.)
TEST(ClusterChaos, SeedsHold) {
  using Probe = cluster::ControlProbe;
  std::map<Probe, std::uint64_t> reached;
  const std::vector<Probe> expected{Probe::kBeginAgain, Probe::kChangeBegunAnew, Probe::kChangeWaits,
                                    Probe::kSilent,     Probe::kCommitRepeated,  Probe::kRequestRepeated,
                                    Probe::kNewLife};
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const ChaosReport report = run_cluster_chaos({.seed = seed});
    EXPECT_EQ(report.violation, std::nullopt) << "seed " << seed << ": " << *report.violation;
    for (const Probe probe : expected) reached[probe] += report.probes.control.count(probe);
  }
  for (const Probe probe : expected) {
    const auto name = std::ranges::find(cluster::kControlProbes, probe, &ProbeName<Probe>::probe);
    EXPECT_GT(reached[probe], 0u) << name->name;
  }
}

// Claim: seeds that once broke something hold, whatever their histories are by now.
TEST(ClusterChaos, SeedsThatBrokeHold) {
  for (const std::uint64_t seed :
       {2043U, 2097U, 5987U, 6286U, 6431U, 27273U, 50277U, 204374U, 233325U, 238954U, 245926U}) {
    const ChaosReport report = run_cluster_chaos({.seed = seed});
    EXPECT_EQ(report.violation, std::nullopt) << "seed " << seed << ": " << *report.violation;
  }
}

// Claim: the tables of probes list their enumerations in order, each with a name of its own.
TEST(Probes, TablesAreComplete) {
  std::set<std::string_view> names;
  const auto look = [&names](const auto& table) {
    for (std::size_t i = 0; i < table.size(); ++i) {
      EXPECT_EQ(static_cast<std::size_t>(table[i].probe), i) << table[i].name;
      EXPECT_TRUE(names.insert(table[i].name).second) << table[i].name;
    }
  };
  look(cluster::kControlProbes);
  look(net::kLinkProbes);
}

// Claim: each expectation is judged. The values of a quiet run pass, and slightly stricter ones fail.
TEST(ClusterChaos, ExpectationsAreJudged) {
  const ChaosOptions quiet{
      .store = StoreKind::kFile,
      .script = {{.kind = FaultKind::kReset, .at = {from_seconds(6).ns}, .lasts = from_seconds(4)}},
      .calm = from_seconds(20)};
  const ChaosReport report = run_cluster_chaos(quiet);
  ASSERT_EQ(report.violation, std::nullopt);
  const ChaosExpectations met{.most_lives = report.lives,
                              .least_steps = report.steps_committed,
                              .least_steps_under_faults = report.steps_under_faults,
                              .recovered_within = *report.recovery,
                              .longest_standstill = report.standstill};
  const auto violation_of = [&quiet](const ChaosExpectations& expect) {
    ChaosOptions options = quiet;
    options.expect = expect;
    return run_cluster_chaos(options).violation;
  };
  EXPECT_EQ(violation_of(met), std::nullopt);
  std::vector<ChaosExpectations> missed(5, met);
  --missed[0].most_lives;
  ++missed[1].least_steps;
  ++missed[2].least_steps_under_faults;
  --missed[3].recovered_within.ns;
  --missed[4].longest_standstill.ns;
  for (std::size_t i = 0; i < missed.size(); ++i)
    EXPECT_NE(violation_of(missed[i]), std::nullopt) << "expectation " << i;
}

class SeededDefect : public ::testing::TestWithParam<DefectName> {};

// Claim: the invariants find each defect within 200 seeds.
TEST_P(SeededDefect, IsFound) {
  std::uint64_t seed = 1;
  while (seed <= 200 && !run_cluster_chaos({.seed = seed, .defect = GetParam().defect}).violation) ++seed;
  EXPECT_LE(seed, 200u) << GetParam().sentence;
  RecordProperty("seed", std::to_string(seed));
}

std::string letters_of(const ::testing::TestParamInfo<DefectName>& info) {
  std::string letters(info.param.name);
  std::erase(letters, '-');
  return letters;
}

INSTANTIATE_TEST_SUITE_P(All, SeededDefect, ::testing::ValuesIn(cluster::kDefects), letters_of);

}  // namespace
}  // namespace gossamer::simulation
