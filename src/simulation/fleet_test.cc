// SPDX-License-Identifier: Apache-2.0
#include "simulation/fleet.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "simulation/test_counting_fleet.h"

namespace gossamer::simulation {
namespace {

// Claim: a fleet without faults works. A life is one start, and all members have one view.
TEST(Fleet, WorksTogether) {
  CountingFleet fleet({});
  fleet->run_for(20);
  EXPECT_EQ(fleet->failure(), std::nullopt);
  EXPECT_EQ(fleet->unsettled(), std::nullopt);
  EXPECT_EQ(fleet->lives(), 3u);
  EXPECT_GT(fleet->invariants().committed_step(), StepNumber(20));
}

// Claim: a killed node begins again on another machine. With certificates it keeps its number; without them
// it gets a new one.
TEST(Fleet, CertifiedNodesKeepTheirNumbers) {
  for (const Identity identity : {Identity::kCertified, Identity::kNumbered}) {
    CountingFleet fleet({.identity = identity});
    fleet->run_for(10);
    const NodeId before = fleet.member("m2").self().node;
    fleet->kill_for("m2", from_seconds(2));
    EXPECT_EQ(fleet->find("m2"), nullptr);
    fleet->run_for(10);
    EXPECT_EQ(fleet->unsettled(), std::nullopt);
    EXPECT_EQ(fleet->lives(), 4u);
    EXPECT_EQ(fleet.member("m4").self().node == before, identity == Identity::kCertified);
  }
}

// Claim: a member whose engine hangs beats on, and keeps its life. Nobody takes a step meanwhile.
TEST(Fleet, HungEnginesBeatOn) {
  CountingFleet fleet({});
  fleet->run_for(10);
  fleet->member("m1").hang(from_seconds(10));
  fleet->run_for(1);
  const StepNumber hung = fleet->invariants().applied_steps();
  fleet->run_for(8);
  EXPECT_EQ(fleet->invariants().applied_steps(), hung);
  EXPECT_EQ(fleet->unsettled(), std::nullopt);
  fleet->run_for(5);
  EXPECT_GT(fleet->invariants().applied_steps(), hung);
  EXPECT_EQ(fleet->lives(), 3u);
}

// Claim: an engine that hangs while the view changes is fenced. It is told of the end of its life after all
// that came before, and begins again when it has woken up.
TEST(Fleet, HungEnginesBeginAgain) {
  CountingFleet fleet({.freeze_time = from_seconds(3)});
  fleet->run_for(10);
  fleet->member("m1").hang(from_seconds(15));
  fleet->run_for(1);
  fleet->kill("m2");
  fleet->run_for(13);
  EXPECT_EQ(fleet->member("m1").lives(), 1u);
  fleet->run_for(10);
  EXPECT_EQ(fleet->member("m1").lives(), 2u);
  EXPECT_EQ(fleet->failure(), std::nullopt);
}

// Claim: a life that a fault takes counts once it is fenced. So does one that began after the notice of its
// end, and one that others went on without, as its line to the coordinator was cut.
TEST(Fleet, LivesThatFaultsTake) {
  CountingFleet noticed({});
  noticed->pause_for("m1", from_seconds(1));  // it is not asked to leave
  noticed->inject({.kind = FaultKind::kNotice, .at = {}, .lasts = from_seconds(5), .member = 0, .other = 0});
  noticed->run_for(4);
  EXPECT_EQ(noticed->taken_and_fenced(), 0U);
  noticed->run_for(10);
  EXPECT_EQ(noticed->taken_and_fenced(), 1U);
  CountingFleet cut({.freeze_time = from_seconds(3)});
  cut->run_for(10);
  cut->inject({.kind = FaultKind::kCut, .at = {}, .lasts = from_seconds(100), .member = 0, .other = 0});
  cut->run_for(1);
  cut->member("m2").leave("it was told to");  // the others come to rest, and m1 does not
  cut->run_for(60);
  EXPECT_EQ(cut->taken_and_fenced(), 1U);
}

// Claim: what a member's hook makes of a message is what its coordinator hears, until the hook is taken away.
// Here it makes an accusation of each beat. As no step is taken with the accused, one of the two is fenced.
TEST(Fleet, HooksChangeWhatMembersSay) {
  CountingFleet fleet({});
  fleet->run_for(10);
  SimMember& liar = fleet->member("m1");
  const net::PeerId accused = fleet.member("m3").self();
  EXPECT_FALSE(liar.falsifies());
  liar.falsify([&](membership::ToCoordinator& said) {
    if (said.has_beat()) said.mutable_beat()->add_unreachable(accused.node.value);
  });
  static_cast<CountingEngine&>(liar.engine()).withhold(accused, liar.now());
  EXPECT_TRUE(liar.falsifies());
  fleet->run_for(15);
  const auto fenced = fleet->durable().lives_fenced();
  EXPECT_GT(fenced, 0u);
  liar.falsify({});
  fleet->run_for(60);
  EXPECT_EQ(fleet->durable().lives_fenced(), fenced);
  EXPECT_EQ(fleet->unsettled(), std::nullopt);
}

// Claim: a member tells how many bytes it has exchanged with other members. Beats, pings and what it says to
// its coordinator count nothing.
TEST(Fleet, MembersTellWhatTheyMove) {
  const auto moved_in_ten_seconds = [](std::size_t members) {
    CountingFleet fleet({.members = members});
    std::uint64_t moved = 0;
    fleet->run_for(10);
    fleet->member("m1").falsify([&](membership::ToCoordinator& said) {
      if (said.has_beat()) moved = said.beat().moved_bytes();
    });
    fleet->run_for(1);
    const std::uint64_t before = moved;
    fleet->run_for(10);
    return moved - before;
  };
  EXPECT_GT(moved_in_ten_seconds(3), 1000u);
  EXPECT_EQ(moved_in_ten_seconds(1), 0u);
}

}  // namespace
}  // namespace gossamer::simulation
