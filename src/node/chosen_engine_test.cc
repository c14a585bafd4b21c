// SPDX-License-Identifier: Apache-2.0
#include "node/chosen_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/check/check_config.h"
#include "engines/check/check_engine.h"
#include "engines/check/check_workload.h"
#include "simulation/engine_fleet.h"

namespace gossamer::node {
namespace {

using ::testing::HasSubstr;

constexpr engine::CheckConfig kConfig{.things = 8, .elements = 64, .steps = 20};

// A fleet in virtual time whose members choose between two engines.
struct Fleet {
  explicit Fleet(std::string_view engine)
      : workload(kConfig),
        fleet({.workload = workload,
               .configuration = engine_configuration(engine, "gossamer 7.8", check_config_bytes(kConfig)),
               .tracks = workload.tracks(),
               .first_members = 2,
               .seed = 1}) {
    for (int i = 0; i < 2; ++i)
      fleet.join({.make_engine = [](cluster::MemberProcess& process) {
        const auto check = [&process] {
          return std::make_unique<engine::CheckEngine>(process, engine::CheckEngine::Options{});
        };
        const auto never = []() -> std::unique_ptr<cluster::Engine> {
          ADD_FAILURE() << "another engine was asked for";
          return nullptr;
        };
        return std::make_unique<ChosenEngine>(
            process, std::vector<ChosenEngine::Kind>{{"other", never}, {"check", check}}, "gossamer 1.2");
      }});
  }
  engine::CheckWorkload workload;
  simulation::EngineFleet fleet;
};

// The engine that the configuration names does the run. It gets the part of the
// configuration that is its own.
TEST(ChosenEngine, IsTheOneThatTheConfigurationNames) {
  Fleet one("check");
  one.fleet.run_for(20);
  EXPECT_EQ(one.fleet.failure(), std::nullopt);
  ASSERT_NE(one.fleet.leader(), nullptr);
  EXPECT_EQ(one.fleet.leader()->marks()->committed(), StepNumber(20));
}

// A configuration with an engine that this version lacks is refused, with the names of
// both versions. The member leaves.
TEST(ChosenEngine, RefusesWhatItDoesNotKnow) {
  Fleet one("pipeline");
  one.fleet.run_for(5);
  const auto known = one.fleet.failure();
  ASSERT_TRUE(known.has_value());
  EXPECT_THAT(*known, HasSubstr("pipeline gossamer 7.8"));
  EXPECT_THAT(*known, HasSubstr("other, check, which gossamer 1.2"));
}

}  // namespace
}  // namespace gossamer::node
