// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/request_budget.h"

#include <gtest/gtest.h>

namespace gossamer::cluster {
namespace {

// Claim: a member may make kAtOnce requests in a moment and no more, kPerSecond for ever, and after a rest as
// many at once as in the beginning.
TEST(RequestBudget, Counts) {
  RequestBudget budget;
  Instant now{1'000'000'000};
  for (int round = 0; round < 2; ++round) {
    int taken = 0;
    while (budget.take(now)) ++taken;
    EXPECT_EQ(taken, static_cast<int>(RequestBudget::kAtOnce));
    EXPECT_EQ(budget.taken(), RequestBudget::kAtOnce);
    now = now + from_seconds(100);
  }
  while (budget.take(now)) continue;
  for (int ms = 1; ms <= 10'000; ++ms) {
    now = now + from_milliseconds(1);
    EXPECT_TRUE(budget.take(now)) << ms;
  }
}

}  // namespace
}  // namespace gossamer::cluster
