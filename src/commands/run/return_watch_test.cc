// SPDX-License-Identifier: Apache-2.0
#include "commands/run/return_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gossamer::commands {
namespace {

using ::testing::HasSubstr;

constexpr Instant minutes(std::int64_t count) { return {count * 60'000'000'000}; }

ReturnWatch::Facts back(std::set<NodeId> serving) {
  return {.start = StepNumber(100),
          .unfinished = StepNumber(120),
          .owners = {NodeId(2), NodeId(3), NodeId(4)},
          .serving = std::move(serving)};
}

// The fleet waits while an owner is missing that may have the rest of a newer step. An owner that has been
// back counts, also when it has gone again.
TEST(ReturnWatch, WaitsForTheOwners) {
  ReturnWatch watch;
  EXPECT_EQ(
      watch.waits(back({NodeId(2), NodeId(9)}), minutes(1)),
      "pieces of step 120 are missing, which node 3, 4 may have; after ten minutes the run goes on from "
      "step 100");
  EXPECT_THAT(watch.waits(back({NodeId(3)}), minutes(2)), HasSubstr("which node 4 may"));
  EXPECT_EQ(watch.waits(back({NodeId(4)}), minutes(3)), "");
}

// The time begins when the fleet could begin, and not when the lead does.
TEST(ReturnWatch, WaitsTenMinutes) {
  ReturnWatch watch;
  for (std::int64_t minute = 500; minute < 510; ++minute)
    EXPECT_NE(watch.waits(back({NodeId(2)}), minutes(minute)), "") << minute;
  EXPECT_EQ(watch.waits(back({NodeId(2)}), minutes(510)), "");
}

// Nobody waits while no member is there. The ten minutes begin anew with the next one: it may be alone for a
// moment only.
TEST(ReturnWatch, BeginsAnewAfterNobodyWasThere) {
  ReturnWatch watch;
  for (std::int64_t minute = 1; minute < 4; ++minute)
    EXPECT_NE(watch.waits(back({NodeId(2)}), minutes(minute)), "") << minute;
  for (std::int64_t minute = 600; minute < 610; ++minute)
    EXPECT_NE(watch.waits(back({NodeId(2)}), minutes(minute)), "") << minute;
  EXPECT_EQ(watch.waits(back({NodeId(2)}), minutes(610)), "");
}

// A machine that owned nothing comes first: the fleet waits for the owners that no lead has heard since they
// were alone, before a piece of a newer step is there. One of them that has brought nothing has none.
TEST(ReturnWatch, WaitsForUnheardOwners) {
  ReturnWatch watch;
  ReturnWatch::Facts facts = back({NodeId(9)});
  facts.unfinished.reset();
  facts.unheard = {NodeId(2), NodeId(4)};
  EXPECT_EQ(watch.waits(facts, minutes(1)),
            "node 2, 4 may have steps after 100; after ten minutes the run goes on from there");
  facts.serving = {NodeId(2)};
  EXPECT_THAT(watch.waits(facts, minutes(2)), HasSubstr("node 4 may"));
  facts.unfinished = StepNumber(120);
  EXPECT_THAT(watch.waits(facts, minutes(3)), HasSubstr("which node 3, 4 may"));
  facts.serving = {NodeId(3), NodeId(4)};
  EXPECT_EQ(watch.waits(facts, minutes(4)), "");
}

// Without a piece of a newer step there is nothing to wait for.
TEST(ReturnWatch, WaitsForNothing) {
  ReturnWatch watch;
  ReturnWatch::Facts facts = back({NodeId(2)});
  facts.unfinished.reset();
  EXPECT_EQ(watch.waits(facts, minutes(1)), "");
}

}  // namespace
}  // namespace gossamer::commands
