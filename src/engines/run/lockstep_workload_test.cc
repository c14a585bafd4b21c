// SPDX-License-Identifier: Apache-2.0
#include "engines/run/lockstep_workload.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gossamer::engine {
namespace {

// What a member reports: a number, in the newest epoch unless it says otherwise.
struct Reported {
  std::uint64_t step = 0;
  bool holds = true;
  std::uint64_t installed = 3;
};

std::map<NodeId, membership::Frozen> frozen(const std::vector<Reported>& all) {
  std::map<NodeId, membership::Frozen> reports;
  for (const Reported& one : all) {
    membership::Frozen& said = reports[NodeId(reports.size() + 2)];
    said.set_report(step_text(StepNumber(one.step)));
    said.set_installed(one.installed);
    if (one.holds) said.add_progress()->set_next(one.step);
  }
  return reports;
}

// What the workload decides when members with these reports have come to rest.
StepNumber decided(LockstepWorkload& workload, const std::vector<Reported>& all,
                   std::optional<StepNumber> committed = {}) {
  const auto reports = frozen(all);
  const cluster::View view;
  const cluster::HoldingMap nothing;
  const cluster::Decision decision = workload.decide(
      {.view = view, .reports = reports, .before = nothing, .after = nothing, .committed = committed});
  EXPECT_EQ(decision.committed, read_step(decision.bytes));
  return read_step(decision.bytes).value_or(StepNumber(999));
}

// Members go on at the highest step that any of them has applied, and never before what is committed or what
// the run began with.
TEST(LockstepWorkload, GoesOnAtTheHighestStep) {
  LockstepWorkload workload({.things = 2, .thing_bytes = 8, .start = StepNumber(5)});
  EXPECT_EQ(decided(workload, {{.step = 0}, {.step = 0}}), StepNumber(5));
  EXPECT_EQ(decided(workload, {{.step = 7}, {.step = 8}, {.step = 0}}), StepNumber(8));
  EXPECT_EQ(decided(workload, {{.step = 7}}, StepNumber(9)), StepNumber(9));
  EXPECT_EQ(decided(workload, {}), StepNumber(5));
}

using Nodes = std::vector<std::uint64_t>;

// The nodes, from 2 on, that contradict the others.
Nodes contradicting(const std::vector<Reported>& all, const LockstepWorkload::Options& options = {}) {
  Nodes nodes;
  for (const NodeId node : LockstepWorkload(options).contradicting(frozen(all))) nodes.push_back(node.value);
  return nodes;
}

// Claim: members that have gone the same way contradict nobody: holders a step apart, members that hold
// nothing, and those that have not heard of the newest epoch, or of any.
TEST(LockstepWorkload, MembersThatAgree) {
  EXPECT_EQ(contradicting({}), Nodes());
  EXPECT_EQ(contradicting({{.step = 7}}), Nodes());
  EXPECT_EQ(
      contradicting({{.step = 7}, {.step = 8}, {.step = 5, .holds = false}, {.step = 5, .holds = false}}),
      Nodes());
  EXPECT_EQ(contradicting(
                {{.step = 70}, {.step = 71}, {.step = 60, .installed = 2}, {.holds = false, .installed = 0}}),
            Nodes());
  EXPECT_EQ(contradicting({{.step = 9, .holds = false}, {.step = 8, .installed = 2}}), Nodes());
  EXPECT_EQ(contradicting({{.holds = false, .installed = 0}, {.holds = false, .installed = 0}}), Nodes());
}

// Claim: one report never takes the run to a step that nobody has come to, nor speaks against another member
// than its own, whatever it says.
TEST(LockstepWorkload, OneLiarIsFound) {
  for (const std::uint64_t lie : {0ULL, 5ULL, 10ULL, 1ULL << 62, ~0ULL}) {
    for (std::size_t liar = 0; liar < 3; ++liar) {
      std::vector<Reported> all{{.step = 7}, {.step = 8}, {.step = 7}};
      if (liar == 1) std::swap(all[1], all[2]);
      all[liar].step = lie;
      EXPECT_EQ(contradicting(all), Nodes{2 + liar}) << lie << " of " << liar;
    }
    if (lie <= 8) continue;
    EXPECT_EQ(contradicting({{.step = 7}, {.step = 8}, {.step = lie, .holds = false}}), Nodes{4}) << lie;
    EXPECT_EQ(contradicting({{.step = 7}, {.step = 8}, {.step = lie, .installed = 2}}), Nodes{4}) << lie;
    EXPECT_EQ(contradicting(
                  {{.step = 7, .holds = false}, {.step = lie, .holds = false}, {.step = 7, .holds = false}}),
              Nodes{3});
    EXPECT_EQ(contradicting({{.step = lie, .installed = 0}, {.installed = 0}}), Nodes{2}) << lie;
    EXPECT_EQ(contradicting({{.step = lie}}, {.steps = 9}), Nodes{2}) << lie;
  }
  EXPECT_EQ(contradicting({{.step = 9}}, {.steps = 9}), Nodes());
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
  const LockstepWorkload workload({.things = 3, .thing_bytes = 8});
  ASSERT_EQ(workload.things().size(), 3U);
  for (const placement::Thing& thing : workload.things()) EXPECT_EQ(thing.bytes, 8U);
  ASSERT_EQ(workload.tracks().size(), 3U);
  for (const cluster::TrackId track : workload.tracks())
    EXPECT_EQ(workload.thing_of(track), placement::ThingId(track.value));
}

}  // namespace
}  // namespace gossamer::engine
