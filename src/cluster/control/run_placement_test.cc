// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/run_placement.h"

#include <gtest/gtest.h>

#include "cluster/control/test_leadership.h"

namespace gossamer::cluster {
namespace {

// Claim: a member of unknown pace is taken for as fast as the others for each core, with their least own
// work.
TEST(RunPlacement, GuessesByCores) {
  TestLeadership around;
  membership::Change cores;
  cores.set_from(4);
  cores.set_epoch(5);
  const auto add = [&](std::uint64_t node, std::uint32_t of_node) -> LedMember& {
    LedMember& member = around.add(node, membership::SERVING);
    member.record.set_cores(of_node);
    *cores.add_members() = member.record;
    return member;
  };
  add(10, 2).pace.add({.speed = 100, .own_work = 7});
  add(11, 1).pace.add({.speed = 20, .own_work = 3});
  add(12, 3).pace.add({.speed = 60, .own_work = 5});
  add(13, 4);
  ASSERT_TRUE(around.run.view.apply(cores).ok());
  const auto members = placeable(around.run, {});
  ASSERT_EQ(members.size(), 4u);
  EXPECT_EQ(members[0].speed, 100);
  EXPECT_EQ(members[0].own_work, 7);
  EXPECT_EQ(members[3].speed, (100 + 20 + 60) / (2 + 1 + 3) * 4);
  EXPECT_EQ(members[3].own_work, 3);
}

// Claim: a member's word about its speed counts for at most 64 times the median. With two members the slower
// one is the median.
TEST(RunPlacement, CapsSpeeds) {
  for (const std::size_t members : {2U, 3U, 4U}) {
    TestLeadership around;
    for (std::size_t i = 0; i + 1 < members; ++i)
      around.add(10 + i, membership::SERVING).pace.add({.speed = 100 + static_cast<double>(i)});
    around.add(10 + members, membership::SERVING).pace.add({.speed = 1e20});
    const auto placed = placeable(around.run, {});
    ASSERT_EQ(placed.size(), members);
    const double median = members == 2 ? 100 : 101;
    EXPECT_EQ(placed.back().speed, 64 * median) << members;
    EXPECT_EQ(placed.front().speed, 100);
  }
}

// Claim: a member that has to go stays while another that has what it holds is silent: that one may have died
// since it reported.
TEST(RunPlacement, ReportsOfTheSilentLetNobodyGo) {
  TestLeadership around;
  std::map<NodeId, membership::Frozen> reports;
  for (const std::uint64_t node : {10U, 11U, 12U}) {
    around.add(node, membership::SERVING);
    around.hear(NodeId(node), {});
    reports[NodeId(node)];
  }
  around.workload.needed = NodeId(12);
  around.workload.is_a_loss = true;
  around.run.departures.add(NodeId(10), {});
  const AtRest rest{around.workload, around.run, reports, std::nullopt};
  EXPECT_EQ(due_at_rest(rest, {}).nodes, std::vector<NodeId>{NodeId(10)});
  around.run.members.at(NodeId(12)).detector->closed(at(0.1));
  EXPECT_TRUE(due_at_rest(rest, at(0.1)).nodes.empty());
  around.hear(NodeId(12), at(0.2));
  EXPECT_EQ(due_at_rest(rest, at(0.2)).nodes, std::vector<NodeId>{NodeId(10)});
}

// Claim: a copy that a report names is a copy of that thing. Things that are none are left out.
TEST(RunPlacement, CopiesOfReports) {
  TestLeadership around;
  std::map<NodeId, membership::Frozen> reports;
  reports[NodeId(10)].add_copies(1);
  reports[NodeId(11)].add_copies(99);
  const auto things = things_with_copies(around.workload, reports);
  ASSERT_EQ(things.size(), 2u);
  EXPECT_TRUE(things[0].copies.empty());
  ASSERT_EQ(things[1].copies.size(), 1u);
  EXPECT_EQ(things[1].copies[0], placement::MemberId(10));
}

// Claim: a member that is late is missed unless those that rest have all, and room for it. A member that is
// not late and has not come to rest counts as absent: nobody knows what it has.
TEST(RunPlacement, GoesOnWithThoseThatRest) {
  TestLeadership around;
  for (const std::uint64_t node : {10U, 11U, 12U}) around.add(node, membership::SERVING);
  std::map<NodeId, membership::Frozen> reports;
  reports[NodeId(10)];
  const AtRest rest{around.workload, around.run, reports, std::nullopt};
  EXPECT_TRUE(go_on_without({NodeId(12)}, rest, {}, {}));
  around.workload.needed = NodeId(11);
  EXPECT_FALSE(go_on_without({NodeId(12)}, rest, {}, {}));
  reports[NodeId(11)];
  EXPECT_TRUE(go_on_without({NodeId(12)}, rest, {}, {}));
  EXPECT_FALSE(go_on_without({NodeId(10), NodeId(11)}, rest, {}, {}));  // nobody is left
}

// Claim: the time of a step is the median of those that members have measured; of two, the lower one.
TEST(RunPlacement, MedianStep) {
  TestLeadership around;
  EXPECT_EQ(step_seconds(around.run, {}), 0);
  const std::vector<double> medians{10, 10, 11, 11};
  for (const std::uint64_t node : {10U, 11U, 12U, 13U}) {
    const auto step_s = static_cast<double>(node);
    around.add(node, membership::SERVING).pace.add({.speed = 1, .step_s = step_s});
    EXPECT_EQ(step_seconds(around.run, {}), medians[node - 10]) << node;
  }
}

// Claim: so long a step takes as more than half of the view say, and members that have not said anything
// count. A single one decides nothing where others have not told their paces yet.
TEST(RunPlacement, AgreedStep) {
  TestLeadership around;
  EXPECT_EQ(agreed_step_seconds(around.run), 0);
  for (const std::uint64_t node : {10U, 11U, 12U, 13U}) around.add(node, membership::SERVING);
  const auto says = [&](std::uint64_t node, double step_s) {
    around.run.members.at(NodeId(node)).pace.add({.speed = 1, .step_s = step_s});
    return agreed_step_seconds(around.run);
  };
  EXPECT_EQ(says(10, 1000), 0);
  EXPECT_EQ(says(11, 1000), 0);
  EXPECT_EQ(says(12, 20), 20);
  EXPECT_EQ(says(13, 30), 30);
}

// Claim: a member that has long held nothing is due for a trial. When it then gets something, its earlier
// measurements are forgotten.
TEST(RunPlacement, IdleMembersAreTried) {
  TestLeadership around;
  LedMember& member = around.add(10, membership::SERVING);
  member.pace.add({.speed = 1e-3});
  see_idle_members(around.run, {});
  EXPECT_EQ(placeable(around.run, at(599))[0].speed, 1e-3);
  EXPECT_EQ(placeable(around.run, at(600))[0].speed, 1);
  around.run.holdings[placement::ThingId(0)] = NodeId(10);
  see_idle_members(around.run, at(600));
  EXPECT_FALSE(member.pace.pace().has_value());
}

// Claim: only members that are to hold more or fewer things are named.
TEST(RunPlacement, NamesWhatChanges) {
  const HoldingMap holdings{{placement::ThingId(0), NodeId(10)}, {placement::ThingId(1), NodeId(11)}};
  const placement::MemberId ten(10);
  const placement::MemberId eleven(11);
  const placement::Placement placed{.holdings = {{placement::ThingId(0), ten},
                                                 {placement::ThingId(1), ten},
                                                 {placement::ThingId(2), eleven}},
                                    .speeds = {{ten, 2, 1}, {eleven, 1, 0}}};
  EXPECT_EQ(changes_of(holdings, placed), "node 10 1 -> 2 things (2 a second, own work 1)");
}

}  // namespace
}  // namespace gossamer::cluster
