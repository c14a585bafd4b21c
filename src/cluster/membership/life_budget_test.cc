// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/life_budget.h"

#include <gtest/gtest.h>

namespace gossamer::cluster {
namespace {

// Claim: a node begins six lives at once, and then one every ten seconds. Others are not held back by it.
TEST(LifeBudget, AFewThenSlowly) {
  LifeBudget budget;
  const auto begun_in = [&](double from_s, double to_s) {
    int begun = 0;
    for (double s = from_s; s < to_s; s += 0.1)
      begun += budget.take(NodeId(7), Instant() + from_seconds(s)) ? 1 : 0;
    return begun;
  };
  EXPECT_EQ(begun_in(0, 1), 6);
  EXPECT_EQ(begun_in(1, 9.9), 0);
  EXPECT_TRUE(budget.take(NodeId(8), Instant() + from_seconds(9.9)));
  EXPECT_EQ(begun_in(9.95, 110.1), 11);
}

// Claim: a node that rests has its whole budget again, and no more.
TEST(LifeBudget, FillsUp) {
  LifeBudget budget;
  for (int round = 0; round < 3; ++round) {
    const Instant now = Instant() + from_seconds(1000.0 * round);
    for (int i = 0; i < 6; ++i) EXPECT_TRUE(budget.take(NodeId(7), now));
    EXPECT_FALSE(budget.take(NodeId(7), now));
  }
}

// Claim: after two short lives the next one waits before it serves, twice as long each time, at most a
// minute. A life that lasts ends that.
TEST(LifeBudget, ShortLivesWait) {
  LifeBudget budget;
  const NodeId node(7);
  Instant now;
  const auto waits = [&](double lasted_s) {
    const Instant began = now;
    now = now + from_seconds(lasted_s);
    budget.ended(node, began, now);
    return budget.serves_from(node) ? (*budget.serves_from(node) - now).ns / 100'000'000 : -1;
  };
  EXPECT_EQ(budget.serves_from(node), std::nullopt);
  for (const int tenths : {0, 5, 10, 20, 40, 80, 160, 320, 600, 600}) EXPECT_EQ(waits(0.1), tenths);
  EXPECT_EQ(waits(60), -1);
  EXPECT_EQ(waits(59), 0);
  EXPECT_EQ(budget.serves_from(NodeId(8)), std::nullopt);
}

// Claim: short lives count while less than 60 s lie between the wait of one and the end of the next. A node
// whose lives last 11 s waits as one does whose lives end at once.
TEST(LifeBudget, ShortLivesAreForgottenLate) {
  LifeBudget budget;
  const NodeId node(7);
  Instant now;
  const auto waits_ms = [&](double idle_s, double lasted_s) {
    const Instant began = now + from_seconds(idle_s);
    now = began + from_seconds(lasted_s);
    budget.ended(node, began, now);
    const Duration wait = budget.serves_from(node).value_or(now) - now;
    now = now + wait;
    return wait.ns / 1'000'000;
  };
  for (const int ms : {0, 500, 1000, 2000, 4000, 8000, 16'000, 32'000, 60'000, 60'000})
    EXPECT_EQ(waits_ms(0, 11), ms);
  EXPECT_EQ(waits_ms(48, 11), 60'000);
  EXPECT_EQ(waits_ms(50, 11), 0) << "forgotten";
  EXPECT_EQ(waits_ms(50, 9), 500) << "not yet";
}

}  // namespace
}  // namespace gossamer::cluster
