// SPDX-License-Identifier: Apache-2.0
#include "engines/check/check_config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gossamer::check {
namespace {

// Reads words of a command line, as its commands do.
Result<CheckConfig> parse(const std::vector<std::string>& words) {
  settings::Values values = check_keys().defaults();
  if (auto done = values.apply_words(words); !done.ok()) return done.error();
  const CheckConfig config = check_keys().config(values);
  if (auto done = validate(config); !done.ok()) return done.error();
  return config;
}

// Claim: keys that are not given have their defaults. Each key sets its own value, and the last one counts.
TEST(CheckConfig, KeysSetTheirValues) {
  EXPECT_EQ(*parse({}), CheckConfig());
  EXPECT_EQ(*parse({"things=3", "elements=7", "pause_ms=20", "steps=100"}),
            (CheckConfig{.things = 3, .elements = 7, .pause_ms = 20, .steps = 100}));
  EXPECT_EQ(parse({"things=3", "things=4"})->things, 4u);
}

// Claim: each key takes both ends of its range, and nothing beyond.
TEST(CheckConfig, RangesAreKept) {
  for (const std::string good : {"things=1", "things=4000", "elements=1", "elements=4194304", "pause_ms=0",
                                 "pause_ms=60000", "steps=0", "steps=1000000000000000"}) {
    EXPECT_TRUE(parse({good}).ok()) << good;
  }
  for (const std::string bad : {"things=0", "things=4001", "elements=0", "elements=4194305", "pause_ms=60001",
                                "steps=1000000000000001", "things=-1", "things=", "things", "things=1x",
                                "things= 1", "things=1.5", "steps=18446744073709551616"}) {
    const auto parsed = parse({bad});
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.error().kind, ErrorKind::kUsage);
  }
  EXPECT_EQ(parse({"things=0"}).error().message(),
            "cannot set things: got '0'; expected an integer 1..4000; 'gossamer coordinator check --help' "
            "lists all keys");
}

// Claim: a configuration with too much work for one machine in one step is refused, to the last element.
TEST(CheckConfig, WorkOfAStepIsBounded) {
  EXPECT_TRUE(parse({"things=64", "elements=4194304"}).ok());
  EXPECT_FALSE(parse({"things=65", "elements=4194304"}).ok());
}

// Claim: an unknown key is named with the nearest known one.
TEST(CheckConfig, UnknownKeyNamesTheNearest) {
  for (const auto& [typo, key] : {std::pair<std::string, std::string>{"thing=3", "things"},
                                  {"element=3", "elements"},
                                  {"pause=3", "pause_ms"},
                                  {"stpes=3", "steps"}}) {
    const auto parsed = parse({typo});
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().expected, "a key such as '" + key + "'");
  }
}

// Claim: help has a line for each key, with its default.
TEST(CheckConfig, HelpNamesEachKey) {
  const std::string help = settings::help_lines(check_keys().defaults());
  for (const std::string text : {"things=64", "elements=16384", "pause_ms=0", "steps=0"})
    EXPECT_NE(help.find("  " + text + " "), std::string::npos) << help;
}

// Claim: a member reads what its coordinator hands over. Bytes that no coordinator hands over are refused.
TEST(CheckConfig, CrossesAsBytes) {
  const CheckConfig config{.things = 3, .elements = 7, .pause_ms = 20, .steps = 100};
  EXPECT_EQ(*read_check_config(check_config_bytes(config)), config);
  EXPECT_EQ(*read_check_config(check_config_bytes({})), CheckConfig());
  for (const std::string& bad :
       {std::string(), std::string("\xff\xff"), std::string("[train]"), check_config_bytes({.things = 0}),
        check_config_bytes({.things = 4001}), check_config_bytes({.elements = 1ULL << 40}),
        check_config_bytes({.pause_ms = 60'001}),
        check_config_bytes({.things = 65, .elements = 1ULL << 22})}) {
    const auto read = read_check_config(bad);
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_EQ(read.error().kind, ErrorKind::kBadData);
  }
}

}  // namespace
}  // namespace gossamer::check
