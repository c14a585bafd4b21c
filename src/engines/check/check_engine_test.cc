// SPDX-License-Identifier: Apache-2.0
#include "engines/check/check_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "base/rng.h"
#include "engines/check/test_check_fleet.h"

namespace gossamer::check {
namespace {

constexpr CheckConfig kSmall{.things = 8, .elements = 64, .pause_ms = 50};

// Claim: members do exactly the steps asked for and agree on every sum. They hold all things between them,
// and are quiet afterwards.
TEST(CheckEngine, MembersAgreeOver100Steps) {
  for (std::size_t members = 1; members <= 5; ++members) {
    CheckFleet fleet({.things = 8, .elements = 64, .steps = 100}, members, members);
    fleet->run_for(20);
    EXPECT_EQ(fleet.failure(), std::nullopt) << *fleet.failure();
    std::size_t things = 0;
    for (const auto& [machine, member] : fleet->members()) {
      EXPECT_EQ(fleet.engine(machine).step(), StepNumber(100)) << machine << " of " << members;
      const CheckCounters& counters = fleet.engine(machine).check_counters();
      EXPECT_EQ(counters.steps, 100u);
      EXPECT_EQ(counters.sent_bytes > 0, members > 1);
      // One delay of 10 ms each way, or more if a member begins later.
      if (members > 1) {
        EXPECT_GT(counters.step_ns, 900'000'000u);
        EXPECT_LT(counters.step_ns, 3'000'000'000u);
      }
      things += fleet.engine(machine).things_held();
    }
    EXPECT_EQ(things, 8u);
    ASSERT_NE(fleet->leader(), nullptr);
    EXPECT_EQ(fleet->leader()->marks()->committed(), StepNumber(100));
  }
}

// A random member, or nobody.
std::string draw(CheckFleet& fleet, Rng& rng) {
  if (fleet->members().empty()) return {};
  const auto at = static_cast<std::ptrdiff_t>(rng.below(fleet->members().size()));
  return std::next(fleet->members().begin(), at)->first;
}

void do_harm(CheckFleet& fleet, Rng& rng) {
  const std::string machine = draw(fleet, rng);
  const Duration time = from_seconds(0.1 + 5 * static_cast<double>(rng.uniform()));
  const std::uint64_t what = rng.below(7);
  if (what == 0) return fleet->kill_coordinator_for("c1", time);
  if (what == 1 || machine.empty()) return (void)fleet.join();
  if (what == 2) return fleet->member(machine).drain("it was told to");
  if (what == 3) return fleet->pause_for(machine, time);
  if (what == 4) return fleet->cut_off_for(machine, time);
  fleet->kill(machine);
  fleet.join();
}

// Removes members that have left, and lets others join in their place.
void replace_the_gone(CheckFleet& fleet) {
  std::vector<std::string> gone;
  for (const auto& [machine, member] : fleet->members()) {
    if (member->done()) gone.push_back(machine);
  }
  for (const std::string& machine : gone) {
    fleet->kill(machine);
    fleet.join();
  }
}

// The number of steps that a fleet has done in the end, after faults of all kinds.
std::uint64_t outlive_faults(std::uint64_t seed, Driver driver) {
  Rng rng(seed, Purpose::kTest);
  CheckFleet fleet(kSmall, 4, seed, driver);
  fleet->run_for(5);
  for (int harm = 0; harm < 12; ++harm) {
    do_harm(fleet, rng);
    const Instant until = fleet->timeline().now() + from_seconds(4 * static_cast<double>(rng.uniform()));
    while (fleet->timeline().now() < until) {
      fleet->run_for(0.1);
      replace_the_gone(fleet);
    }
  }
  fleet->run_for(40);
  // Where nobody has a word about members that died together, the others wait for them.
  for (int i = 0; i < 60 && fleet->unsettled(); ++i) fleet->run_for(10);
  const auto before = fleet.steps();
  fleet->run_for(10);
  const auto after = fleet.steps();
  EXPECT_EQ(fleet.failure(), std::nullopt) << "seed " << seed << ": " << *fleet.failure();
  if (!before || !after) {
    ADD_FAILURE() << "seed " << seed << ": nobody works\n" << fleet->log();
    return 0;
  }
  EXPECT_GT(after->first.value, before->second.value + 50) << "seed " << seed << "\n" << fleet->log();
  EXPECT_LE(after->second.value, after->first.value + 1) << "seed " << seed;
  return after->first.value;
}

// Claim: faults make no check fail. Members are killed, stopped and cut off, join and drain; coordinators are
// killed and come back. Every sum and every chain is right, and in the end all work again.
TEST(CheckEngine, NoFaultIsAFailure) {
  std::uint64_t steps = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) steps += outlive_faults(seed, Driver::kPrompt);
  EXPECT_GT(steps, 20u * 300);
}

// Claim: faults make no check fail if loops are slow to tell their engines, so that members are ahead of
// them.
TEST(CheckEngine, NoFaultIsAFailureInBatches) {
  std::uint64_t steps = 0;
  for (std::uint64_t seed = 21; seed <= 40; ++seed) steps += outlive_faults(seed, Driver::kBatches);
  EXPECT_GT(steps, 20u * 300);
}

// Claim: a sum that one member spoils once is noticed by all, that member included. Each names the step,
// leaves, and tells the coordinator.
TEST(CheckEngine, SpoiltSumIsNoticedByAll) {
  for (const std::size_t members : {1U, 2U, 4U}) {
    CheckFleet fleet(kSmall, members, members);
    fleet.join({.defect = CheckDefect::kWrongSum, .defect_step = StepNumber(200)});
    fleet->run_for(40);
    for (const auto& [machine, member] : fleet->members()) {
      ASSERT_TRUE(member->engine().failure().has_value()) << machine;
      EXPECT_EQ(member->engine().failure()->where, "step 200");
      EXPECT_EQ(member->engine().failure()->got.substr(0, 4), "1197")
          << member->engine().failure()->message();
      EXPECT_TRUE(member->done()) << machine;
    }
    EXPECT_NE(fleet->log().find("step 200: the fleet check has failed"), std::string::npos);
  }
}

// Claim: a step that one member's chains take twice is found at the next change of the view. All members are
// told, and name that member. Without a change, that member finds it after the last step.
TEST(CheckEngine, StepTakenTwiceIsFound) {
  const CheckEngine::Options twice{.defect = CheckDefect::kStepTwice, .defect_step = StepNumber(150)};
  {
    CheckFleet fleet(kSmall, 3, 1);
    const std::string culprit = fleet.join(twice);
    fleet->run_for(20);
    EXPECT_EQ(fleet.failure(), std::nullopt);
    ASSERT_GT(fleet.engine(culprit).step()->value, 150u);
    const std::string name =
        "node " + std::to_string(fleet->member(culprit).member()->self().node.value) + ":";
    fleet->kill("m1");
    fleet->run_for(10);
    for (const auto& [machine, member] : fleet->members()) {
      ASSERT_TRUE(member->engine().failure().has_value()) << machine;
      EXPECT_NE(member->engine().failure()->got.find(name), std::string::npos)
          << member->engine().failure()->message();
    }
    EXPECT_NE(fleet.failure(), std::nullopt);
  }
  CheckConfig ending = kSmall;
  ending.steps = 200;
  CheckFleet fleet(ending, 3, 1);
  const std::string culprit = fleet.join(twice);
  fleet->run_for(40);
  EXPECT_TRUE(fleet.engine(culprit).failure().has_value());
}

// Claim: a draining member works on until its things are elsewhere, then leaves. No step is lost or done
// again.
TEST(CheckEngine, DrainGivesEverythingAway) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CheckFleet fleet(kSmall, 3, seed);
    fleet->run_for(5);
    const StepNumber before = fleet.steps()->second;
    ASSERT_GT(fleet.engine("m2").things_held(), 0u);
    fleet->member("m2").drain("it was told to");
    fleet->run_for(5);
    EXPECT_TRUE(fleet->member("m2").done()) << "seed " << seed;
    EXPECT_EQ(fleet.engine("m1").things_held() + fleet.engine("m3").things_held(), 8u);
    EXPECT_EQ(fleet.failure(), std::nullopt) << *fleet.failure();
    EXPECT_GT(fleet.steps()->first.value, before.value + 20) << "seed " << seed;
  }
}

// Claim: a run that is stopped ends at every member without a failure. Nobody is left then.
TEST(CheckEngine, StopEndsEveryMember) {
  CheckFleet fleet(kSmall, 4, 1);
  fleet->run_for(5);
  fleet->stop("somebody said so");
  fleet->run_for(5);
  EXPECT_TRUE(fleet->leader()->stopped());
  for (const auto& [machine, member] : fleet->members()) {
    EXPECT_TRUE(member->done()) << machine;
    EXPECT_EQ(member->engine().failure(), std::nullopt);
  }
}

// Claim: a member that gets an impossible message of one that serves names it and the rule. It is word
// against word: both live, the view changes, and all go on.
TEST(CheckEngine, BrokenRulesAreNamed) {
  CheckFleet fleet(kSmall, 3, 1);
  fleet->run_for(5);
  const net::PeerId victim = fleet->member("m1").member()->self();
  const net::PeerId culprit = fleet->member("m2").member()->self();
  const Epoch view = fleet->leader()->view().epoch();
  ASSERT_TRUE(fleet->member("m2").member()->send(
      victim, host::Lane::kControl, {.channel = kCheckChannel, .body = "\xff\xff", .payload = {}},
      fleet->timeline().now()));
  fleet->run_for(5);
  const std::string told = "accused node " + std::to_string(culprit.node.value);
  EXPECT_NE(fleet->log().find(told), std::string::npos) << fleet->log();
  EXPECT_NE(fleet->log().find("cannot read a message of a collective operation"), std::string::npos);
  EXPECT_GT(fleet->leader()->view().epoch(), view);
  EXPECT_EQ(fleet.failure(), std::nullopt);
  const StepNumber before = fleet.steps()->second;
  fleet->run_for(5);
  EXPECT_EQ(fleet->lives(), 3U);
  for (const auto& [machine, member] : fleet->members()) EXPECT_GT(*fleet.engine(machine).step(), before);
}

// Claim: members go on without a coordinator for thousands of steps. It takes them back when it comes.
TEST(CheckEngine, FastStepsOutrunAnAbsentCoordinator) {
  CheckFleet fleet({.things = 4, .elements = 16}, 2, 1);
  fleet->internet().set_default_path({.delay = from_milliseconds(0.1)});
  fleet->run_for(5);
  const StepNumber before = fleet.steps()->second;
  const Incarnation life = fleet->member("m1").member()->self().incarnation;
  fleet->kill_coordinator_for("c1", from_seconds(10));
  fleet->run_for(9);
  const StepNumber without = fleet.steps()->first;
  EXPECT_GT(without.value, before.value + 5000);
  fleet->run_for(6);
  EXPECT_EQ(fleet.failure(), std::nullopt) << *fleet.failure();
  ASSERT_NE(fleet->member("m1").member(), nullptr) << fleet->log();
  EXPECT_EQ(fleet->member("m1").member()->self().incarnation, life) << fleet->log();
  EXPECT_GT(fleet.steps()->first, without) << fleet->log();
  EXPECT_GE(fleet->leader()->marks()->committed(), without) << fleet->log();
}

// Claim: members that come after all others died at once go on at the committed step, two minutes later: the
// others might have been out of reach.
TEST(CheckEngine, RunOutlivesItsMembers) {
  CheckFleet fleet(kSmall, 3, 1);
  fleet->run_for(10);
  const StepNumber committed = fleet->leader()->marks()->committed();
  EXPECT_GT(committed.value, 100u);
  for (const char* const machine : {"m1", "m2", "m3"}) fleet->kill(machine);
  fleet->run_for(3);
  for (int i = 0; i < 3; ++i) fleet.join();
  fleet->run_for(simulation::Fleet::kPatience.seconds() + 10);
  EXPECT_EQ(fleet.failure(), std::nullopt) << *fleet.failure();
  ASSERT_TRUE(fleet.steps().has_value());
  EXPECT_GT(fleet.steps()->first.value, committed.value + 100);
}

// Claim: where the others have too little room for what a killed member held, they wait for another life of
// its node. It holds nothing of what the life before it held, and takes it over at the step of the others.
TEST(CheckEngine, NewLifeOfANodeTakesOverWhereOthersAre) {
  CheckFleet fleet(
      kSmall, 3, 1, Driver::kPrompt,
      {.memory_bytes = 64 * (kSmall.things + 2) / 3, .identity = simulation::Identity::kCertified});
  fleet->run_for(5);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(fleet.steps().has_value());
    const StepNumber before = fleet.steps()->second;
    EXPECT_GT(before.value, 0U);
    // A node that begins anew is another machine in the simulation.
    const std::string before_it = i == 0 ? "m2" : "m" + std::to_string(3 + i);
    fleet->kill_for(before_it, from_seconds(5));
    fleet->run_for(4);
    EXPECT_EQ(fleet->leader()->phase(), cluster::CoordinatorPhase::kShort);
    fleet->run_for(15);
    ASSERT_EQ(fleet.failure(), std::nullopt) << *fleet.failure();
    ASSERT_TRUE(fleet.steps().has_value());
    EXPECT_GT(fleet.steps()->first.value, before.value + 10);
    EXPECT_GT(fleet.engine("m" + std::to_string(4 + i)).things_held(), 0U);
  }
}

// Claim: sums larger than a chunk, cut unevenly and exchanged in two rounds on the bulk lane, are right, too.
TEST(CheckEngine, LargeSumsAreRight) {
  CheckFleet fleet({.things = 5, .elements = 1'000'003, .steps = 5}, 5, 1);
  fleet->run_for(30);
  EXPECT_EQ(fleet.failure(), std::nullopt) << *fleet.failure();
  for (const auto& [machine, member] : fleet->members()) {
    EXPECT_EQ(fleet.engine(machine).step(), StepNumber(5)) << machine;
    // Two rounds send 2 (n-1)/n of the tensor; directly it would be n-1 times the tensor.
    EXPECT_LT(fleet.engine(machine).check_counters().sent_bytes, 5 * 2 * 4'000'012u);
  }
}

// Claim: members without work (more of them than things) do not burden the others, and take over.
TEST(CheckEngine, MembersWithoutThingsStandBy) {
  CheckFleet fleet({.things = 2, .elements = 64, .pause_ms = 50}, 4, 1);
  fleet->run_for(6);
  for (int i = 0; i < 3; ++i) {
    const StepNumber before = fleet.steps()->second;
    const auto holder = std::ranges::find_if(
        fleet->members(), [&](const auto& one) { return fleet.engine(one.first).things_held() != 0; });
    ASSERT_NE(holder, fleet->members().end());
    fleet->kill(holder->first);
    fleet->run_for(6);
    ASSERT_TRUE(fleet.steps().has_value());
    EXPECT_GT(fleet.steps()->first, before);
  }
  EXPECT_EQ(fleet.failure(), std::nullopt) << *fleet.failure();
}

}  // namespace
}  // namespace gossamer::check
