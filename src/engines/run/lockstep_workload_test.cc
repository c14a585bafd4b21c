// SPDX-License-Identifier: Apache-2.0
#include "engines/run/lockstep_workload.h"

#include <gtest/gtest.h>

#include <map>

namespace gossamer::engine {
namespace {

// What the workload decides when members with these reports have come to rest.
StepNumber decided(LockstepWorkload& workload, const std::vector<std::string>& reports,
                   std::optional<StepNumber> committed = {}) {
  std::map<NodeId, membership::Frozen> frozen;
  for (const std::string& report : reports) frozen[NodeId(frozen.size() + 1)].set_report(report);
  const cluster::View view;
  const cluster::HoldingMap nothing;
  const cluster::Decision decision = workload.decide(
      {.view = view, .reports = frozen, .before = nothing, .after = nothing, .committed = committed});
  EXPECT_EQ(decision.committed, read_step(decision.bytes));
  return read_step(decision.bytes).value_or(StepNumber(999));
}

// Members go on at the highest step that any of them has applied, and never before what is committed or what
// the run began with.
TEST(LockstepWorkload, GoesOnAtTheHighestStep) {
  LockstepWorkload workload({.things = 2, .thing_bytes = 8, .start = StepNumber(5)});
  EXPECT_EQ(decided(workload, {"0", "0"}), StepNumber(5));
  EXPECT_EQ(decided(workload, {"7", "8", "0"}), StepNumber(8));
  EXPECT_EQ(decided(workload, {"7"}, StepNumber(9)), StepNumber(9));
  EXPECT_EQ(decided(workload, {}), StepNumber(5));
}

// A report is a number and nothing else: a member may send any bytes.
TEST(LockstepWorkload, ReadsOnlyNumbers) {
  const LockstepWorkload workload({});
  EXPECT_TRUE(workload.readable("0"));
  EXPECT_TRUE(workload.readable("18446744073709551615"));
  for (const char* const bad : {"", " 1", "1 ", "-1", "x", "18446744073709551616"})
    EXPECT_FALSE(workload.readable(bad)) << bad;
}

// Each thing has a track of its own, which its holder marks.
TEST(LockstepWorkload, HasATrackForEachThing) {
  const LockstepWorkload workload({.things = 3});
  EXPECT_EQ(workload.things().size(), 3U);
  ASSERT_EQ(workload.tracks().size(), 3U);
  for (const cluster::TrackId track : workload.tracks())
    EXPECT_EQ(workload.thing_of(track), placement::ThingId(track.value));
}

}  // namespace
}  // namespace gossamer::engine
