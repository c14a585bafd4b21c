// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/request_budget.h"

#include <gtest/gtest.h>

namespace gossamer::cluster {
namespace {

// Claim: a member may make 4096 requests in a moment and no more, 1024 a second for ever and no more, and
// after a rest as many at once as in the beginning.
TEST(RequestBudget, Counts) {
  RequestBudget budget;
  Instant now{1'000'000'000};
  const auto taken = [&] {
    int requests = 0;
    while (budget.take(now)) ++requests;
    return requests;
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(taken(), 4096);
    EXPECT_EQ(budget.taken(), 4096);
    now = now + from_seconds(100);
  }
  EXPECT_EQ(taken(), 4096);
  for (int s = 1; s <= 10; ++s) {
    now = now + from_seconds(1);
    EXPECT_EQ(taken(), 1024) << s;
  }
  for (int ms = 1; ms <= 10'000; ++ms) {
    now = now + from_milliseconds(1);
    EXPECT_TRUE(budget.take(now)) << ms;
  }
}

}  // namespace
}  // namespace gossamer::cluster
