// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_states.h"

#include <gtest/gtest.h>

#include <set>

#include "base/test_generated_block.h"

namespace gossamer::sparse_engine {
namespace {

// Claim: docs/protocols/sparse-step.md shows the table of transitions that the engine follows.
TEST(FleetStates, StandInThePage) {
  EXPECT_EQ(block_difference({.page = GOSSAMER_TREE "/docs/protocols/sparse-step.md",
                              .name = "member-states",
                              .text = fleet_transitions_text()}),
            "");
}

// Claim: a life can come into every state from its first one, and every event means something.
TEST(FleetStates, AllAreReached) {
  std::set<FleetState> reached{FleetState::kPreparing};
  std::set<FleetEvent> events;
  for (std::size_t before = 0; before != reached.size();) {
    before = reached.size();
    for (const FleetTransition& one : fleet_transitions()) {
      events.insert(one.event);
      for (const FleetState from : std::set(reached)) {
        if (one.to && one.from.contains(from)) reached.insert(*one.to);
      }
    }
  }
  EXPECT_EQ(reached.size(), static_cast<std::size_t>(kFleetStates));
  EXPECT_EQ(events.size(), static_cast<std::size_t>(FleetEvent::kFailed) + 1);
}

// Claim: an event finds its row, and none where it means nothing.
TEST(FleetStates, FindsTheRow) {
  const FleetTransition* const row = fleet_transition(FleetState::kSnapshotting, FleetEvent::kSnapshotCut);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->to, FleetState::kStepping);
  EXPECT_EQ(row->action, FleetAction::kGiveSnapshot);
  EXPECT_EQ(fleet_transition(FleetState::kResting, FleetEvent::kSnapshotCut), nullptr);
}

}  // namespace
}  // namespace gossamer::sparse_engine
