// SPDX-License-Identifier: Apache-2.0
#include "engines/check/check_engine.h"

#include <gtest/gtest.h>

#include <string>

#include "engines/check/check_fleet.h"

namespace gossamer::engine {
namespace {

constexpr CheckConfig kSmall{.things = 8, .elements = 64, .pause_ms = 50};

// Claim: members do exactly the steps that were asked for, agree on every sum, hold all things between them,
// and then are quiet.
TEST(CheckEngine, MembersAgreeOver100Steps) {
  for (std::size_t members = 1; members <= 5; ++members) {
    CheckFleet fleet({.things = 8, .elements = 64, .steps = 100}, members, members);
    fleet.run_for(20);
    EXPECT_EQ(fleet.failure(), std::nullopt) << *fleet.failure();
    std::size_t things = 0;
    for (const auto& [machine, member] : fleet.members()) {
      EXPECT_EQ(member->engine().step(), StepNumber(100)) << machine << " of " << members;
      const CheckFigures figures = member->engine().figures();
      EXPECT_EQ(figures.steps, 100u);
      EXPECT_EQ(figures.bytes_sent > 0, members > 1);
      // One delay of 10 ms each way, more where somebody begins later.
      if (members > 1) {
        EXPECT_GT(figures.mean_step_s, 0.009);
        EXPECT_LT(figures.mean_step_s, 0.03);
      }
      things += member->engine().things_held();
    }
    EXPECT_EQ(things, 8u);
    ASSERT_NE(fleet.leader(), nullptr);
    EXPECT_EQ(fleet.leader()->marks()->committed(), StepNumber(100));
  }
}

}  // namespace
}  // namespace gossamer::engine
