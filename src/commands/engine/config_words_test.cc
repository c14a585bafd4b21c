// SPDX-License-Identifier: Apache-2.0
#include "commands/engine/config_words.h"

#include <gtest/gtest.h>

#include <map>
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

// Claim: a key in the place of CONFIG is told from a preset with a typing error, whatever its value looks
// like. A file of such a name is a config.
TEST_F(Words, AKeyIsNoConfig) {
  for (const char* word : {"data.train=x", "data.train=a/b.toml"}) {
    const auto chosen = choose({.config = word, .overrides = {}});
    ASSERT_FALSE(chosen.ok());
    EXPECT_EQ(chosen.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(chosen.error().what, "CONFIG is missing");
  }
  EXPECT_EQ(choose({.config = "a/b=c.toml", .overrides = {}}).error().what.find("CONFIG"), std::string::npos);
  run::testing::write(machine_.disk, "a=b.toml", "rows = 9\n");
  EXPECT_TRUE(choose({.config = "a=b.toml", .overrides = {}}).ok());
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

// Claim: a config without anything is refused: it may have been cut off. One of comments alone is taken.
TEST_F(Words, EmptyFileIsNoConfig) {
  for (const char* text : {"", " \n\n"}) {
    run::testing::write(machine_.disk, "empty.toml", text);
    const auto chosen = choose({.config = "empty.toml", .overrides = {"rows=9"}});
    ASSERT_FALSE(chosen.ok());
    EXPECT_EQ(chosen.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(chosen.error().where, "empty.toml");
  }
  run::testing::write(machine_.disk, "empty.toml", "# as from the start\n");
  EXPECT_TRUE(choose({.config = "empty.toml", .overrides = {"rows=9"}}).ok());
}

// Claim: the key `engine` is no setting. A file may name any engine, the first one too; a word may repeat the
// name. Another name is refused, and the error has both.
TEST_F(Words, EngineIsNoSetting) {
  run::testing::write(machine_.disk, "a.toml", "engine = \"second\"\nrows = 9\n");
  run::testing::write(machine_.disk, "b.toml", "engine = \"first\"\nrows = 10\n");
  EXPECT_EQ(choose({.config = "b.toml", .overrides = {}})->engine.name, "first");
  for (const auto& [config, engine] : std::map<std::string, std::string>{
           {"a.toml", "second"}, {"two", "second"}, {"b.toml", "first"}, {"one", "first"}, {"", "first"}}) {
    const auto same = choose({.config = config, .overrides = {"engine=" + engine, "rows=7"}});
    ASSERT_TRUE(same.ok()) << config << same.error().message();
    EXPECT_EQ(same->engine.name, engine);
    EXPECT_EQ(rows(*same), "7");
    for (const settings::KeySetting& one : same->settings) EXPECT_NE(one.name, "engine");
    const std::string wrong = engine == "first" ? "second" : "first";
    const auto other = choose({.config = config, .overrides = {"engine=" + wrong}});
    ASSERT_FALSE(other.ok()) << config;
    EXPECT_EQ(other.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(other.error().got, "'engine=" + wrong + "'");
    EXPECT_NE(other.error().expected.find("'engine=" + engine + "'"), std::string::npos);
  }
}

// Claim: a run that goes on has the engine of its run.toml, and the words alone as settings. Without a
// training run in the directory there is none.
TEST_F(Words, RunHasItsConfig) {
  for (const char* directory : {"first", "second", "other", "unknown"})
    ASSERT_TRUE(machine_.disk.make_directories(directory).ok());
  run::testing::write(machine_.disk, "first/run.toml", "# run 1\nrows = 60\n");
  run::testing::write(machine_.disk, "second/run.toml", "# run 2\nengine = \"second\"\nrows = 9\n");
  run::testing::write(machine_.disk, "other/run.toml", "rows = 9\n");
  run::testing::write(machine_.disk, "unknown/run.toml", "# run 3\nengine = \"third\"\n");
  for (const std::string engine : {"first", "second"}) {
    const auto chosen =
        config_of_run(machine_.disk, engines_, engine, {.config = "", .overrides = {"rows=7"}});
    ASSERT_TRUE(chosen.ok()) << chosen.error().message();
    EXPECT_EQ(chosen->engine.name, engine);
    ASSERT_EQ(chosen->settings.size(), 1u);
    EXPECT_EQ(chosen->settings[0].text, "7");
  }
  for (const std::string directory : {"other", "unknown", "nowhere"}) {
    const auto chosen = config_of_run(machine_.disk, engines_, directory, {.config = "", .overrides = {}});
    ASSERT_FALSE(chosen.ok()) << directory;
    EXPECT_EQ(chosen.error().kind, ErrorKind::kUsage);
  }
  // A run.toml that no run has written is named, with what it begins with.
  const auto got = [this](const std::string& text) {
    run::testing::write(machine_.disk, "other/run.toml", text);
    const auto chosen = config_of_run(machine_.disk, engines_, "other", {.config = "", .overrides = {}});
    EXPECT_EQ(chosen.error().where, "other/run.toml");
    return chosen.error().got;
  };
  EXPECT_EQ(got(""), "an empty file");
  EXPECT_EQ(got("rows = 9\nseed = 1\n"), "the first line 'rows = 9'");
}

// Claim: an engine's name is a config where the command says so. It has the keys as they are from the start.
TEST_F(Words, EngineNamesItsKeys) {
  const auto keys = choose({.config = "second", .overrides = {"rows=8"}, .engines = true});
  ASSERT_TRUE(keys.ok()) << keys.error().message();
  EXPECT_EQ(keys->engine.name, "second");
  EXPECT_EQ(rows(*keys), "8");
  EXPECT_EQ(choose({.config = "two", .overrides = {}, .engines = true})->settings.size(), 1u);
  EXPECT_FALSE(choose({.config = "second", .overrides = {}}).ok());
  const auto unknown = choose({.config = "secnd", .overrides = {}, .engines = true});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().what, "there is no preset or engine 'secnd'");
  EXPECT_EQ(unknown.error().expected,
            "a preset or engine such as 'second' (all: one, two, first, second), or the path of a TOML file");
}

// Claim: the example for a word without '=' is a key of the engine that is meant.
TEST_F(Words, ExampleIsAKeyOfTheEngine) {
  EXPECT_EQ(choose({.config = "two", .overrides = {"rows"}}).error().expected,
            "key=value, for example rows=64");
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
