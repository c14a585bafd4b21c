// SPDX-License-Identifier: Apache-2.0
//
// The end of a run, as the part of a coordinator that changes the view sees it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cluster/control/test_changes.h"

namespace gossamer::cluster {
namespace {

using membership::ToMember;
using Phase = CoordinatorPhase;

class ChangesAtTheEnd : public ChangesTest {};

// Claim: members hear of the end of a run only after the change that is under way. The end is durable at
// once, and all keep what they hold. A node that is ready meanwhile does not serve any more.
TEST_F(ChangesAtTheEnd, AnEndWaitsForTheInstall) {
  LedMember& first = come(10);
  changes_.ready(first, {});
  EXPECT_TRUE(rest(first));
  LedMember& second = come(11);
  changes_.ready(second, {});
  changes_.stop("enough", {});
  changes_.stop("once more", {});
  changes_.ready(come(12), {});
  around_.store();
  EXPECT_EQ(changes_.phase(), Phase::kFreezing);
  EXPECT_TRUE(changes_.ending());
  EXPECT_EQ(around_.said(ToMember::kStop), 0);
  EXPECT_TRUE(rest(first, around_.run.installed.epoch()));
  EXPECT_TRUE(rest(second));
  around_.store();
  EXPECT_EQ(changes_.phase(), Phase::kStopping);
  EXPECT_EQ(changes_.stop_asked().reason(), "enough");
  EXPECT_EQ(around_.run.installed.epoch(), around_.run.view.epoch().value);
  EXPECT_EQ(around_.run.view.members().size(), 2u);
  for (const auto& [thing, node] : around_.run.holdings) EXPECT_EQ(node, NodeId(10));
  EXPECT_EQ(around_.said(ToMember::kStop), 3);
}

// Claim: the end of a run waits for a change for eleven minutes at most.
TEST_F(ChangesAtTheEnd, AnEndDoesNotWaitForEver) {
  one_of_two_rests();
  changes_.stop("enough", at(10));
  changes_.tick(all_heard, at(669));
  EXPECT_EQ(changes_.phase(), Phase::kFreezing);
  changes_.tick(all_heard, at(670));
  EXPECT_EQ(changes_.phase(), Phase::kStopping);
  EXPECT_FALSE(changes_.take_stop_end(at(1269)));
  EXPECT_TRUE(changes_.take_stop_end(at(1270)));
}

// Claim: the next coordinator goes on with a change, too, before it tells members of the end.
TEST_F(ChangesAtTheEnd, AnEndThatWaitsIsTakenUp) {
  LedMember& member = around_.add(10, membership::SERVING);
  membership::Stopping stopping;
  stopping.set_reason("enough");
  stopping.set_waits(true);
  Changes next(around_.shared(), books_);
  next.take_up(stopping, {});
  EXPECT_EQ(next.phase(), Phase::kFreezing);
  EXPECT_TRUE(next.ending());
  EXPECT_FALSE(next.told());
  membership::Frozen said;
  said.set_epoch(around_.run.view.epoch().value);
  next.rests(member, said, {});
  EXPECT_EQ(next.phase(), Phase::kStopping);
  EXPECT_EQ(around_.run.installed.epoch(), around_.run.view.epoch().value);
}

// Claim: members that rest because something is missing go on from one step before they hear of the end.
TEST_F(ChangesAtTheEnd, AnEndWhileSomethingIsMissing) {
  LedMember& first = come(10);
  LedMember& second = come(11);
  first.record.set_memory_bytes(1);
  second.record.set_memory_bytes(1);
  changes_.ready(first, {});
  EXPECT_TRUE(rest(first));
  changes_.ready(second, {});
  EXPECT_TRUE(rest(first));
  EXPECT_TRUE(rest(second));
  ASSERT_EQ(changes_.phase(), Phase::kSettled);
  const std::uint64_t before = around_.run.installed.epoch();
  const HoldingMap held = around_.run.holdings;
  changes_.drain(first, {});
  EXPECT_TRUE(rest(first, before));
  EXPECT_TRUE(rest(second, before));
  EXPECT_EQ(changes_.phase(), Phase::kShort);
  changes_.stop("enough", {});
  EXPECT_EQ(changes_.phase(), Phase::kFreezing);
  EXPECT_TRUE(rest(first, before));
  EXPECT_TRUE(rest(second, before));
  EXPECT_EQ(changes_.phase(), Phase::kStopping);
  EXPECT_GT(around_.run.installed.epoch(), before);
  EXPECT_EQ(around_.run.holdings, held);
}

// Claim: a member that leaves in order while a run ends changes nothing. One that dies has its things given
// to the others first, and these are told of the end once more.
TEST_F(ChangesAtTheEnd, ADeathAtTheEnd) {
  serve(3);
  LedMember& first = around_.run.members.at(NodeId(10));
  changes_.stop("enough", {});
  around_.store();
  EXPECT_EQ(around_.said(ToMember::kStop), 3);
  fence(12, Changes::Fenced::kLeft);
  EXPECT_EQ(changes_.phase(), Phase::kStopping);
  fence(11, Changes::Fenced::kInView);
  EXPECT_EQ(changes_.phase(), Phase::kFreezing);
  EXPECT_TRUE(changes_.ending());
  EXPECT_FALSE(changes_.take_stop_end(at(659)));
  EXPECT_TRUE(rest(first, around_.run.installed.epoch()));
  around_.store();
  EXPECT_EQ(changes_.phase(), Phase::kStopping);
  EXPECT_EQ(changes_.stop_asked().reason(), "enough");
  EXPECT_EQ(around_.run.installed.epoch(), around_.run.view.epoch().value);
  for (const auto& [thing, node] : around_.run.holdings) EXPECT_EQ(node, NodeId(10));
  EXPECT_EQ(around_.said(ToMember::kStop), 4);
}

// Claim: members that die at the end one after another keep it for 31 minutes from when members were told
// first, and no longer: neither while the others come to rest, nor while they save.
TEST_F(ChangesAtTheEnd, DeathsAtTheEndHaveOneDeadline) {
  serve(5);
  changes_.stop("enough", at(100));
  for (const std::uint64_t node : {14U, 13U, 12U}) {
    const double when = 100 + 550 * static_cast<double>(15 - node);
    EXPECT_FALSE(changes_.take_stop_end(at(when)));
    fence(node, Changes::Fenced::kInView, at(when));
    EXPECT_EQ(changes_.phase(), Phase::kFreezing);
    rest_all(at(when + 1));
    EXPECT_EQ(changes_.phase(), Phase::kStopping);
  }
  EXPECT_FALSE(changes_.take_stop_end(at(1959.9)));
  EXPECT_TRUE(changes_.take_stop_end(at(1960)));
  EXPECT_FALSE(changes_.take_stop_end(at(3000)));
}

// Claim: so it is if the others do not come to rest. The change is given eleven minutes, or less.
TEST_F(ChangesAtTheEnd, ADeathThatNobodyAnswers) {
  serve(3);
  changes_.stop("enough", at(100));
  fence(12, Changes::Fenced::kInView, at(600));
  rest_all(at(601));
  fence(11, Changes::Fenced::kInView, at(1200));
  changes_.tick(all_heard, at(1859));
  EXPECT_EQ(changes_.phase(), Phase::kFreezing);
  changes_.tick(all_heard, at(1860));
  EXPECT_EQ(changes_.phase(), Phase::kStopping) << "eleven minutes";
  EXPECT_FALSE(changes_.take_stop_end(at(1959.9)));
  fence(10, Changes::Fenced::kInView, at(1959.9));
  EXPECT_TRUE(changes_.take_stop_end(at(1960)));
}

// Claim: of the time in which a run ends, the last minute is for saving. So members in a change are told
// before.
TEST_F(ChangesAtTheEnd, ThereIsTimeToSave) {
  serve(2);
  changes_.stop("enough", at(100));
  fence(11, Changes::Fenced::kInView, at(1500));
  changes_.tick(all_heard, at(1899));
  EXPECT_EQ(changes_.phase(), Phase::kFreezing);
  changes_.tick(all_heard, at(1900));
  EXPECT_EQ(changes_.phase(), Phase::kStopping);
  EXPECT_FALSE(changes_.take_stop_end(at(1959)));
  EXPECT_TRUE(changes_.take_stop_end(at(1960)));
}

// Claim: nobody begins to serve in a run that is told to end: neither while the end waits for a member that
// is not heard, nor in the change after a death at the end. A node that is ready does not change the view.
TEST_F(ChangesAtTheEnd, NobodyBeginsToServeAtTheEnd) {
  serve(2);
  changes_.stop_unheard("enough", {});
  const Epoch before = around_.run.view.epoch();
  LedMember& joins = come(12);
  changes_.ready(joins, {});
  EXPECT_EQ(around_.run.view.epoch(), before);
  changes_.stop("enough", {});
  ASSERT_EQ(changes_.phase(), Phase::kStopping);
  fence(11, Changes::Fenced::kInView);
  rest_all({});
  EXPECT_EQ(changes_.phase(), Phase::kStopping);
  EXPECT_EQ(joins.record.state(), membership::JOINING);
  EXPECT_EQ(around_.run.view.members().size(), 1U);
}

// Claim: the first that the store hears of a death at the end is that the others are told again. What the
// dead one had may be more rows than one write takes.
TEST_F(ChangesAtTheEnd, TheStoreHearsFirstThatTheEndWaits) {
  serve(2);
  changes_.stop("enough", {});
  around_.store();
  const std::vector<std::string> keys = fence(11, Changes::Fenced::kInView);
  EXPECT_EQ(keys.front(), "stopping");
  EXPECT_EQ(std::ranges::count(keys, "stopping"), 1);
}

// Claim: a decision that was a trial is not carried out, and nobody is told of a loss in it: neither when the
// coordinator asks whether a late member is needed, nor when a part is lost in a run that is to end.
TEST_F(ChangesAtTheEnd, TrialsAreNotCarriedOut) {
  one_of_two_rests();
  const std::size_t before = around_.workload.carried_out.size();
  around_.workload.needed = NodeId(11);
  around_.workload.is_a_loss = true;
  EXPECT_TRUE(changes_.take_restless({[](NodeId) { return true; }}, at(100)).empty());
  EXPECT_EQ(around_.workload.carried_out.size(), before);
  changes_.stop("enough", at(100));
  fence(11, Changes::Fenced::kInView, at(101));
  EXPECT_EQ(changes_.phase(), Phase::kStopping);
  EXPECT_EQ(around_.workload.carried_out.size(), before) << "each saves what it has";
}

// Claim: a loss in a run that goes on ends the run. Nobody is told of the decision: members would begin the
// part anew, and save that as if it were learnt. What each holds stays as it was.
TEST_F(ChangesAtTheEnd, ALossIsCarriedOut) {
  serve(2);
  const std::uint64_t installed = around_.run.installed.epoch();
  const HoldingMap held = around_.run.holdings;
  const std::ptrdiff_t installs = around_.said(ToMember::kInstall);
  around_.workload.needed = NodeId(11);
  around_.workload.is_a_loss = true;
  fence(11, Changes::Fenced::kInView);
  rest_all({});
  ASSERT_FALSE(around_.workload.carried_out.empty());
  EXPECT_TRUE(around_.workload.carried_out.back().failure.has_value());
  ASSERT_TRUE(changes_.failure().has_value());
  EXPECT_EQ(changes_.failure()->what, "it is lost");
  EXPECT_EQ(changes_.phase(), Phase::kStopping);
  EXPECT_EQ(around_.said(ToMember::kInstall), installs);
  EXPECT_EQ(around_.said(ToMember::kStop), 1);
  EXPECT_EQ(around_.run.installed.epoch(), installed);
  EXPECT_EQ(around_.run.holdings, held);
}

// Claim: while all that hold something are there, a silent member is fenced at the end as at any time: the
// others take its things over. Once one of them has left they cannot, and the silent one may still save. Its
// silence costs its life then only if its connection has closed, as that of a process that has ended.
TEST_F(ChangesAtTheEnd, ASilentMemberMaySave) {
  serve(3);
  changes_.stop("enough", {});
  around_.store();
  EXPECT_TRUE(changes_.can_lose({NodeId(11)}, at(3)));
  fence(10, Changes::Fenced::kLeft);
  EXPECT_FALSE(changes_.can_lose({NodeId(11)}, at(3)));
  around_.run.members.at(NodeId(11)).hung_up = true;
  EXPECT_TRUE(changes_.can_lose({NodeId(11)}, at(3)));
  EXPECT_FALSE(changes_.can_lose({NodeId(11), NodeId(12)}, at(3)));
}

// Claim: the view of a run that ends changes no more, and every member is asked to leave.
TEST_F(ChangesAtTheEnd, AnEndIsFinal) {
  LedMember& member = come(10);
  changes_.stop("enough", {});
  changes_.stop("once more", {});
  changes_.ready(member, {});
  around_.store();
  EXPECT_EQ(changes_.phase(), Phase::kStopping);
  EXPECT_EQ(changes_.stop_asked().reason(), "enough");
  EXPECT_EQ(around_.said(ToMember::kStop), 1);
  EXPECT_EQ(around_.run.view.epoch(), Epoch());
  changes_.introduced(member, {});
  EXPECT_EQ(around_.said(ToMember::kStop), 2);
  EXPECT_FALSE(changes_.take_stop_end(at(599)));
  EXPECT_TRUE(changes_.take_stop_end(at(600)));
  EXPECT_FALSE(changes_.take_stop_end(at(601)));
}

}  // namespace
}  // namespace gossamer::cluster
