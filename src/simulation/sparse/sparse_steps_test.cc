// SPDX-License-Identifier: Apache-2.0
#include "simulation/sparse/sparse_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace gossamer::simulation {
namespace {

SparseStepsOptions small(double rate_mbps, double rtt_ms) {
  return {.members = 4,
          .features = 512,
          .labels = 512,
          .nonzeros = 8,
          .steps = 10,
          .rate_mbps = rate_mbps,
          .rtt = from_milliseconds(rtt_ms)};
}

// Claim: the bound is the page's. At n = 4, B = 256, H = 128 in bf16 it is 2 (n-1)/n B H 2 + 8 B (n-1) bytes.
// Its time is three one-way delays, the time of the bytes, and four of seven pieces of the computing.
TEST(SparseSteps, BoundIsThatOfThePage) {
  SparseStepsOptions options = small(1000, 20);
  EXPECT_DOUBLE_EQ(least_of_step(options).bytes, 2.0 * 3 / 4 * 256 * 128 * 2 + 8.0 * 256 * 3);
  options.compute = from_milliseconds(7);
  EXPECT_NEAR(least_of_step(options).seconds, 0.030 + least_of_step(options).bytes * 8e-9 + 0.007 * 4 / 7,
              1e-12);
  options.compute = from_milliseconds(700);
  EXPECT_NEAR(least_of_step(options).seconds, 0.7, 1e-12);
  options.compute = from_milliseconds(7);
  options.members = 1;
  EXPECT_DOUBLE_EQ(least_of_step(options).bytes, 0);
  EXPECT_DOUBLE_EQ(least_of_step(options).seconds, 0.007);
}

// Claim: steps take slightly longer than the bound, whether delays, the rate or computing take the time. They
// send the bound's bytes and headers.
TEST(SparseSteps, AreNearTheBound) {
  for (const auto& [rate, rtt] :
       {std::pair(1000.0, 20.0), std::pair(10'000.0, 20.0), std::pair(100.0, 0.0)}) {
    for (const double compute_ms : {0.0, 12.0}) {
      SparseStepsOptions options = small(rate, rtt);
      options.compute = from_milliseconds(compute_ms);
      const SparseStepsBound least = least_of_step(options);
      const SparseStepsReport report = run_sparse_steps(options);
      SCOPED_TRACE(::testing::Message() << rate << " Mb/s, RTT " << rtt << " ms, " << compute_ms << " ms");
      ASSERT_EQ(report.violation, std::nullopt) << *report.violation;
      EXPECT_GE(report.seconds_per_step, 0.99 * least.seconds);
      // The last segment of an exchange crosses two lines, one after the other. That is much if nothing else
      // takes time.
      EXPECT_LE(report.seconds_per_step, (rtt > 0 ? 1.1 : 1.4) * least.seconds);
      // Members have sent some bytes of the next step when counting begins, and when it ends. The two differ
      // by the bytes of one step at most.
      EXPECT_GE(report.bytes_per_step, least.bytes * (1 - 1.0 / static_cast<double>(options.steps)));
      EXPECT_LE(report.bytes_per_step, 1.15 * least.bytes);
      if (rtt > 0) {
        EXPECT_GE(report.delays_per_exchange, 1);
        EXPECT_LE(report.delays_per_exchange, 1.1);
      }
    }
  }
}

// Claim: with two steps in flight, a step ends as often as members compute, or in half the time of a step, to
// a tenth. This is the shape for which sparse.md asks that.
TEST(SparseSteps, TwoInFlightHideDelays) {
  for (const double compute_ms : {6.0, 30.0, 45.0, 140.0}) {
    SparseStepsOptions options = small(1000, 20);
    options.batch = 1024;
    options.steps = 20;
    options.staleness = 1;
    options.compute = from_milliseconds(compute_ms);
    const SparseStepsBound least = least_of_step(options);
    // Three of seven pieces of work are done while others are waited for.
    const double alone = 0.030 + least.bytes * 8e-9 + options.compute.seconds() * 4 / 7;
    EXPECT_NEAR(least.seconds, std::max(options.compute.seconds(), alone / 2), 1e-12);
    const SparseStepsReport report = run_sparse_steps(options);
    SCOPED_TRACE(::testing::Message() << compute_ms << " ms");
    ASSERT_EQ(report.violation, std::nullopt) << *report.violation;
    EXPECT_GE(report.seconds_per_step, 0.99 * least.seconds);
    EXPECT_LE(report.seconds_per_step, 1.1 * least.seconds);
  }
}

}  // namespace
}  // namespace gossamer::simulation
