// SPDX-License-Identifier: Apache-2.0
#include "simulation/misconduct.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "simulation/test_counting_fleet.h"

namespace gossamer::simulation {
namespace {

class MisconductTest : public ::testing::Test {
 protected:
  void begin(FaultKind kind, double seconds, std::uint64_t other) {
    fleet_->run_for(10);
    fleet_->inject({.kind = kind, .at = {}, .lasts = from_seconds(seconds), .member = 0, .other = other});
  }

  CountingFleet fleet_{{.members = 4, .misbehave = [this](SimMember& member, const Fault& fault) {
                          misconduct_.begin(member, fault);
                        }}};
  Misconduct misconduct_{*fleet_, 1, 6};
};

// Claim: a hostile life is harboured until it is fenced. Its process then begins an honest one.
TEST_F(MisconductTest, HostileLivesAreFenced) {
  begin(FaultKind::kHostile, 0, 0);
  EXPECT_NE(misconduct_.harboured(), std::nullopt);
  fleet_->run_for(20);
  EXPECT_EQ(misconduct_.harboured(), std::nullopt);
  EXPECT_EQ(fleet_->member("m1").lives(), 2u);
  EXPECT_EQ(fleet_->unsettled(), std::nullopt);
}

// Claim: a member that sends nonsense to one other at a time costs that one a life at most, then its own, and
// the others none.
TEST_F(MisconductTest, QuarrelsEnd) {
  begin(FaultKind::kHostile, 0, 1);
  fleet_->run_for(40);
  EXPECT_GT(fleet_->lives(), 4u);
  EXPECT_LE(fleet_->lives(), 6u);
  EXPECT_EQ(fleet_->invariants().violation(), std::nullopt);
  EXPECT_EQ(fleet_->unsettled(), std::nullopt);
}

// Claim: a member that only says that it does not reach others costs no life, as it takes steps with them.
TEST_F(MisconductTest, AccusationsCostNothing) {
  begin(FaultKind::kLie, 60, 0);
  fleet_->run_for(61);
  EXPECT_EQ(fleet_->lives(), 4u);
  EXPECT_EQ(fleet_->invariants().violation(), std::nullopt);
}

// Claim: a member that accuses others, and sends them nothing, costs lives while it lies, and none
// afterwards. Nothing else breaks.
TEST_F(MisconductTest, AccusationsEnd) {
  begin(FaultKind::kLie, 20, 2);
  fleet_->run_for(21);
  EXPECT_FALSE(fleet_->member("m1").falsifies());
  const std::uint64_t lives = fleet_->lives();
  EXPECT_GT(lives, 4u);
  fleet_->run_for(80);
  EXPECT_EQ(fleet_->lives(), lives);
  EXPECT_EQ(fleet_->invariants().violation(), std::nullopt);
  EXPECT_EQ(fleet_->unsettled(), std::nullopt);
}

// Claim: inventions of one member harm nobody. They end with the lie.
TEST_F(MisconductTest, InventionsHarmNobody) {
  begin(FaultKind::kLie, 10, 1);
  fleet_->run_for(60);
  EXPECT_EQ(fleet_->invariants().violation(), std::nullopt);
  EXPECT_EQ(fleet_->leader()->failure(), std::nullopt);
  EXPECT_FALSE(misconduct_.contradicted());
}

// Claim: a member that contradicts the others ends the run at the next rest.
TEST_F(MisconductTest, ContradictionsEndTheRun) {
  begin(FaultKind::kLie, 60, 3);
  EXPECT_TRUE(misconduct_.contradicted());
  fleet_->run_for(1);
  fleet_->kill("m3");
  fleet_->run_for(5);
  ASSERT_NE(fleet_->leader(), nullptr);
  ASSERT_TRUE(fleet_->leader()->failure().has_value());
  EXPECT_EQ(fleet_->leader()->failure()->what, "members contradict each other");
}

// Claim: a member contradicts nobody where all others hang: they would be fenced, and its word would be the
// only one.
TEST_F(MisconductTest, NobodyIsContradictedWhereNobodySpeaks) {
  begin(FaultKind::kLie, 200, 3);
  for (const char* machine : {"m2", "m3", "m4"}) fleet_->member(machine).hang(from_seconds(300));
  fleet_->start_new_member();
  fleet_->run_for(100);
  EXPECT_EQ(fleet_->invariants().violation(), std::nullopt);
  EXPECT_EQ(fleet_->leader()->failure(), std::nullopt);
}

}  // namespace
}  // namespace gossamer::simulation
