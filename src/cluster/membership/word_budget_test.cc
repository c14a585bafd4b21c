// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/word_budget.h"

#include <gtest/gtest.h>

#include "cluster/membership/request_budget.h"

namespace gossamer::cluster {
namespace {

// Claim: a member may say so many words in a moment and no more, so many a second for ever, and fewer of
// those that are large.
TEST(WordBudget, Counts) {
  WordBudget budget;
  Instant now{1'000'000'000};
  int said = 0;
  while (budget.take(0, now)) ++said;
  EXPECT_EQ(said, static_cast<int>(WordBudget::kAtOnce));
  for (int ms = 1; ms <= 10'000; ++ms) {
    now = now + from_milliseconds(1);
    EXPECT_TRUE(budget.take(0, now) && budget.take(0, now)) << ms;
  }
  now = now + from_seconds(100);
  int large = 0;
  while (budget.take(1ULL << 20, now)) ++large;
  EXPECT_EQ(large, static_cast<int>(WordBudget::kAtOnce / 257));
}

// Claim: what a member has to say when it is back is within the budget: the beats of 10 s, each with marks of
// thousands of tracks, and all that it may ask for.
TEST(WordBudget, LongSilence) {
  WordBudget budget;
  for (int i = 0; i < 10 * 10; ++i) ASSERT_TRUE(budget.take(128ULL << 10, Instant{1})) << i;
  for (int i = 0; i < static_cast<int>(RequestBudget::kAtOnce); ++i)
    ASSERT_TRUE(budget.take(300, Instant{1})) << i;
  EXPECT_LT(RequestBudget::kPerSecond + 100, WordBudget::kPerSecond);
}

}  // namespace
}  // namespace gossamer::cluster
