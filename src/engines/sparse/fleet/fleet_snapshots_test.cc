// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_snapshots.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "simulation/sparse/tiny_problem.h"

namespace gossamer::sparse_engine {
namespace {

constexpr PieceId kOne{.layer = 0, .index = 0};
constexpr PieceId kOther{.layer = 0, .index = 1};

// Two members that are to keep a piece of each other, and have no copies yet.
Layout two_members() {
  Layout layout{.resume = {}, .base = {}, .members = {}};
  for (const auto& [node, keeps] : {std::pair(NodeId(1), kOther), std::pair(NodeId(2), kOne)}) {
    LayoutMember member{
        .node = node, .before = {}, .applied = {}, .after = {}, .copies_before = {}, .copies_after = {keeps}};
    layout.members.push_back(member);
  }
  return layout;
}
std::vector<Pieces> keeps_of(const Layout& layout) {
  return {layout.members[0].copies_after, layout.members[1].copies_after};
}
std::vector<Pieces> held_of() { return {{kOne}, {kOther}}; }
const simulation::TinyProblem& tiny() {
  static const simulation::TinyProblem problem({});
  return problem;
}
Slices text(const std::string& bytes) { return bytes.empty() ? Slices() : Slices{Slice::of(bytes)}; }

// Both members, and the snapshot before step 4 up to the moment when each has stored it.
struct Pair {
  explicit Pair(const Layout& layout) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      EXPECT_FALSE(members[rank].take_up(layout));
      members[rank].begin(StepNumber(4), {.held = held_of(), .keeps = keeps_of(layout)}, rank);
    }
    const auto first = members[0].cut({text(""), text("abc")});
    const auto second = members[1].cut({text("xy"), text("")});
    EXPECT_EQ(first.name, (ExchangeName{.kind = ExchangeName::Kind::kSnapshot, .step = StepNumber(4)}));
    EXPECT_EQ(first.operation.parts, (std::vector<std::uint64_t>{16, 16}));
    // A member that would give more bytes than its pieces have is named.
    const auto job = tiny().make_job();
    const std::array<std::uint64_t, 2> lie{1ULL << 40, 0};
    const Slices lies{Slice::copy_of(std::as_bytes(std::span(lie)))};
    EXPECT_EQ(std::get<FleetSnapshots::WrongGift>(members[0].sized({first.given, lies}, *job, 0)).rank, 1U);
    std::array<std::optional<FleetSnapshots::Giving>, 2> next;
    for (std::size_t rank = 0; rank < 2; ++rank)
      next[rank] =
          std::get<FleetSnapshots::Giving>(members[rank].sized({first.given, second.given}, *job, rank));
    EXPECT_EQ(next[0]->operation.parts, (std::vector<std::uint64_t>{0, 3}));
    EXPECT_EQ(next[0]->operation.from, (std::vector<std::uint64_t>{0, 2}));
    EXPECT_EQ(next[1]->operation.from, (std::vector<std::uint64_t>{3, 0}));
    EXPECT_EQ(joined(next[0]->given), "abc");
    EXPECT_FALSE(members[0].stored());
    members[0].take({text(""), text("xy")});
    members[1].take({text("abc"), text("")});
    for (FleetSnapshots& one : members) {
      EXPECT_FALSE(one.stored());
      EXPECT_EQ(one.store().operation.parts, (std::vector<std::uint64_t>{1, 1}));
    }
  }
  std::array<FleetSnapshots, 2> members;
};

// Claim: each keeper gets what the others gave it. Copies are known once all members have stored theirs, and
// not before.
TEST(FleetSnapshots, CopiesAreKnownOnceAllHaveThem) {
  const Layout layout = two_members();
  Pair pair(layout);
  FleetSnapshots& one = pair.members[0];
  EXPECT_TRUE(one.stored());
  EXPECT_EQ(one.known().step, StepNumber());
  EXPECT_FALSE(one.all_kept(layout));
  const FleetSnapshots::Snapshot snapshot = one.complete();
  EXPECT_EQ(snapshot.step, StepNumber(4));
  EXPECT_EQ(joined(snapshot.got[1]), "xy");
  EXPECT_EQ(one.known().step, StepNumber(4));
  EXPECT_TRUE(one.all_kept(layout));
  EXPECT_FALSE(one.under_way());
}

// Claim: a snapshot that the view's change cuts short counts where the layout says that all have stored it.
// Until then a member reports the copies of both.
TEST(FleetSnapshots, AStoredSnapshotMayCount) {
  for (const bool counts : {false, true}) {
    Layout layout = two_members();
    Pair pair(layout);
    sparse_fleet::Report report;
    pair.members[0].report(0, report);
    ASSERT_EQ(report.copies_size(), 2);
    EXPECT_EQ(report.copies(0).step(), 0U);
    EXPECT_EQ(report.copies(1).step(), 4U);
    EXPECT_EQ(pair.members[0].kept_by(0), Pieces{kOther});
    if (counts) layout.base = StepNumber(4);
    EXPECT_EQ(pair.members[0].take_up(layout).has_value(), counts);
    EXPECT_FALSE(pair.members[0].under_way());
    EXPECT_EQ(pair.members[0].known().step, layout.base);
  }
}

// Claim: a snapshot is due at the first step of a layout, every so many steps, and again where copies are
// missing, but not while one of the same step is on its way.
TEST(FleetSnapshots, AreDue) {
  const simulation::TinyProblem problem({.steps = 20, .snapshot_every = 5});
  const auto job = problem.make_job();
  Layout layout = two_members();
  layout.resume = StepNumber(7);
  layout.base = StepNumber(5);
  FleetSnapshots snapshots;
  EXPECT_FALSE(snapshots.take_up(layout));
  for (std::uint64_t step = 6; step < 20; ++step)
    EXPECT_EQ(snapshots.due(StepNumber(step), layout, *job), step == 7 || step % 5 == 0) << step;
  EXPECT_TRUE(snapshots.due(StepNumber(5), layout, *job)) << "copies are missing";
  snapshots.begin(StepNumber(7), {.held = held_of(), .keeps = keeps_of(layout)}, 0);
  EXPECT_FALSE(snapshots.due(StepNumber(7), layout, *job));
  EXPECT_TRUE(snapshots.due(StepNumber(10), layout, *job)) << "then it waits for the one before";
}

}  // namespace
}  // namespace gossamer::sparse_engine
