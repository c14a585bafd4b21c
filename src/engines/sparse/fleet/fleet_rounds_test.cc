// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_rounds.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace gossamer::sparse_engine {
namespace {

std::vector<Slices> gifts(const std::string& text) { return std::vector<Slices>{Slices{Slice::of(text)}}; }

// Claim: a round waits for the gifts of the round before, takes them once, and the first round of a step
// waits for nothing.
TEST(FleetRounds, TakeTheGiftsOfTheRoundBefore) {
  FleetRounds rounds(1, 0);
  ASSERT_EQ(rounds.all().size(), 4U);
  rounds.restart(StepNumber(5));
  std::string taken;
  for (std::size_t i = 0; i < 8; ++i) {
    const auto item = rounds.order().next(true);
    ASSERT_TRUE(item);
    EXPECT_EQ(*item, (FleetRounds::Item{.step = StepNumber(5 + i / 4), .round = i % 4}));
    EXPECT_EQ(rounds.waits(*item), i % 4 > 0);
    if (i % 4 > 0) {
      rounds.give({.step = item->step, .round = item->round - 1}, gifts(std::to_string(i)));
      EXPECT_FALSE(rounds.waits(*item));
    }
    for (const Slices& one : rounds.begin(*item)) taken += joined(one);
    EXPECT_EQ(rounds.waits(*item), i % 4 > 0);
    EXPECT_EQ(rounds.computed(), *item);
    EXPECT_EQ(rounds.is_last(*item), i % 4 == 3);
  }
  EXPECT_EQ(taken, "123567");
}

// Claim: a step can be ended once its last round alone is left, and all have given what that round needs.
TEST(FleetRounds, KnowTheLastRoundThatLacksNothing) {
  FleetRounds rounds(1, 0);
  rounds.restart(StepNumber(5));
  const FleetRounds::Item last{.step = StepNumber(5), .round = 3};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rounds.last_of(StepNumber(5)), std::nullopt);
    if (i > 0) rounds.give({.step = StepNumber(5), .round = i - 1}, gifts("x"));
    EXPECT_EQ(rounds.last_of(StepNumber(5)), std::nullopt);
    EXPECT_FALSE(rounds.has_given_all(StepNumber(5)));
    (void)rounds.begin({.step = StepNumber(5), .round = i});
    (void)rounds.computed();
  }
  EXPECT_EQ(rounds.last_of(StepNumber(5)), std::nullopt);
  EXPECT_TRUE(rounds.has_given_all(StepNumber(5)));
  EXPECT_FALSE(rounds.has_given_all(StepNumber(4)));
  EXPECT_FALSE(rounds.has_given_all(StepNumber(6)));
  rounds.give({.step = StepNumber(5), .round = 2}, gifts("x"));
  EXPECT_EQ(rounds.last_of(StepNumber(5)), last);
  EXPECT_EQ(rounds.last_of(StepNumber(4)), std::nullopt);
  EXPECT_EQ(rounds.last_of(StepNumber(6)), std::nullopt);
  (void)rounds.begin(last);
  EXPECT_EQ(rounds.last_of(StepNumber(5)), std::nullopt);
}

// Claim: what was given in another layout is forgotten.
TEST(FleetRounds, ForgetTheGiftsOfAnotherLayout) {
  FleetRounds rounds(2, 1);
  const FleetRounds::Item item{.step = StepNumber(3), .round = 2};
  rounds.give({.step = StepNumber(3), .round = 1}, gifts("x"));
  EXPECT_FALSE(rounds.waits(item));
  rounds.forget();
  EXPECT_TRUE(rounds.waits(item));
}

}  // namespace
}  // namespace gossamer::sparse_engine
