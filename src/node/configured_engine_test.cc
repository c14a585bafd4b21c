// SPDX-License-Identifier: Apache-2.0
#include "node/configured_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/check/check_config.h"
#include "engines/check/check_engine.h"
#include "engines/check/check_workload.h"
#include "host/api/files.h"
#include "host/sim/disk.h"
#include "simulation/fleet.h"

namespace gossamer::node {
namespace {

using ::testing::HasSubstr;

constexpr check::CheckConfig kConfig{.things = 8, .elements = 64, .steps = 20};

// A fleet in virtual time whose two members choose between engines. They share a disk.
struct Fleet {
  Fleet(host::SimDisk& its_disk, std::string engine, const std::optional<Supply>& supply = std::nullopt)
      : disk(its_disk),
        workload(kConfig),
        fleet({.workload = workload,
               .configuration = run_configuration_bytes({.engine = std::move(engine),
                                                         .program = "gossamer 7.8",
                                                         .supply = supply,
                                                         .own = check_config_bytes(kConfig)}),
               .tracks = workload.tracks(),
               .first_members = 2,
               .seed = 1}) {}
  void join(const std::string& directory) {
    fleet.join({.make_engine = [this, directory](cluster::MemberProcess& process) {
      const auto never = [](const Supplied&) -> std::unique_ptr<cluster::Engine> {
        ADD_FAILURE() << "another engine was asked for";
        return nullptr;
      };
      const auto check = [this, &process](const Supplied& here) {
        supplied.push_back(here);
        return std::make_unique<check::CheckEngine>(process, check::CheckEngine::Options{});
      };
      return std::make_unique<ConfiguredEngine>(
          disk, process,
          ConfiguredEngine::Options{
              .kinds = {{.name = "other", .make = never},
                        {.name = "check", .make = check},
                        {.name = "check-files", .needs = Needs::kSupply, .make = check}},
              .program = "gossamer 1.2",
              .supply = {.directory = directory, .in_place = in_place},
              .aside = aside});
    }});
  }
  void run_for(double seconds) {
    join("/first");
    join("/second");
    fleet.run_for(seconds);
  }
  void expect_done() {
    EXPECT_EQ(fleet.failure(), std::nullopt);
    ASSERT_NE(fleet.leader(), nullptr);
    EXPECT_EQ(fleet.leader()->marks()->committed(), StepNumber(20));
  }

  host::SimDisk& disk;
  bool in_place = false;           // members that join from now on may use the coordinator's files
  Aside aside;                     // of members that join from now on
  std::vector<Supplied> supplied;  // what each engine was made with
  check::CheckWorkload workload;
  simulation::Fleet fleet;
};

Supply some_directories() { return {.directory = "/run/cache", .deliver = "/run/parts"}; }

class ConfiguredEngineTest : public ::testing::Test {
 protected:
  [[nodiscard]] bool there(const std::string& path) { return *disk_.exists(path); }

  host::SimDisk disk_;
};

// The engine that the configuration names does the run, with the engine's own bytes of the configuration.
TEST_F(ConfiguredEngineTest, IsTheOneThatTheConfigurationNames) {
  Fleet one(disk_, "check");
  one.run_for(20);
  one.expect_done();
  ASSERT_EQ(one.supplied.size(), 2U);
  EXPECT_EQ(one.supplied[0].supply, Supply());
}

// An engine that this version lacks is refused, by the names of both versions; and the member leaves.
TEST_F(ConfiguredEngineTest, RefusesWhatItDoesNotKnow) {
  Fleet one(disk_, "pipeline");
  one.run_for(5);
  const auto known = one.fleet.failure();
  ASSERT_TRUE(known.has_value());
  EXPECT_THAT(*known, HasSubstr("pipeline gossamer 7.8"));
  EXPECT_THAT(*known, HasSubstr("other, check, supply-2 check-files, which gossamer 1.2"));
}

// An engine that needs a Supply is refused without one, as a coordinator of an earlier version names it. So
// is a Supply for an engine that needs none.
TEST_F(ConfiguredEngineTest, RefusesAnotherNeed) {
  Fleet without(disk_, "check-files");
  without.run_for(5);
  EXPECT_THAT(without.fleet.failure().value_or(""), HasSubstr("'check-files gossamer 7.8'"));
  Fleet with(disk_, "check", some_directories());
  with.run_for(5);
  EXPECT_THAT(with.fleet.failure().value_or(""), HasSubstr("'supply-2 check gossamer 7.8'"));
}

// Two engines of one name are a mistake of the program: the first would do runs of the second in silence.
// With other needs it is another word of the configuration.
TEST_F(ConfiguredEngineTest, KindsHaveNamesOfTheirOwn) {
  Fleet one(disk_, "check");
  const auto made = [&](Needs needs) {
    one.fleet.join({.make_engine = [&, needs](cluster::MemberProcess& process) {
      return std::make_unique<ConfiguredEngine>(
          disk_, process,
          ConfiguredEngine::Options{
              .kinds = {{.name = "check", .make = {}}, {.name = "check", .needs = needs, .make = {}}},
              .program = "gossamer 1.2"});
    }});
  };
  made(Needs::kSupply);
  EXPECT_DEATH(made(Needs::kNothing), "CHECK failed: words.insert.*check");
}

// A member with the coordinator's files uses them where they lie, and nothing of its own.
TEST_F(ConfiguredEngineTest, FilesMayBeInPlace) {
  Supply supply = some_directories();
  for (const std::string& made : {supply.directory, supply.deliver})
    ASSERT_TRUE(disk_.make_directories(made).ok());
  ASSERT_TRUE(host::replace_file(disk_, "/run/cache/records", "some").ok());
  ASSERT_TRUE(add_file(disk_, supply, "records").ok());
  Fleet one(disk_, "check-files", supply);
  one.in_place = true;
  one.run_for(20);
  one.expect_done();
  ASSERT_EQ(one.supplied.size(), 2U);
  EXPECT_EQ(one.supplied[0].supply, supply);
  EXPECT_FALSE(one.supplied[0].elsewhere);
  EXPECT_FALSE(there("/first"));
}

// A member without the coordinator's directories has its own, until the run is over.
TEST_F(ConfiguredEngineTest, ElsewhereDirectoriesAreTheNodes) {
  {
    Fleet one(disk_, "check-files", some_directories());
    one.run_for(20);
    one.expect_done();
    ASSERT_EQ(one.supplied.size(), 2U);
    for (const Supplied& supplied : one.supplied) {
      const std::string own = supplied.supply.directory == "/first/data" ? "/first" : "/second";
      EXPECT_TRUE(supplied.elsewhere);
      EXPECT_EQ(supplied.supply.directory, own + "/data");
      EXPECT_EQ(supplied.supply.deliver, own + "/deliver");
      EXPECT_TRUE(there(supplied.supply.deliver));
    }
    one.fleet.stop("it is enough");
    one.fleet.run_for(10);
    for (const auto& [machine, member] : one.fleet.members()) EXPECT_TRUE(member->done());
  }
  EXPECT_FALSE(there("/first/deliver"));
  EXPECT_FALSE(there("/second/deliver"));
}

// What a member delivers is hashed aside: its steps do not wait for that, however long it takes.
TEST_F(ConfiguredEngineTest, StepsDoNotWaitForHashing) {
  Fleet one(disk_, "check-files", some_directories());
  int given = 0;
  one.aside = [&](const auto&, const auto&) { ++given; };  // takes for ever
  one.run_for(1);
  ASSERT_TRUE(there("/first/deliver"));
  ASSERT_TRUE(host::replace_file(disk_, "/first/deliver/part", "some").ok());
  one.fleet.run_for(20);
  EXPECT_EQ(given, 1);
  EXPECT_FALSE(there("/first/deliver/part"));
  one.expect_done();
}

// A member that is told to drain while its files are missing leaves, and no engine is made.
TEST_F(ConfiguredEngineTest, LeavesWithoutAnEngineWhileFilesAreMissing) {
  Supply supply = some_directories();
  supply.files = {{.name = "records", .manifest = {std::byte{7}}, .bytes = 123}};
  Fleet one(disk_, "check-files", supply);
  one.run_for(5);
  for (const auto& [machine, member] : one.fleet.members()) {
    EXPECT_FALSE(member->done());
    member->drain("it was told to");
  }
  one.fleet.run_for(10);
  for (const auto& [machine, member] : one.fleet.members()) EXPECT_TRUE(member->done());
  EXPECT_EQ(one.fleet.failure(), std::nullopt);
  EXPECT_TRUE(one.supplied.empty());
}

}  // namespace
}  // namespace gossamer::node
