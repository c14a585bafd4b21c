// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/word_budget.h"

#include <gtest/gtest.h>

#include "cluster/membership/request_budget.h"

namespace gossamer::cluster {
namespace {

// Claim: a member may say 16,384 words in a moment and no more, and 2048 a second for ever and no more.
TEST(WordBudget, Counts) {
  WordBudget budget;
  Instant now{1'000'000'000};
  const auto said = [&] {
    int words = 0;
    while (budget.take(0, now)) ++words;
    return words;
  };
  EXPECT_EQ(said(), 16'384);
  for (int s = 1; s <= 10; ++s) {
    now = now + from_seconds(1);
    EXPECT_EQ(said(), 2048) << s;
  }
  for (int ms = 1; ms <= 10'000; ++ms) {
    now = now + from_milliseconds(1);
    EXPECT_TRUE(budget.take(0, now) && budget.take(0, now)) << ms;
  }
}

// Claim: words of 1 MiB may be 16 in a moment and two a second for ever, though the words alone are far below
// what may be said.
TEST(WordBudget, CountsBytes) {
  WordBudget budget;
  Instant now{1'000'000'000};
  const auto said = [&] {
    int large = 0;
    while (budget.take(1ULL << 20, now)) ++large;
    return large;
  };
  EXPECT_EQ(said(), 16);
  for (int i = 0; i < 100; ++i) {
    now = now + from_seconds(1);
    EXPECT_EQ(said(), 2) << i;
  }
  EXPECT_TRUE(budget.take(0, now));  // a small one is still welcome
  now = now + from_seconds(1000);
  EXPECT_EQ(said(), 16);
}

// Claim: what a member has to say when it is back is within the budget: the beats of 10 s, each with marks of
// thousands of tracks, and all that it may ask for. So is what it may say for ever: ten such beats a second.
TEST(WordBudget, LongSilence) {
  WordBudget budget;
  for (int i = 0; i < 10 * 10; ++i) ASSERT_TRUE(budget.take(128ULL << 10, Instant{1})) << i;
  for (int i = 0; i < static_cast<int>(RequestBudget::kAtOnce); ++i)
    ASSERT_TRUE(budget.take(300, Instant{1})) << i;
  EXPECT_LT(RequestBudget::kPerSecond + 100, WordBudget::kPerSecond);
  for (int i = 1; i < 1000; ++i) {
    const Instant now{i * from_milliseconds(100).ns};
    ASSERT_TRUE(budget.take(128ULL << 10, now)) << i;
    for (int ask = 0; ask < static_cast<int>(RequestBudget::kPerSecond / 10); ++ask)
      ASSERT_TRUE(budget.take(300, now)) << i;
  }
}

}  // namespace
}  // namespace gossamer::cluster
