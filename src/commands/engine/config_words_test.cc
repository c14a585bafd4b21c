// SPDX-License-Identifier: Apache-2.0
#include "commands/engine/config_words.h"

#include <gtest/gtest.h>

#include <string>

#include "commands/engine/test_two_engines.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

class Words : public ::testing::Test {
 protected:
  Result<ChosenConfig> choose(const WrittenConfig& written) {
    return choose_config(machine_.disk, engines_, written);
  }
  static std::string rows(const ChosenConfig& chosen) {
    return chosen.values.text(*chosen.values.keys().find("rows"));
  }

  run::testing::SimMachine machine_;
  const EngineList engines_ = testing::two_engines();
};

// Claim: a preset chooses its engine, and words overrule it in their order.
TEST_F(Words, PresetChoosesTheEngine) {
  const auto one = choose({.config = "one", .overrides = {"rows=60", "rows=70"}});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->engine.name, "first");
  EXPECT_EQ(rows(*one), "70");
  EXPECT_EQ(one->settings.size(), 3u);
  const auto two = choose({.config = "two", .overrides = {}});
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->engine.name, "second");
  EXPECT_EQ(rows(*two), "5");
}

// Claim: a file is read with the keys of the engine that it names. Without a config it is the first engine.
TEST_F(Words, FileChoosesTheEngine) {
  run::testing::write(machine_.disk, "a.toml", "engine = \"second\"\nrows = 9\n");
  run::testing::write(machine_.disk, "b.toml", "rows = 10\n");
  EXPECT_EQ(choose({.config = "a.toml", .overrides = {}})->engine.name, "second");
  EXPECT_EQ(rows(*choose({.config = "b.toml", .overrides = {}})), "10");
  EXPECT_EQ(choose({.config = "", .overrides = {}})->engine.name, "first");
  EXPECT_FALSE(choose({.config = "a.toml", .overrides = {"rows=10"}}).ok());
}

// Claim: a word that is neither is refused. The error names all presets, and words that the command takes
// too.
TEST_F(Words, UnknownWordNamesAll) {
  const auto chosen = choose({.config = "twu", .overrides = {}, .other_words = {"check"}});
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().expected,
            "a preset such as 'two' (all: check, one, two), or the path of a TOML file");
}

}  // namespace
}  // namespace gossamer::commands
