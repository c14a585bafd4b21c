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
  const auto of_config = [&](const std::string& text) {
    auto config = *settings::parse_toml(text, "a.toml");
    return engines.take_engine(config);
  };
  EXPECT_EQ((*of_config("rows = 3\n"))->name, "first");
  EXPECT_EQ((*of_config("engine = \"first\"\n"))->name, "first");
  EXPECT_EQ((*of_config("engine = \"second\"\n"))->name, "second");
  EXPECT_EQ((*of_config("[part]\nengine = \"second\"\n"))->name, "first");
  const auto unknown = of_config("\nengine = \"secnd\"\n");
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
  for (const char* const damaged : {"{", "{}", R"({"engine":3})", R"({"engine":""})"}) {
    write(machine.disk, "/models/b/model.json", damaged);
    EXPECT_EQ(of("/models/b"), "first");
  }
}

// Claim: a model of an engine that is not in the list is refused with its name, wherever the model lies.
TEST(EngineList, ModelOfAnUnknownEngine) {
  const EngineList engines = testing::two_engines();
  run::testing::SimMachine machine;
  for (const std::string directory : {"/runs/a/model", "/models/b"}) {
    ASSERT_TRUE(machine.disk.make_directories(directory).ok());
    write(machine.disk, directory + "/model.json", R"({"engine":"third","sum":7})");
    const auto engine =
        engines.of_directory(machine.disk, directory == "/runs/a/model" ? "/runs/a" : directory);
    ASSERT_FALSE(engine.ok());
    EXPECT_EQ(engine.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(engine.error().where, directory + "/model.json");
    EXPECT_EQ(engine.error().what, "there is no engine 'third'");
    EXPECT_NE(engine.error().expected.find("(all: first, second)"), std::string::npos);
  }
}

// Claim: an entry without what each engine has, and a name that is there twice, are mistakes of the program.
TEST(EngineListDeathTest, RefusesMistakes) {
  const auto list = [](const auto& change) {
    EngineEntry second = testing::second_engine();
    change(second);
    return EngineList({testing::first_engine(), second});
  };
  EXPECT_DEATH(EngineList({}), "CHECK failed");
  EXPECT_DEATH(list([](EngineEntry& one) { one.keys = nullptr; }), "keys != nullptr.*second");
  EXPECT_DEATH(list([](EngineEntry& one) { one.check = {}; }), "check != nullptr.*second");
  EXPECT_DEATH(list([](EngineEntry& one) { one.name = ""; }), "CHECK failed");
  EXPECT_DEATH(list([](EngineEntry& one) { one.name = "first"; }), "CHECK failed");
  EXPECT_DEATH(list([](EngineEntry& one) { one.name = "one"; }), "CHECK failed");
  EXPECT_DEATH(list([](EngineEntry& one) { one.presets.front().name = "one"; }), "CHECK failed");
  EXPECT_DEATH(list([](EngineEntry& one) { one.import_kinds = {{.name = "csv"}}; }), "import_kinds");
  EXPECT_DEATH(list([](EngineEntry& one) {
                 one.import_kinds = {{.name = "csv"}, {.name = "csv"}};
                 one.import = [](const run::NodeHost&, const ImportFiles&) {
                   return Result<Report>(Report{});
                 };
               }),
               "kinds.insert");
  static const settings::KeyTable<testing::TestConfig> taken(
      {.listed_by = "--keys"}, {settings::key<&testing::TestConfig::of>("engine", {}, "is the list's")});
  EXPECT_DEATH(list([](EngineEntry& one) { one.keys = &taken; }), "kEngineKey");
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
