// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/simulation_keys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/simulate/cluster_chaos_keys.h"
#include "commands/simulate/scenario_file.h"
#include "commands/simulate/sparse_chaos_keys.h"
#include "commands/simulate/sparse_steps_keys.h"

namespace gossamer::commands {
namespace {

using ::testing::HasSubstr;

Scenario scenario(const std::vector<std::string>& words) {
  Scenario scenario{.preset = "", .settings = {}, .faults = {}};
  for (const std::string& word : words) scenario.settings.push_back(*parse_setting(word));
  return scenario;
}

// Claim: a scenario file of an older program is read where its removed key has the value that all runs have
// now. Another value, and a word of a command line, is refused.
TEST(SimulationKeys, ReadsOldScenarioFiles) {
  const auto read = [](std::string_view value) {
    const auto file =
        parse_scenario(fmt::format("preset = \"sparse-chaos\"\nmicrobatches = {}\n", value), "s.toml");
    return sparse_chaos_options(*file);
  };
  EXPECT_TRUE(read("\"1\"").ok());
  EXPECT_TRUE(read("1").ok());
  EXPECT_THAT(read("2").error().message(), HasSubstr("s.toml:2:16: the option 'microbatches' was removed"));
  EXPECT_FALSE(sparse_chaos_options(scenario({"microbatches=1"})).ok());
}

// Words of the sparse engine's simulation set what they name, and `drawn` takes it back.
TEST(SimulationKeys, WordsSetOptions) {
  const std::vector<std::string> words = {"store=cluster", "driver=batches",  "dense=3",
                                          "staleness=1",   "exchange=dslide", "lsh=own",
                                          "evaluation=no", "codec=int8",      "power_off=yes"};
  const auto set = sparse_chaos_options(scenario(words));
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(set->store, simulation::StoreKind::kCluster);
  EXPECT_EQ(set->driver, simulation::Driver::kBatches);
  EXPECT_EQ(set->dense, 3U);
  EXPECT_EQ(set->staleness, 1U);
  EXPECT_EQ(set->exchange, sparse_engine::ExchangeKind::kDslide);
  EXPECT_EQ(set->lsh, simulation::HashTables::kOwn);
  EXPECT_EQ(set->evaluation, false);
  EXPECT_EQ(set->codec, net::Codec::kInt8);
  EXPECT_EQ(set->power_off, true);
  for (const std::string& word : words) {
    const std::string back = word.substr(0, word.find('=')) + "=drawn";
    EXPECT_TRUE(sparse_chaos_options(scenario({word, back})).ok()) << back;
  }
  EXPECT_EQ(sparse_chaos_options(scenario({"dense=3", "dense=drawn"}))->dense, std::nullopt);
}

// Times are told in the unit of the key's name. A value that faults draw is only set if it is told.
TEST(SimulationKeys, NumbersSetOptions) {
  const auto cluster =
      cluster_chaos_options(scenario({"trouble_s=2.5", "delay_ms=0.5", "hidden=0.25", "freeze_s=9"}));
  ASSERT_TRUE(cluster.ok()) << cluster.error().message();
  EXPECT_EQ(cluster->trouble, from_seconds(2.5));
  EXPECT_EQ(cluster->path.delay, from_milliseconds(0.5));
  EXPECT_EQ(cluster->hidden, 0.25);
  EXPECT_EQ(cluster->freeze_time, from_seconds(9));
  EXPECT_EQ(cluster->memory, std::nullopt);
  const auto steps = sparse_steps_options(scenario({"rtt_ms=7", "codec=f32"}));
  ASSERT_TRUE(steps.ok()) << steps.error().message();
  EXPECT_EQ(steps->rtt, from_milliseconds(7));
  EXPECT_EQ(steps->codec, net::Codec::kF32);
}

// One protection at a time is switched off, also one of the cluster's.
TEST(SimulationKeys, BreakNamesOneProtection) {
  const auto freeze = sparse_chaos_options(scenario({"break=apply-twice", "break=no-freeze"}));
  EXPECT_EQ(freeze->defect, sparse_engine::FleetDefect::kNone);
  EXPECT_EQ(freeze->cluster_defect, cluster::Defect::kNoFreeze);
  const auto twice = sparse_chaos_options(scenario({"break=no-freeze", "break=apply-twice"}));
  EXPECT_EQ(twice->defect, sparse_engine::FleetDefect::kApplyTwice);
  EXPECT_EQ(twice->cluster_defect, cluster::Defect::kNone);
  EXPECT_EQ(cluster_chaos_options(scenario({"break=no-guard", "break=none"}))->defect,
            cluster::Defect::kNone);
}

// Help has a line for each key: words without a range, numbers with one.
TEST(SimulationKeys, HelpHasALineForEachKey) {
  const std::string help = cluster_chaos_keys_help();
  EXPECT_THAT(help,
              HasSubstr("  store=drawn                file: one coordinator; cluster: a standby takes over; "
                        "drawn: either\n"));
  EXPECT_THAT(help,
              HasSubstr("  kinds=all                  of the faults that are drawn, separated by commas\n"
                        "  break=none                 a protection to switch off; break=list names them\n"
                        "  members=4                  of the fleet, 1..64\n"));
  EXPECT_THAT(help,
              HasSubstr("  freeze_s=30                members have for coming to rest; drawn where faults "
                        "are, 1..3600\n"));
  EXPECT_THAT(help, HasSubstr("  delay_ms=10                of every path, one way, 0..1000\n"));
  EXPECT_THAT(help,
              HasSubstr("  expect.max_lives=1000000   members begin at most so often in all, 0..1000000\n"));
  EXPECT_THAT(sparse_steps_keys_help(),
              testing::StartsWith("  codec=bf16                 of what is exchanged"));
}

// What a key refuses says what it takes, and where all keys are listed.
TEST(SimulationKeys, RefuseTheRest) {
  EXPECT_EQ(
      sparse_chaos_options(scenario({"evaluation=maybe"})).error().message(),
      "cannot set evaluation: got 'maybe'; expected yes, no or drawn; 'gossamer simulate --help' lists all "
      "options");
  EXPECT_EQ(sparse_chaos_options(scenario({"dense=9"})).error().expected, "0, 1, 2, 3, 4 or drawn");
  EXPECT_EQ(cluster_chaos_options(scenario({"hidden=auto"})).error().expected, "a number 0..1");
  EXPECT_THAT(cluster_chaos_options(scenario({"break=no-gard"})).error().expected,
              HasSubstr("a protection such as 'no-guard' (all: no-fencing, "));
  EXPECT_THAT(sparse_chaos_options(scenario({"kinds=lie"})).error().expected, HasSubstr("(all: kill, join"));
}

}  // namespace
}  // namespace gossamer::commands
