// SPDX-License-Identifier: Apache-2.0
#include "host/sim/compute.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "host/sim/clock.h"

namespace gossamer::host {
namespace {

using Order = std::vector<int>;

std::vector<Order> orders(std::uint64_t seed, int runs) {
  SimCompute compute({.workers = 3, .seed = seed});
  std::vector<Order> all;
  for (int i = 0; i < runs; ++i) {
    all.emplace_back();
    compute.run([&](int worker) { all.back().push_back(worker); });
  }
  return all;
}

// All six orders of three workers come up, and the same seed repeats them.
TEST(SimCompute, SeedDecidesTheOrder) {
  const auto all = orders(5, 100);
  EXPECT_EQ(std::set<Order>(all.begin(), all.end()).size(), 6U);
  EXPECT_EQ(all, orders(5, 100));
  EXPECT_NE(all, orders(6, 100));
}

// A task that starts a run is our bug.
TEST(SimComputeDeathTest, RunInsideATask) {
  SimCompute compute({.workers = 2});
  EXPECT_DEATH(compute.run([&](int) { compute.run([](int) {}); }), "CHECK failed");
}

// Time stands still unless moved, and each clock moves by what it was told.
TEST(SimClock, MovesOnlyWhenTold) {
  SimClock clock;
  const Instant start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(from_seconds(2.5));
  EXPECT_EQ(clock.now() - start, from_seconds(2.5));
  EXPECT_EQ(clock.process_cpu(), Duration{});
  EXPECT_EQ(clock.wall_seconds(), SimClock::kWallStart + 2.5);
  clock.use_cpu(from_seconds(1));
  EXPECT_EQ(clock.process_cpu(), from_seconds(1));
  EXPECT_EQ(clock.now() - start, from_seconds(2.5));
}

}  // namespace
}  // namespace gossamer::host
