// SPDX-License-Identifier: Apache-2.0
//
// A view that waits: what ends the waiting, alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cluster/control/test_changes.h"

namespace gossamer::cluster {
namespace {

using Phase = CoordinatorPhase;

class WaitingTest : public ChangesTest {};

// Claim: a silent member that had reported before it fell silent has nothing to say when it is back. The
// waiting ends nevertheless, once all are heard, and does not begin again.
TEST_F(WaitingTest, EndsWhenOneIsBackThatHadReported) {
  serve(2);
  around_.workload.bytes_of_a_thing = std::uint64_t{1} << 40;
  changes_.want_change({});
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(10)), 2));
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(11)), 2));
  ASSERT_EQ(changes_.phase(), Phase::kShort) << "both have reported, and have no room";
  around_.workload.needed = NodeId(11);
  around_.workload.is_a_loss = true;
  EXPECT_FALSE(changes_.can_lose({NodeId(11)}, {}));
  ASSERT_EQ(changes_.phase(), Phase::kWaiting);
  const auto not_all = [] { return false; };
  for (int s = 1; s < 20; ++s) changes_.tick(not_all, at(s));
  EXPECT_EQ(changes_.phase(), Phase::kWaiting);
  for (int s = 20; s < 30; ++s) {
    changes_.tick(all_heard, at(s));
    EXPECT_EQ(changes_.phase(), Phase::kShort) << s;
  }
}

// Claim: a first view that waits for nobody any more, and then lacks memory, falls short once. It begins no
// view each second.
TEST_F(WaitingTest, OneThatLacksMemoryLooksNoMore) {
  std::string why = "node 11 has a piece";
  around_.options.waits_for = [&why](const View&) { return why; };
  around_.workload.bytes_of_a_thing = 1 << 30;
  LedMember& first = come(10);
  first.record.set_memory_bytes(1);
  changes_.ready(first, {});
  EXPECT_TRUE(rest(first));
  ASSERT_EQ(changes_.phase(), Phase::kShort);
  why.clear();
  changes_.tick(all_heard, at(1));
  EXPECT_TRUE(rest(first));
  ASSERT_EQ(changes_.phase(), Phase::kShort);
  const Epoch epoch = around_.run.view.epoch();
  for (int s = 2; s < 30; ++s) {
    changes_.tick(all_heard, at(s));
    EXPECT_EQ(changes_.phase(), Phase::kShort) << s;
  }
  EXPECT_EQ(around_.run.view.epoch(), epoch);
}

// Claim: a silent member is not fenced on the word of one that fell silent after it had reported. Once that
// one is heard again, it is.
TEST_F(WaitingTest, TheWordOfASilentMemberDoesNotCount) {
  serve(3);
  around_.workload.needed = NodeId(11);
  around_.workload.is_a_loss = true;
  EXPECT_FALSE(changes_.can_lose({NodeId(12)}, {}));
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(10)), 3));
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(11)), 3));
  around_.run.members.at(NodeId(11)).detector->closed(at(0.1));
  EXPECT_FALSE(changes_.can_lose({NodeId(12)}, at(0.1)));
  EXPECT_EQ(changes_.phase(), Phase::kWaiting);
  around_.hear(NodeId(11), at(0.2));
  EXPECT_TRUE(changes_.can_lose({NodeId(12)}, at(0.2)));
}

// Placements that were told to this life, alone or with the view.
std::ptrdiff_t placements_told(const TestLeadership& around, std::uint64_t incarnation) {
  return std::ranges::count_if(around.messages, [&](const auto& one) {
    const bool with_view = one.second.has_change() && one.second.change().has_installed();
    return one.first.incarnation == Incarnation(incarnation) && (with_view || one.second.has_install());
  });
}

// Claim: a placement names nodes. While a run falls short, a node's new life is not told the last placement,
// which says what its former life held: it would count as a holder, without the steps since.
TEST_F(WaitingTest, NewLifeTakesUpNothingOfTheFormerOne) {
  serve(2);
  around_.workload.bytes_of_a_thing = std::uint64_t{1} << 40;
  fence(11, Changes::Fenced::kInView);
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(10)), 2));
  ASSERT_EQ(changes_.phase(), Phase::kShort);
  LedMember& again = around_.add(11, membership::JOINING);
  again.record.set_incarnation(211);
  changes_.here(again, {}, {});
  changes_.here(come(12), {}, {});
  around_.store();
  ASSERT_TRUE(again.told);
  EXPECT_EQ(placements_told(around_, 211), 0);
  EXPECT_EQ(placements_told(around_, 112), 0) << "a life of its node may have kept copies";
  changes_.ready(again, {});
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(10)), 2));
  EXPECT_TRUE(rest(again));
  around_.workload.bytes_of_a_thing = 1;
  changes_.want_change({});
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(10)), 2));
  EXPECT_TRUE(rest(again));
  around_.store();
  EXPECT_EQ(placements_told(around_, 211), 1) << "the one in which it serves";
}

// Claim: where members go on through a change, a placement is the node's, and its new life is told at once.
TEST_F(WaitingTest, NewLifeOfAnEngineThatGoesOnIsTold) {
  serve(2);
  around_.options.view_change = ViewChange::kAnnounced;
  around_.workload.bytes_of_a_thing = std::uint64_t{1} << 40;
  fence(11, Changes::Fenced::kInView);
  ASSERT_EQ(changes_.phase(), Phase::kShort);
  LedMember& again = around_.add(11, membership::JOINING);
  again.record.set_incarnation(211);
  changes_.here(again, {}, {});
  around_.store();
  EXPECT_EQ(placements_told(around_, 211), 1);
}

// Claim: while a run ends, a life whose former one has left takes up nothing, either. A member that lacks the
// placement in which it serves is told again.
TEST_F(WaitingTest, NewLifeTakesUpNothingWhileARunEnds) {
  serve(2);
  const auto comes_back = [&](LedMember& member) {
    membership::Here here;
    here.set_epoch(around_.run.view.epoch().value);
    changes_.here(member, here, {});
    around_.store();
  };
  changes_.stop("enough", {});
  fence(11, Changes::Fenced::kLeft);
  LedMember& again = around_.add(11, membership::JOINING);
  again.record.set_incarnation(211);
  changes_.here(again, {}, {});
  comes_back(again);
  EXPECT_EQ(placements_told(around_, 211), 0);
  const auto before = placements_told(around_, 110);
  comes_back(around_.run.members.at(NodeId(10)));
  EXPECT_EQ(placements_told(around_, 110), before + 1);
}

// Claim: a run that falls short to its end tells no placement to a life that serves since: it never was the
// holder.
TEST_F(WaitingTest, NewLifeThatServesTakesUpNothingBeforeAPlacement) {
  serve(2);
  around_.workload.bytes_of_a_thing = std::uint64_t{1} << 40;
  fence(11, Changes::Fenced::kInView);
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(10)), 2));
  LedMember& again = around_.add(11, membership::JOINING);
  again.record.set_incarnation(211);
  changes_.here(again, {}, {});
  changes_.ready(again, {});
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(10)), 2));
  EXPECT_TRUE(rest(again));
  ASSERT_EQ(changes_.phase(), Phase::kShort);
  changes_.stop("enough", {});
  changes_.tick(all_heard, at(3600));
  ASSERT_EQ(changes_.phase(), Phase::kStopping);
  membership::Here here;
  here.set_epoch(around_.run.view.epoch().value);
  changes_.here(again, here, {});
  around_.store();
  EXPECT_EQ(placements_told(around_, 211), 0);
}

}  // namespace
}  // namespace gossamer::cluster
