// SPDX-License-Identifier: Apache-2.0
//
// The part of a coordinator that changes the view, alone, and its table of transitions.
#include "cluster/control/changes.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/test_generated_block.h"
#include "cluster/control/test_changes.h"

namespace gossamer::cluster {
namespace {

using membership::ToMember;
using Phase = CoordinatorPhase;

// Claim: docs/protocols/membership.md shows the table of transitions that the code follows.
TEST(ChangesTable, StandsInThePage) {
  EXPECT_EQ(block_difference({.page = GOSSAMER_TREE "/docs/protocols/membership.md",
                              .name = "coordinator-phases",
                              .text = Changes::transitions()}),
            "");
}

// Claim: a node that is ready begins a change. Once all members rest, they are told what they hold.
TEST_F(ChangesTest, FromReadyToInstall) {
  LedMember& member = come(10);
  EXPECT_FALSE(rest(member));
  changes_.ready(member, {});
  EXPECT_EQ(changes_.phase(), Phase::kFreezing);
  around_.store();
  EXPECT_EQ(around_.said(ToMember::kInstall), 0);
  EXPECT_TRUE(rest(member));
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
  EXPECT_EQ(around_.run.holdings.size(), 2u);
  EXPECT_EQ(around_.run.installed.decision(), "decision");
  around_.store();
  EXPECT_EQ(around_.said(ToMember::kInstall), 1);
  EXPECT_FALSE(rest(member)) << "an event without a row in this phase";
}

// Claim: with each placement, marks of former holders are forgotten.
TEST(ChangesOfMarks, ForgetFormerHolders) {
  CoordinatorOptions options;
  options.tracks = {TrackId(0), TrackId(1)};
  TestLeadership around(options);
  around.workload.tracks_of_things = true;
  Books books(around.shared(), Records{}, {});
  Changes changes(around.shared(), books);
  changes.take_up({}, {});
  const auto join = [&](std::uint64_t node) {
    LedMember& member = around.add(node, membership::JOINING);
    changes.here(member, {}, {});
    changes.ready(member, {});
    for (const auto& [one, record] : std::map(around.run.view.members())) {
      membership::Frozen said;
      said.set_epoch(around.run.view.epoch().value);
      changes.rests(around.run.members.at(one), said, {});
    }
    around.store();
  };
  join(10);
  Books::Progress said;
  said.Add()->set_next(7);
  said.Add()->set_next(7);
  said.Mutable(1)->set_track(1);
  EXPECT_FALSE(books.applied(around.run.members.at(NodeId(10)), said, {}).has_value());
  EXPECT_EQ(books.marks()->rows().marks.size(), 2u);
  join(11);
  std::vector<std::uint64_t> left;
  for (const Mark& one : books.marks()->rows().marks) left.push_back(one.track.value);
  std::vector<std::uint64_t> held;
  for (const auto& [thing, node] : around.run.holdings) {
    if (node == NodeId(10)) held.push_back(thing.value);
  }
  EXPECT_EQ(held.size(), 1u);
  EXPECT_EQ(left, held);
}

// Claim: a node that is ready while others come to rest waits for the end of that change. Then it has one of
// its own.
TEST_F(ChangesTest, JoinsWait) {
  LedMember& first = come(10);
  LedMember& second = come(11);
  changes_.ready(first, {});
  changes_.ready(second, {});
  EXPECT_EQ(around_.run.view.members().size(), 1u);
  EXPECT_TRUE(rest(first));
  EXPECT_EQ(changes_.phase(), Phase::kFreezing);
  EXPECT_EQ(around_.run.view.members().size(), 2u);
}

// Claim: whether the run can lose a silent member shows at rest. If the others have everything, they need not
// rest again: they are told the next view, and what they hold in it.
TEST_F(ChangesTest, OthersHaveEverything) {
  serve(3);
  const std::set<NodeId> silent{NodeId(12)};
  EXPECT_FALSE(changes_.can_lose(silent, {}));
  EXPECT_EQ(changes_.phase(), Phase::kFreezing);
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(10))));
  EXPECT_FALSE(changes_.can_lose(silent, {})) << "another one does not rest yet";
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(11))));
  EXPECT_TRUE(changes_.can_lose(silent, {}));
  const Epoch rested = around_.run.view.epoch();
  fence(12, Changes::Fenced::kInView);
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
  EXPECT_EQ(around_.run.view.epoch().value, rested.value + 1);
  EXPECT_EQ(around_.run.installed.epoch(), rested.value + 1);
  EXPECT_EQ(around_.run.view.members().size(), 2u);
  const auto last = std::ranges::find_if(around_.messages.rbegin(), around_.messages.rend(),
                                         [](const auto& one) { return one.second.has_change(); });
  EXPECT_FALSE(last->second.change().freeze());
}

// Claim: a silent member that alone has something is not lost. The run waits, says for whom, and goes on once
// the member is back.
TEST_F(ChangesTest, ASilentMemberIsNeeded) {
  serve(2);
  around_.workload.needed = NodeId(11);
  around_.workload.is_a_loss = true;
  const std::set<NodeId> silent{NodeId(11)};
  EXPECT_FALSE(changes_.can_lose(silent, {}));
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(10)), 2));
  EXPECT_FALSE(changes_.can_lose(silent, {}));
  EXPECT_EQ(changes_.phase(), Phase::kWaiting);
  EXPECT_EQ(changes_.shortage(),
            "the others lack what node 11 holds, which is silent; they wait for ten minutes at most");
  EXPECT_FALSE(changes_.can_lose(silent, {}));
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(11)), 2));
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
  EXPECT_EQ(changes_.shortage(), "");
  around_.store();
  EXPECT_EQ(std::ranges::count(around_.events(), "waiting"), 1);
}

// Claim: while the run waits for a silent member, others may come. All rest once more with them.
TEST_F(ChangesTest, OthersComeMeanwhile) {
  serve(2);
  around_.workload.needed = NodeId(11);
  around_.workload.is_a_loss = true;
  EXPECT_FALSE(changes_.can_lose({NodeId(11)}, {}));
  LedMember& third = come(12);
  changes_.ready(third, {});
  EXPECT_FALSE(around_.run.view.members().contains(NodeId(12)));
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(10)), 2));
  EXPECT_FALSE(changes_.can_lose({NodeId(11)}, {}));
  EXPECT_EQ(changes_.phase(), Phase::kFreezing);
  EXPECT_TRUE(around_.run.view.members().contains(NodeId(12)));
}

// Claim: others that have too little room for everything have it nevertheless, in copies. The run falls short
// until another member comes.
TEST_F(ChangesTest, LittleRoomIsNoLoss) {
  serve(2);
  EXPECT_FALSE(changes_.can_lose({NodeId(11)}, {}));
  around_.workload.bytes_of_a_thing = 1 << 20;
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(10)), 2));
  EXPECT_TRUE(changes_.can_lose({NodeId(11)}, {}));
  fence(11, Changes::Fenced::kInView);
  EXPECT_EQ(changes_.phase(), Phase::kShort);
}

// Claim: a member that departs stays while the others lack what it holds, and gets nothing to hold. At the
// next rest that finds the others with everything, it is fenced. They need not rest again.
TEST_F(ChangesTest, WhoDepartsHandsOverFirst) {
  serve(3);
  const NodeId goes = around_.run.holdings.begin()->second;
  around_.workload.needed = goes;
  around_.workload.is_a_loss = true;
  around_.run.departures.add(goes, {});
  changes_.want_change({});
  rest_all({});
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
  EXPECT_TRUE(changes_.take_fencing().nodes.empty());
  for (const auto& [thing, node] : around_.run.holdings) EXPECT_NE(node, goes);
  around_.workload.needed.reset();
  EXPECT_TRUE(around_.run.departures.next_look());
  changes_.want_change({});
  EXPECT_FALSE(around_.run.departures.next_look()) << "this rest is a look, too";
  rest_all({});
  EXPECT_EQ(changes_.phase(), Phase::kFreezing);
  const Fencing due = changes_.take_fencing();
  EXPECT_EQ(due.nodes, std::vector{goes});
  EXPECT_EQ(due.why, Departures::kWhy);
  const Epoch rested = around_.run.view.epoch();
  fence(goes.value, Changes::Fenced::kInView);
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
  EXPECT_EQ(around_.run.installed.epoch(), rested.value + 1);
}

// Claim: where a member that departs is needed, and views are spoilt again and again, the other one of its
// quarrel goes in its place. If that one is needed, too, the first goes.
TEST_F(ChangesTest, TheOtherGoesInItsPlace) {
  serve(4);
  around_.workload.is_a_loss = true;
  std::uint64_t epoch = 0;
  const auto due = [&](std::uint64_t other, bool goes_too = false) {
    around_.run.departures = {};
    around_.run.departures.add(NodeId(11), NodeId(other));
    if (goes_too) around_.run.departures.add(NodeId(other), {});
    for (int i = 0; i < 3; ++i) around_.run.departures.spoilt(NodeId(other), NodeId(11), Epoch(++epoch));
    changes_.want_change({});
    rest_all({});
    return changes_.take_fencing().nodes;
  };
  around_.workload.needed = NodeId(11);
  EXPECT_EQ(due(10), std::vector{NodeId(10)});
  EXPECT_EQ(around_.run.departures.gone(NodeId(10)), std::set{NodeId(11)});
  fence(10, Changes::Fenced::kInView);
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
  EXPECT_EQ(due(12, true), std::vector{NodeId(12)}) << "it is named once";
  around_.workload.all_needed = true;
  EXPECT_EQ(due(12), std::vector{NodeId(11)});
}

// Claim: a member that departs goes after ten looks, whatever it holds. It stays if nobody else rests.
TEST_F(ChangesTest, WhoDepartsGoesAfterTenLooks) {
  serve(2);
  around_.workload.needed = NodeId(11);
  around_.workload.is_a_loss = true;
  around_.run.departures.add(NodeId(11), {});
  for (int look = 0; look < 10; ++look) {
    changes_.want_change({});
    EXPECT_FALSE(around_.run.departures.next_look());
    rest_all({});
    EXPECT_TRUE(changes_.take_fencing().nodes.empty());
    EXPECT_TRUE(around_.run.departures.next_look());
    around_.run.departures.looks();
  }
  changes_.want_change({});
  rest_all({});
  EXPECT_EQ(changes_.take_fencing().nodes, std::vector{NodeId(11)});
}

// Claim: what was reported counts no more once all are asked again.
TEST_F(ChangesTest, AskedAnewNobodyIsDue) {
  serve(3);
  around_.run.departures.add(NodeId(11), {});
  changes_.want_change({});
  rest_all({});
  changes_.ready(come(13), {});
  fence(12, Changes::Fenced::kInView);
  EXPECT_EQ(changes_.phase(), Phase::kFreezing);
  EXPECT_TRUE(changes_.take_fencing().nodes.empty());
}

// Claim: a member that departs keeps what it holds where the others have no room. A late member is given up
// by the same rule.
TEST_F(ChangesTest, WhoDepartsMayHaveTheOnlyRoom) {
  serve(3);
  around_.workload.bytes_of_a_thing = 600'000;  // of 1 MiB
  around_.workload.needed = NodeId(12);
  around_.workload.is_a_loss = true;
  around_.run.departures.add(NodeId(12), {});
  changes_.want_change({});
  around_.store();
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(11)), 1));
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(12)), 1));
  EXPECT_EQ(changes_.take_restless({[](NodeId) { return true; }}, at(30)), std::set{NodeId(10)});
}

// Claim: of two that depart, one stays if the others could lose either, and not both. Without room elsewhere
// a member that departs keeps what it holds.
TEST_F(ChangesTest, WhoDepartsMayBeNeeded) {
  serve(2);
  around_.run.departures.add(NodeId(10), {});
  around_.run.departures.add(NodeId(11), {});
  changes_.want_change({});
  rest_all({});
  EXPECT_EQ(changes_.take_fencing().nodes, std::vector{NodeId(10)});
  (void)around_.run.departures.gone(NodeId(10));
  fence(10, Changes::Fenced::kInView);
  EXPECT_TRUE(changes_.take_fencing().nodes.empty()) << "nobody would be left";
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
  EXPECT_EQ(around_.run.holdings.begin()->second, NodeId(11));
}

// Claim: no question is asked about a member of a run that has installed no view yet, or whose members go on
// while the view changes.
TEST_F(ChangesTest, NothingToLose) {
  come(10);
  EXPECT_TRUE(changes_.can_lose({NodeId(10)}, {}));
  EXPECT_FALSE(changes_.may_lose());
  serve(2);
  EXPECT_TRUE(changes_.may_lose());
  around_.options.view_change = ViewChange::kAnnounced;
  EXPECT_TRUE(changes_.can_lose({NodeId(11)}, {}));
  EXPECT_FALSE(changes_.may_lose());
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
}

// Claim: no rebalancing begins while a member is not heard.
TEST_F(ChangesTest, NoRebalancingInASilence) {
  serve(2);
  std::size_t asked = 0;
  const auto some_silent = [&] {
    ++asked;
    return false;
  };
  for (int s = 1; s <= 60; ++s) changes_.tick(some_silent, at(s));
  EXPECT_GE(asked, 3U);
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
}

// Claim: a run with too few members falls short, and goes on with the next one.
TEST_F(ChangesTest, FallsShort) {
  around_.options.first_members = 2;
  LedMember& first = come(10);
  changes_.ready(first, {});
  EXPECT_TRUE(rest(first));
  EXPECT_EQ(changes_.phase(), Phase::kShort);
  EXPECT_EQ(changes_.shortage(), "1 of 2 members serve");
  LedMember& second = come(11);
  changes_.ready(second, {});
  EXPECT_TRUE(rest(first));
  EXPECT_TRUE(rest(second));
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
  EXPECT_EQ(changes_.shortage(), "");
}

// Claim: a run that waits for members of before says why, looks again each second, and goes on once it waits
// no more. The view that is installed then is the first one.
TEST_F(ChangesTest, TheFirstViewWaitsForOthers) {
  std::string why = "node 11 has a piece";
  around_.options.waits_for = [&why](const View&) { return why; };
  LedMember& first = come(10);
  changes_.ready(first, {});
  EXPECT_TRUE(rest(first));
  EXPECT_EQ(changes_.phase(), Phase::kShort);
  EXPECT_EQ(changes_.shortage(), why);
  for (int s = 1; s < 600; ++s) changes_.tick(all_heard, at(s));
  EXPECT_EQ(changes_.phase(), Phase::kShort);
  why.clear();
  changes_.tick(all_heard, at(601));
  EXPECT_TRUE(rest(first));
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
  EXPECT_EQ(changes_.shortage(), "");
  why = "later views wait for nobody";
  LedMember& second = come(11);
  changes_.ready(second, at(602));
  EXPECT_TRUE(rest(first));
  EXPECT_TRUE(rest(second));
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
}

// Claim: if all members drain and none joins, they get a view in which they keep what they hold, and then
// they are released. So they can agree on a step after which they save. A member that holds nothing gets
// nothing.
TEST_F(ChangesTest, TheLastLeave) {
  LedMember& first = come(10);
  changes_.ready(first, {});
  EXPECT_TRUE(rest(first));
  LedMember& second = come(11);
  changes_.ready(second, {});
  EXPECT_TRUE(rest(first));
  EXPECT_TRUE(rest(second));
  changes_.drain(second, {});
  EXPECT_TRUE(rest(first));
  EXPECT_TRUE(rest(second));
  around_.store();
  EXPECT_EQ(around_.said(ToMember::kReleased), 0) << "another member serves";
  around_.messages.clear();
  changes_.drain(first, {});
  EXPECT_TRUE(rest(first));
  EXPECT_TRUE(rest(second));
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
  for (const auto& [thing, node] : around_.run.holdings) EXPECT_EQ(node, NodeId(10)) << thing.value;
  EXPECT_EQ(around_.run.holdings.size(), 2U);
  around_.store();
  std::vector<ToMember::KindCase> said;
  for (const auto& [to, message] : around_.messages) {
    if (to.node == NodeId(10)) said.push_back(message.kind_case());
  }
  EXPECT_EQ(said, (std::vector{ToMember::kChange, ToMember::kInstall, ToMember::kReleased}));
}

// Claim: a member that drains before it serves is let go. No member rests for it, and it serves no more.
TEST_F(ChangesTest, WhoDrainsBeforeItServesLeaves) {
  serve(2);
  const Epoch before = around_.run.view.epoch();
  LedMember& joins = come(12);
  changes_.drain(joins, {});
  changes_.ready(joins, {});
  around_.store();
  EXPECT_EQ(around_.run.view.epoch(), before);
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
  EXPECT_EQ(around_.said(ToMember::kReleased), 1);
  changes_.want_change({});
  rest_all({});
  EXPECT_EQ(around_.run.view.members().size(), 2U);
  EXPECT_EQ(joins.record.state(), membership::JOINING);
}

// Claim: members that all drain work on while another one joins. If it is lost, they are released; if it
// serves, it gets what they hold.
TEST_F(ChangesTest, TheLastWaitForWhoJoins) {
  for (const bool serves : {true, false}) {
    SCOPED_TRACE(serves);
    TestLeadership around;
    Books books{around.shared(), Records{}, {}};
    Changes changes{around.shared(), books};
    changes.take_up({}, {});
    const auto rest_all = [&] {
      for (const auto& [node, record] : std::map(around.run.view.members())) {
        membership::Frozen said;
        said.set_epoch(around.run.view.epoch().value);
        if (changes.awaits(peer_of(record), said)) changes.rests(around.run.members.at(node), said, {});
      }
      around.store();
    };
    LedMember& last = around.add(10, membership::JOINING);
    changes.here(last, {}, {});
    changes.ready(last, {});
    rest_all();
    LedMember& joins = around.add(11, membership::JOINING);
    changes.here(joins, {}, {});
    changes.drain(last, {});
    rest_all();
    EXPECT_EQ(changes.phase(), Phase::kSettled) << "it works on";
    EXPECT_EQ(around.said(ToMember::kReleased), 0);
    if (serves) {
      changes.ready(joins, {});
      rest_all();
      EXPECT_EQ(around.run.holdings.at(placement::ThingId(0)), NodeId(11));
    } else {
      const net::PeerId gone = peer_of(joins.record);
      around.run.members.erase(gone.node);
      changes.gone(gone);
      changes.fenced(Changes::Fenced::kJoining, {});
      around.store();
      EXPECT_EQ(around.said(ToMember::kReleased), 1);
    }
  }
}

// Claim: members that all drain wait ten seconds for one that joins, whichever that is. Then they are
// released, once.
TEST_F(ChangesTest, TheLastWaitTenSeconds) {
  LedMember& last = come(10);
  changes_.ready(last, {});
  EXPECT_TRUE(rest(last));
  LedMember& joins = come(11);
  changes_.drain(last, {});
  EXPECT_TRUE(rest(last));
  around_.store();
  EXPECT_EQ(around_.said(ToMember::kReleased), 0);
  EXPECT_LE(changes_.next_wakeup(), at(10));
  changes_.tick(all_heard, at(9));
  const net::PeerId gone = peer_of(joins.record);
  come(12);
  around_.run.members.erase(gone.node);
  changes_.gone(gone);
  changes_.fenced(Changes::Fenced::kJoining, at(9.5));
  around_.store();
  EXPECT_EQ(around_.said(ToMember::kReleased), 0) << "another one joins";
  changes_.tick(all_heard, at(10));
  changes_.tick(all_heard, at(10.1));
  around_.store();
  EXPECT_EQ(around_.said(ToMember::kReleased), 1);
}

// Claim: another coordinator releases the last members again, as the word of the one before may not have
// left.
TEST_F(ChangesTest, TheLastAreReleasedAgain) {
  LedMember& last = around_.add(10, membership::DRAINING);
  around_.run.installed.set_epoch(around_.run.view.epoch().value);
  around_.run.holdings = {{placement::ThingId(0), NodeId(10)}, {placement::ThingId(1), NodeId(10)}};
  changes_.here(last, {}, {});
  changes_.introduced(last, {});
  around_.store();
  EXPECT_EQ(around_.said(ToMember::kReleased), 1);
}

}  // namespace
}  // namespace gossamer::cluster
