// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/step_times.h"

#include <gtest/gtest.h>

#include "host/sim/clock.h"

namespace gossamer::sparse {
namespace {

// Phases are means over workers, upkeep counts as finding, and waiting is what is left of the wall time.
TEST(StepTimes, AddUpToTheWallTime) {
  host::SimClock clock;
  StepTimes times(&clock, 2);
  for (int step = 0; step < 2; ++step) {  // the second forgets the first
    times.begin();
    clock.advance(from_milliseconds(3));
    times.end_upkeep();
    for (const int worker : {0, 1}) {
      StepTimes::Worker& one = times.of(worker);
      one.timer.start();
      clock.advance(from_milliseconds(10));
      one.timer.lap(one.phases.embed);
      clock.advance(from_milliseconds(4));
      one.timer.lap(one.phases.find);
    }
    LearnerPhases phases = times.phases();
    EXPECT_NEAR(phases.embed, 10, 1e-9);
    EXPECT_NEAR(phases.find, 7, 1e-9);
    EXPECT_EQ(phases.waiting, 0);
    times.add_waiting(phases);
    EXPECT_NEAR(phases.waiting, 3 + 2 * 14 - 17, 1e-9);
    EXPECT_NEAR(phases.total(), 31, 1e-9);
  }
}

// Without a clock all is zero.
TEST(StepTimes, WithoutAClock) {
  StepTimes times(nullptr, 1);
  times.begin();
  times.end_upkeep();
  times.of(0).timer.start();
  times.of(0).timer.lap(times.of(0).phases.dense);
  LearnerPhases phases = times.phases();
  times.add_waiting(phases);
  EXPECT_EQ(phases.total(), 0);
}

}  // namespace
}  // namespace gossamer::sparse
