// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/fleet/pipeline_engine.h"

#include <gtest/gtest.h>

#include <functional>

#include "engines/pipeline/fleet/test_toy_fleet.h"

namespace gossamer::pipeline {
namespace {

constexpr std::uint64_t kSteps = 12;

// Claim: one, two, four and six members end with the weights of one process, whatever stages they have, and
// peers have the same bits.
TEST(PipelineEngine, EqualsOneProcess) {
  const PipelineJob job = toy_job(kSteps);
  const ToyWeights alone = toy_alone(job);
  struct Case {
    std::size_t members;
    std::optional<std::uint32_t> stages;
  };
  for (const Case& one : {Case{1, {}}, Case{2, 1}, Case{2, 2}, Case{4, {}}, Case{4, 4}, Case{6, {}}}) {
    ToyFleet fleet(job, {.members = one.members, .stages = one.stages});
    ASSERT_TRUE(fleet.run_to(kSteps)) << one.members << " members are at step " << fleet.step() << ", "
                                      << fleet.fleet().failure().value_or("no failure");
    fleet.fleet().run_for(1);
    EXPECT_LT(distance(alone, fleet.weights()), 1e-12) << one.members << " members";
  }
}

// Claim: the same with gradients that are too large to be sent to all peers at once.
TEST(PipelineEngine, LargeStages) {
  const PipelineJob job = toy_job(3, {.width = 64, .hidden = 4096});
  ToyFleet fleet(job, {.members = 4});
  ASSERT_TRUE(fleet.run_to(3)) << "at step " << fleet.step();
  fleet.fleet().run_for(1);
  EXPECT_LT(distance(toy_alone(job), fleet.weights()), 1e-12);
}

// Claim: members wait for one that computes far more slowly, in loading its stage, too.
TEST(PipelineEngine, SlowMembers) {
  const PipelineJob job = toy_job(kSteps);
  const ToyWeights alone = toy_alone(job);
  for (std::size_t slow = 0; slow < 4; ++slow) {
    ToyFleet fleet(job, {.members = 4, .slow = slow});
    ASSERT_TRUE(fleet.run_to(kSteps, 600))
        << "member " << slow << " is slow, and all are at step " << fleet.step();
    fleet.fleet().run_for(2);
    EXPECT_LT(distance(alone, fleet.weights()), 1e-12) << slow;
  }
}

// Claim: if the run is to end, all save the state before the same step, and leave.
TEST(PipelineEngine, SavesBeforeItEnds) {
  const PipelineJob job = toy_job(100);
  ToyFleet fleet(job, {.members = 4, .path = {.delay = from_milliseconds(3)}});
  ASSERT_TRUE(fleet.run_to(5));
  fleet.fleet().stop("enough");
  fleet.fleet().run_for(5);
  ASSERT_EQ(fleet.saved().size(), 1U);
  const auto& [step, weights] = *fleet.saved().begin();
  EXPECT_GE(step, 6U);
  PipelineJob until = job;
  until.end = StepNumber(step);
  EXPECT_LT(distance(toy_alone(until), weights), 1e-12);
}

// Claim: a member that is killed at any moment costs a step that is done again at most. The others end with
// the weights of one process.
TEST(PipelineEngine, KilledAtAnyMoment) {
  const PipelineJob job = toy_job(kSteps);
  const ToyWeights alone = toy_alone(job);
  for (std::uint64_t moment = 0; moment < 60; ++moment) {
    ToyFleet fleet(job, {.members = 4,
                         .seed = 1 + moment,
                         .path = {.delay = from_milliseconds(3),
                                  .jitter = from_milliseconds(static_cast<double>(moment % 3 * 4)),
                                  .loss = moment % 2 == 0 ? 0 : 0.02}});
    ASSERT_TRUE(fleet.run_to(2));
    fleet.fleet().run_for(0.003 * static_cast<double>(moment));
    const std::string victim = fleet.machines()[moment % 4];
    const std::uint64_t before = fleet.step();
    fleet.fleet().kill(victim);
    ASSERT_TRUE(fleet.run_to(kSteps)) << "moment " << moment << " at step " << fleet.step() << ", "
                                      << fleet.fleet().failure().value_or("no failure");
    fleet.fleet().run_for(1);
    EXPECT_LT(distance(alone, fleet.weights()), 1e-12)
        << "moment " << moment << ", killed at step " << before;
    for (const std::string& machine : fleet.fleet().member_machines())
      EXPECT_LE(fleet.engine(machine).pipeline_counters().again, 1U) << "moment " << moment;
  }
}

// Claim: a member without a stage cannot hold the others up, whatever it says. It is blamed, and they go on.
TEST(PipelineEngine, WordsOfAMemberWithoutAStage) {
  const PipelineJob job = toy_job(kSteps);
  const std::vector<std::function<StepMessage(const Attempt&)>> words{
      [](const Attempt& here) { return StepMessage{here, Credit{1}}; },
      [](const Attempt& here) { return StepMessage{here, AllBack{}}; },
      [](const Attempt& here) { return StepMessage{here, Forward{0}}; },
      [](const Attempt& here) { return StepMessage{here, Backward{0}}; },
      [](Attempt later) {
        ++later.step;
        return StepMessage{later, Credit{1}};
      }};
  for (const auto& word : words) {
    ToyFleet fleet(job, {.members = 4, .path = {.delay = from_milliseconds(3)}});
    ASSERT_TRUE(fleet.run_to(1));
    const std::string joiner = fleet.fleet().join(fleet.new_member());
    for (int i = 0; i < 200 && fleet.engine(joiner).step_member() == nullptr; ++i)
      fleet.fleet().run_for(0.02);
    ASSERT_TRUE(fleet.run_to(3));
    ASSERT_FALSE(fleet.engine(joiner).step_member()->stage().has_value());
    const auto again = [&] { return fleet.engine(fleet.machines()[0]).pipeline_counters().again; };
    const std::uint64_t before = again();
    for (const std::string& machine : fleet.machines()) {
      const Attempt here = fleet.engine(machine).step_member()->attempt();
      fleet.fleet().member(joiner).say_to(fleet.fleet().member(machine).node(), host::Lane::kBulk,
                                          write_step_message(word(here)));
    }
    ASSERT_TRUE(fleet.run_to(kSteps)) << "at step " << fleet.step();
    EXPECT_LE(again(), before + 2) << "its fence and its return may each cost a step";
    fleet.fleet().run_for(1);
    EXPECT_LT(distance(toy_alone(job), fleet.weights()), 1e-12);
  }
}

// Claim: a member that reports another sum than its peer costs at most one of the two. The run goes on with
// the weights of one process.
TEST(PipelineEngine, ALiarAtRest) {
  const PipelineJob job = toy_job(kSteps);
  const ToyWeights alone = toy_alone(job);
  for (std::uint64_t moment = 0; moment < 20; ++moment) {
    ToyFleet fleet(job,
                   {.members = 6, .stages = 2, .seed = 1 + moment, .path = {.delay = from_milliseconds(3)}});
    ASSERT_TRUE(fleet.run_to(2));
    fleet.fleet().run_for(0.004 * static_cast<double>(moment));
    fleet.fleet().member(fleet.machines()[0]).falsify([](membership::ToCoordinator& said) {
      if (!said.has_frozen()) return;
      auto report = read_report(said.frozen().report(), Epoch(said.frozen().installed()));
      if (!report || !report->sum) return;
      report->sum->record.hash += 1;
      said.mutable_frozen()->set_report(write_report(*report));
    });
    fleet.fleet().kill(fleet.machines()[5]);
    ASSERT_TRUE(fleet.run_to(kSteps)) << "moment " << moment << " at step " << fleet.step();
    fleet.fleet().run_for(1);
    EXPECT_LT(distance(alone, fleet.weights()), 1e-12) << moment;
  }
}

}  // namespace
}  // namespace gossamer::pipeline
