// SPDX-License-Identifier: Apache-2.0
#include "commands/run/report_tallies.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace gossamer::commands {
namespace {

engine::MemberStep step(std::uint64_t epoch, std::uint64_t at, std::size_t rank, std::size_t members,
                        double loss, engine::SentBytes sent = {}) {
  return {.epoch = Epoch(epoch),
          .step = StepNumber(at),
          .rank = rank,
          .members = members,
          .loss = loss,
          .sent = sent};
}

class StepTallyTest : public ::testing::Test {
 protected:
  void tell(std::uint64_t node, const engine::MemberStep& step) { tally_.add(NodeId(node), step); }
  std::string take() {
    std::string text;
    for (const StepLoss& one : tally_.take())
      text += std::to_string(one.step.value) + ":" + std::to_string(std::lround(one.loss * 10)) + " ";
    return text;
  }

  StepTally tally_;
};

// A step is known when all members have told of it, with the sum of their losses. Each step is given out
// once, in order.
TEST_F(StepTallyTest, AddsUpWhatAllHaveTold) {
  EXPECT_EQ(take(), "");
  tell(2, step(1, 0, 0, 2, 0.5));
  EXPECT_EQ(take(), "");
  tell(3, step(1, 0, 1, 2, 0.2));
  tell(3, step(1, 1, 1, 2, 0.3));
  EXPECT_EQ(take(), "0:7 ");
  tell(2, step(1, 1, 0, 2, 0.3));
  tell(2, step(1, 2, 0, 2, 0.1));
  tell(3, step(1, 2, 1, 2, 0.1));
  EXPECT_EQ(take(), "1:6 2:2 ");
  EXPECT_EQ(take(), "");
}

// One member may be far ahead of another: nothing is left out.
TEST_F(StepTallyTest, WaitsForTheSlowest) {
  for (std::uint64_t at = 0; at < 5; ++at) tell(2, step(1, at, 0, 2, 0.5));
  EXPECT_EQ(take(), "");
  for (std::uint64_t at = 0; at < 5; ++at) tell(3, step(1, at, 1, 2, 0.1));
  EXPECT_EQ(take(), "0:6 1:6 2:6 3:6 4:6 ");
}

// Steps that died with a member are left out. A step that was done again by fewer members counts once, as
// they did it.
TEST_F(StepTallyTest, GoesOnWithoutTheDead) {
  tell(2, step(1, 0, 0, 2, 0.5));
  tell(3, step(1, 0, 1, 2, 0.5));
  tell(2, step(1, 1, 0, 2, 0.5));  // node 3 died before it told
  tell(3, step(1, 2, 1, 2, 0.9));  // it alone had applied step 2
  tell(2, step(4, 2, 0, 1, 0.4));
  EXPECT_EQ(take(), "0:10 2:4 ");
  tell(2, step(4, 2, 0, 1, 0.7));
  tell(2, step(4, 3, 0, 1, 0.3));
  EXPECT_EQ(take(), "3:3 ");
}

// A member was away, and the others went on. When it comes back it tells of the steps that were passed over.
// They are known to be whole then. A step that was done again is not among them.
TEST_F(StepTallyTest, KnowsWhatWasPassedOver) {
  for (std::uint64_t at = 0; at < 3; ++at) tell(2, step(1, at, 0, 2, 0.5));
  tell(2, step(2, 3, 0, 1, 0.5));
  EXPECT_EQ(take(), "3:5 ");
  EXPECT_FALSE(tally_.late());
  tell(3, step(1, 3, 1, 2, 0.5));
  tell(2, step(1, 3, 0, 2, 0.5));
  EXPECT_FALSE(tally_.late());
  tell(3, step(1, 2, 1, 2, 0.5));
  EXPECT_EQ(tally_.late(), StepNumber(2));
  tell(3, step(1, 1, 1, 2, 0.5));
  EXPECT_EQ(tally_.late(), StepNumber(1));
  EXPECT_EQ(take(), "");
}

// A member cannot tell for another, nor say that the others did not take part. Two that claim the same rank
// make no whole step.
TEST_F(StepTallyTest, NobodyTellsForOthers) {
  tell(2, step(1, 0, 1, 2, 7.0));
  tell(2, step(1, 0, 0, 2, 0.5));
  EXPECT_EQ(take(), "");
  tell(3, step(1, 0, 0, 2, 0.2));
  EXPECT_EQ(take(), "");
  tell(3, step(1, 0, 1, 2, 0.2));
  EXPECT_EQ(take(), "0:7 ");
  tell(2, step(1, 1, 0, 2, 0.5));
  tell(4, step(1, 1, 0, 1, 7.0));
  tell(4, step(1, 1, 1, 0, 7.0));
  EXPECT_EQ(take(), "");
}

// A run that goes on at a step knows no earlier one.
TEST(StepTally, BeginsWhereTheRunGoesOn) {
  StepTally tally(StepNumber(5));
  tally.add(NodeId(2), step(1, 4, 0, 1, 0.5));
  tally.add(NodeId(2), step(1, 5, 0, 1, 0.5));
  const auto taken = tally.take();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].step, StepNumber(5));
  EXPECT_FALSE(tally.late());
}

// A loss that is no number any more is told too.
TEST_F(StepTallyTest, TakesAnyLoss) {
  tell(2, step(1, 0, 0, 1, std::nan("")));
  const auto first = tally_.take();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_TRUE(std::isnan(first[0].loss));
}

// Bytes are counted for each step of each member, over all of its lives.
TEST_F(StepTallyTest, TellsTheBytesOfAStep) {
  EXPECT_EQ(tally_.bytes_of_step().steps, 0);
  tell(1, step(1, 0, 0, 2, 0.5, {.steps = 100, .background = 10}));
  tell(1, step(1, 1, 0, 2, 0.5, {.steps = 200, .background = 20}));
  tell(2, step(1, 0, 1, 2, 0.5, {.steps = 120, .background = 0}));
  tell(2, step(1, 1, 1, 2, 0.5, {.steps = 80, .background = 10}));  // told by its next life
  EXPECT_EQ(take(), "0:10 1:10 ");
  EXPECT_DOUBLE_EQ(tally_.bytes_of_step().steps, (200.0 + 120 + 80) / 4);
  EXPECT_DOUBLE_EQ(tally_.bytes_of_step().background, (20.0 + 0 + 10) / 4);
}

engine::FleetRecovery recovery(std::uint64_t epoch, std::uint64_t step, double seconds) {
  return {.epoch = Epoch(epoch),
          .step = StepNumber(step),
          .cause = "box 7 was lost",
          .total = from_seconds(seconds),
          .detect = {},
          .agree = {},
          .load = {},
          .replay = {},
          .steps_replayed = 5};
}

// A recovery that several members tell is one. It has the figures of the member that it cost most, and is
// given out once, when all have had time to tell.
TEST(RecoveryTally, OneForAllThatTell) {
  RecoveryTally tally;
  EXPECT_TRUE(tally.take(StepNumber(99)).empty());
  tally.add(recovery(4, 20, 1.5));
  EXPECT_TRUE(tally.take(StepNumber(20)).empty());
  tally.add(recovery(4, 20, 2.5));
  tally.add(recovery(4, 20, 0.5));
  tally.add(recovery(6, 30, 1));
  const auto taken = tally.take(StepNumber(21));
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].epoch, Epoch(4));
  EXPECT_EQ(taken[0].total, from_seconds(2.5));
  tally.add(recovery(4, 20, 9));
  EXPECT_EQ(tally.take(StepNumber(99)).size(), 1U);
  EXPECT_TRUE(tally.take(StepNumber(99)).empty());
}

}  // namespace
}  // namespace gossamer::commands
