// SPDX-License-Identifier: Apache-2.0
#include "engines/run/recent_mean.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace gossamer::engine {
namespace {

// Claim: the mean is over the last 100 steps, or over all while there are fewer, and 0 while there is none.
TEST(RecentMean, OfTheLastSteps) {
  RecentMean recent;
  EXPECT_EQ(recent.mean(), 0);
  recent.add(3);
  recent.add(5);
  EXPECT_EQ(recent.mean(), 4);
  for (int i = 0; i < 100; ++i) recent.add(7);
  EXPECT_DOUBLE_EQ(recent.mean(), 7);
  EXPECT_EQ(recent.losses().size(), 100U);
}

// Claim: one that goes on from the losses of another gives its bits, wherever the other stopped.
TEST(RecentMean, GoesOnWithTheSameBits) {
  for (const std::uint64_t stop : {1U, 50U, 99U, 100U, 101U, 237U}) {
    RecentMean whole;
    RecentMean before;
    for (std::uint64_t s = 0; s < stop; ++s) {
      whole.add(1.0 / static_cast<double>(s + 3));
      before.add(1.0 / static_cast<double>(s + 3));
    }
    const std::vector<double> losses = before.losses();
    RecentMean after(losses, stop);
    for (std::uint64_t s = stop; s < stop + 30; ++s) {
      whole.add(1.0 / static_cast<double>(s + 3));
      after.add(1.0 / static_cast<double>(s + 3));
      EXPECT_EQ(after.mean(), whole.mean()) << stop;
    }
  }
}

}  // namespace
}  // namespace gossamer::engine
