// SPDX-License-Identifier: Apache-2.0
#include "commands/engine/engine_list.h"

#include <gtest/gtest.h>

#include <string>

#include "commands/engine/test_two_engines.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::write;

// Claim: an engine is found by its name, and by the name of any of its presets.
TEST(EngineList, FindsByNameAndPreset) {
  const EngineList engines = testing::two_engines();
  EXPECT_EQ(engines.find("second")->name, "second");
  EXPECT_EQ(engines.find("third"), nullptr);
  ASSERT_TRUE(engines.find_preset("two").has_value());
  EXPECT_EQ(engines.find_preset("two")->engine.name, "second");
  EXPECT_EQ(engines.find_preset("two")->preset.help, "of the second");
  EXPECT_FALSE(engines.find_preset("second").has_value());
}

// Claim: a config is for the engine that its key names, else for the first. An unknown name is refused, and
// the nearest one named.
TEST(EngineList, ConfigNamesItsEngine) {
  const EngineList engines = testing::two_engines();
  EXPECT_EQ((*engines.of_config("rows = 3\n", "a.toml"))->name, "first");
  EXPECT_EQ((*engines.of_config("engine = \"second\"\n", "a.toml"))->name, "second");
  EXPECT_EQ((*engines.of_config("[part]\nengine = \"second\"\n", "a.toml"))->name, "first");
  const auto unknown = engines.of_config("\nengine = \"secnd\"\n", "a.toml");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(unknown.error().where, "a.toml:2:10");
  EXPECT_EQ(unknown.error().expected, "an engine such as 'second' (all: first, second)");
}

// Claim: the engine of a directory is that of its model, or else that of its run.toml, or else the first.
TEST(EngineList, DirectoryNamesItsEngine) {
  const EngineList engines = testing::two_engines();
  run::testing::SimMachine machine;
  const auto of = [&](const std::string& directory) {
    const auto engine = engines.of_directory(machine.disk, directory);
    return engine.ok() ? std::string((*engine)->name) : engine.error().message();
  };
  for (const char* const made : {"/runs/a/model", "/models/b", "/runs/c", "/runs/d"})
    ASSERT_TRUE(machine.disk.make_directories(made).ok());
  write(machine.disk, "/runs/a/model/model.json", R"({"engine":"second"})");
  write(machine.disk, "/runs/a/run.toml", "rows = 3\n");
  write(machine.disk, "/models/b/model.json", R"({"engine":"second"})");
  write(machine.disk, "/runs/c/run.toml", "engine = \"second\"\n");
  write(machine.disk, "/runs/d/run.toml", "engine = \"third\"\n");
  EXPECT_EQ(of("/runs/a"), "second");
  EXPECT_EQ(of("/runs/a/model"), "second");
  EXPECT_EQ(of("/models/b"), "second");
  EXPECT_EQ(of("/runs/c"), "second");
  EXPECT_NE(of("/runs/d").find("there is no engine 'third'"), std::string::npos);
  EXPECT_EQ(of("/nowhere"), "first");
  write(machine.disk, "/models/b/model.json", "{");
  EXPECT_EQ(of("/models/b"), "first");
}

// Claim: what an engine does not do is refused, and the engines are named which do it.
TEST(EngineList, NamesTheEnginesThatDoIt) {
  const EngineList engines = testing::two_engines();
  EXPECT_TRUE(engines.ability(*engines.find("second"), &EngineEntry::workload, "leads", "CONFIG").ok());
  const auto missing = engines.ability(engines.first(), &EngineEntry::workload, "leads", "CONFIG");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(missing.error().message(),
            "CONFIG: the engine 'first' does not do this: got first; expected an engine that leads: second; "
            "ask it of a run of such an engine");
}

}  // namespace
}  // namespace gossamer::commands
