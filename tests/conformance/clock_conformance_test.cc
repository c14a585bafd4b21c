// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "hosts.h"

namespace gossamer::host {
namespace {

class ClockConformance : public ::testing::TestWithParam<HostKind> {};

// Monotonic time never goes back, and moves when time passes.
TEST_P(ClockConformance, NowIsMonotonic) {
  const ClockUnderTest host = make_clock(GetParam());
  Instant last = host.clock->now();
  for (int i = 0; i < 1000; ++i) {
    const Instant next = host.clock->now();
    ASSERT_GE(next, last);
    host.let_time_pass();
    last = host.clock->now();
    ASSERT_GT(last, next);
  }
}

// CPU time never goes back, is not negative, and moves when the CPU works.
TEST_P(ClockConformance, ProcessCpuGrowsWithWork) {
  const ClockUnderTest host = make_clock(GetParam());
  const Duration start = host.clock->process_cpu();
  EXPECT_GE(start, Duration{});
  host.use_cpu();
  EXPECT_GT(host.clock->process_cpu(), start);
}

// Wall time is in seconds since 1970: between the years 2020 and 2100.
TEST_P(ClockConformance, WallTimeIsADate) {
  const ClockUnderTest host = make_clock(GetParam());
  EXPECT_GT(host.clock->wall_seconds(), 1577836800.0);
  EXPECT_LT(host.clock->wall_seconds(), 4102444800.0);
}

INSTANTIATE_TEST_SUITE_P(Hosts, ClockConformance, ::testing::Values(HostKind::kPosix, HostKind::kSim),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace gossamer::host
