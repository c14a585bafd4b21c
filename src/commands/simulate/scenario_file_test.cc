// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/scenario_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "commands/simulate/cluster_chaos_keys.h"

namespace gossamer::commands {
namespace {

using simulation::FaultKind;
using ::testing::HasSubstr;

// A file says everything that the command line can, and faults besides.
TEST(ScenarioFile, IsReadWhole) {
  const auto scenario = parse_scenario(
      "preset = \"cluster-chaos\"\n"
      "store = \"cluster\"\n"
      "certificates = \"yes\"\n"
      "members = 5\n"
      "clock_error = 0.01\n"
      "break = \"no-guard\"\n"
      "[[fault]]\nkind = \"pause-coordinator\"\nat_s = 6.5\nlasts_s = 30\n"
      "[[fault]]\nkind = \"cut\"\nat_s = 7\nmember = 2\nother = 3\n"
      "[expect]\nmax_lives = 6\nrecovered_within_s = 2.5\n",
      "s.toml");
  ASSERT_TRUE(scenario.ok()) << scenario.error().message();
  EXPECT_EQ(scenario->preset, "cluster-chaos");
  const auto options = cluster_chaos_options(*scenario);
  ASSERT_TRUE(options.ok()) << options.error().message();
  EXPECT_EQ(options->store, simulation::StoreKind::kCluster);
  EXPECT_EQ(options->identity, simulation::Identity::kCertified);
  EXPECT_EQ(options->members, 5U);
  EXPECT_EQ(options->clock_error, 0.01);
  EXPECT_EQ(options->defect, cluster::Defect::kNoGuard);
  EXPECT_EQ(options->expect.most_lives, 6U);
  EXPECT_EQ(options->expect.recovered_within, from_seconds(2.5));
  ASSERT_EQ(options->script.size(), 2U);
  EXPECT_EQ(options->script[0].kind, FaultKind::kPauseCoordinator);
  EXPECT_EQ(options->script[0].at, Instant{} + from_seconds(6.5));
  EXPECT_EQ(options->script[0].lasts, from_seconds(30));
  EXPECT_EQ(options->script[1].member, 2U);
  EXPECT_EQ(options->script[1].other, 3U);
}

// Kinds may be an array or a list of words. Words of the command line come later and win.
TEST(ScenarioFile, CommandLineWins) {
  auto scenario =
      parse_scenario("preset=\"cluster-chaos\"\nkinds=[\"kill\", \"cut\"]\nmembers=5\n", "s.toml");
  ASSERT_TRUE(scenario.ok());
  EXPECT_EQ(cluster_chaos_options(*scenario)->kinds, (std::vector{FaultKind::kKill, FaultKind::kCut}));
  for (const char* word : {"members=6", "kinds=join"}) scenario->settings.push_back(*parse_setting(word));
  EXPECT_EQ(cluster_chaos_options(*scenario)->kinds, std::vector{FaultKind::kJoin});
  EXPECT_EQ(cluster_chaos_options(*scenario)->members, 6U);
}

struct Wrong {
  const char* text;
  const char* where;
  const char* what;
  const char* expected;
};

class WrongScenario : public ::testing::TestWithParam<Wrong> {};

// Every error has its place, its key and what would have been right.
TEST_P(WrongScenario, HasPlaceAndRemedy) {
  const Wrong& wrong = GetParam();
  const auto scenario = parse_scenario(wrong.text, "s.toml");
  const Error error = scenario.ok() ? cluster_chaos_options(*scenario).error() : scenario.error();
  EXPECT_EQ(error.kind, ErrorKind::kUsage);
  EXPECT_EQ(error.where, wrong.where);
  EXPECT_THAT(error.what, HasSubstr(wrong.what));
  EXPECT_THAT(error.expected, HasSubstr(wrong.expected));
  EXPECT_NE(error.fix, "");
}

#define PRESET "preset = \"cluster-chaos\"\n"
INSTANTIATE_TEST_SUITE_P(
    All, WrongScenario,
    ::testing::Values(
        Wrong{"", "s.toml:1:1", "does not say what", "preset = \"cluster-chaos\""},
        Wrong{"preset = [", "s.toml:1:11", "as TOML", "[[fault]]"},
        Wrong{"preset = 3", "s.toml:1:10", "cannot set preset", "in quotes"},
        Wrong{"preset = \"cluster-caos\"", "s.toml:1:10", "no simulation 'cluster-caos'", "'cluster-chaos'"},
        Wrong{PRESET "membres = 4", "s.toml:2:11", "no option 'membres'", "'members'"},
        Wrong{PRESET "members = 65", "s.toml:2:11", "cannot set members", "1..64"},
        Wrong{PRESET "members = 4.5", "s.toml:2:11", "cannot set members", "an integer"},
        Wrong{PRESET "members = true", "s.toml:2:11", "cannot set members", "a number"},
        Wrong{PRESET "clock_error = \"x\"", "s.toml:2:15", "cannot set clock_error", "0..0.5"},
        Wrong{PRESET "clock_error = nan", "s.toml:2:15", "cannot set clock_error", "0..0.5"},
        Wrong{PRESET "store = \"disk\"", "s.toml:2:9", "cannot set store", "file, cluster"},
        Wrong{PRESET "certificates = \"\"", "s.toml:2:16", "cannot set certificates", "yes, no"},
        Wrong{PRESET "kinds = [\"kil\"]", "s.toml:2:9", "cannot set kinds", "'kill'"},
        Wrong{PRESET "kinds = [1]", "s.toml:2:10", "cannot set kinds", "texts"},
        Wrong{PRESET "kinds = []", "s.toml:2:9", "cannot set kinds", "array of texts"},
        Wrong{PRESET "kinds = \"\"", "s.toml:2:9", "cannot set kinds", "kill"},
        Wrong{PRESET "break = \"no-gard\"", "s.toml:2:9", "cannot set break", "'no-guard'"},
        Wrong{PRESET "first_members = 5", "s.toml:2:17", "waits for more members", "at most 4"},
        Wrong{PRESET "[expct]\nx = 1", "s.toml:2:2", "no section [expct]", "[expect]"},
        Wrong{PRESET "[expect]\nmax_live = 1", "s.toml:3:12", "no option 'expect.max_live'",
              "'expect.max_lives'"},
        Wrong{PRESET "[expect]\nmax_lives = -1", "s.toml:3:13", "cannot set expect.max_lives", "0..1000000"},
        Wrong{PRESET "[fault]\nkind = \"kill\"", "s.toml:2:1", "cannot set fault", "double brackets"},
        Wrong{PRESET "fault = [1]", "s.toml:2:10", "cannot set fault", "double brackets"},
        Wrong{PRESET "[[fault]]\nat_s = 1", "s.toml:2:1", "no kind", "kind = "},
        Wrong{PRESET "[[fault]]\nkind = \"kill\"", "s.toml:2:1", "no at_s", "at_s = "},
        Wrong{PRESET "[[fault]]\nkind = \"kll\"", "s.toml:3:8", "cannot set kind", "\"kill\""},
        Wrong{PRESET "[[fault]]\nkind = 7", "s.toml:3:8", "cannot set kind", "kill"},
        Wrong{PRESET "[[fault]]\nat = 7", "s.toml:3:1", "no key 'at'", "'at_s'"},
        Wrong{PRESET "[[fault]]\nat_s = -7", "s.toml:3:8", "cannot set at_s", "0..3600"},
        Wrong{PRESET "[[fault]]\nat_s = \"7\"", "s.toml:3:8", "cannot set at_s", "a number"},
        Wrong{PRESET "[[fault]]\nlasts_s = inf", "s.toml:3:11", "cannot set lasts_s", "0..3600"},
        Wrong{PRESET "[[fault]]\nmember = 1.5", "s.toml:3:10", "cannot set member", "an integer"},
        Wrong{PRESET "faults = 3\n[[fault]]\nkind = \"kill\"\nat_s = 5", "s.toml:2:10", "faults of its own",
              "[[fault]]"}));
#undef PRESET

// A setting of the command line without a name or a value sign is refused.
TEST(ParseSetting, NeedsKeyAndValue) {
  EXPECT_EQ(parse_setting("members=")->text, "");
  EXPECT_EQ(parse_setting("a=b=c")->text, "b=c");
  for (const char* text : {"", "members", "=4"}) {
    EXPECT_EQ(parse_setting(text).error().kind, ErrorKind::kUsage) << text;
    EXPECT_THAT(parse_setting(text).error().expected, HasSubstr("members=5")) << text;
  }
}

}  // namespace
}  // namespace gossamer::commands
