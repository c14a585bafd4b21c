// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/step_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace gossamer::sparse_engine {
namespace {

// The order of steps `first` to `end`, as letters of rounds and numbers of steps. `drain`: a step that begins
// only when no other is in flight.
std::string order_of(StepOrder order, std::uint64_t first, std::uint64_t end, std::uint64_t drain = 0) {
  std::string out;
  order.restart(StepNumber(first));
  while (true) {
    const std::uint64_t begins = order.next_step().value;
    const auto item = order.next(begins < end && (begins != drain || order.idle()));
    if (!item) return out;
    out += static_cast<char>('a' + item->round);
    out += std::to_string(item->step.value) + " ";
    order.computed(*item);
  }
}

// Claim: without staleness steps come one after the other.
TEST(StepOrder, OneAfterTheOther) {
  EXPECT_EQ(order_of({4, 0}, 0, 3), "a0 b0 c0 d0 a1 b1 c1 d1 a2 b2 c2 d2 ");
  EXPECT_EQ(order_of({2, 0}, 7, 9), "a7 b7 a8 b8 ");
}

// Claim: with staleness 1 a step begins when the one before the last has been applied, and before the last
// is. A step that began alone ends alone, and a step may wait for all before it.
TEST(StepOrder, TwoInFlight) {
  EXPECT_EQ(order_of({4, 1}, 0, 4), "a0 b0 a1 c0 b1 d0 a2 c1 b2 d1 a3 c2 b3 d2 c3 d3 ");
  EXPECT_EQ(order_of({4, 1}, 5, 7), "a5 b5 a6 c5 b6 d5 c6 d6 ");
  EXPECT_EQ(order_of({4, 1}, 0, 4, 2), "a0 b0 a1 c0 b1 d0 c1 d1 a2 b2 a3 c2 b3 d2 c3 d3 ");
  EXPECT_EQ(order_of({6, 1}, 0, 3), "a0 b0 c0 a1 d0 b1 e0 c1 f0 a2 d1 b2 e1 c2 f1 d2 e2 f2 ");
}

// Claim: a step's last round comes after the last round of the step before it, for any number of rounds. It
// comes before the last-but-one round of the step after it. So members that keep to the order are at most one
// step apart.
TEST(StepOrder, NobodyIsTwoStepsBehind) {
  for (const std::size_t rounds : {4U, 6U, 8U, 12U}) {
    StepOrder order(rounds, 1);
    order.restart(StepNumber());
    std::uint64_t applied = 0;
    while (applied < 50) {
      const auto item = order.next(true);
      ASSERT_TRUE(item.has_value());
      if (item->round + 2 == rounds) {
        EXPECT_EQ(item->step.value, applied) << rounds;
      }
      if (item->round == 0) {
        EXPECT_LE(item->step.value, applied + 1) << rounds;
      }
      if (item->round + 1 == rounds) {
        EXPECT_EQ(item->step.value, applied);
        EXPECT_EQ(order.rounds_left(), 1U);
        ++applied;
      }
      order.computed(*item);
    }
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
