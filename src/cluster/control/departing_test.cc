// SPDX-License-Identifier: Apache-2.0
//
// Members that have lost a dispute, and go once the run can lose them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/control/test_coordinator.h"
#include "cluster/control/test_leadership.h"
#include "cluster/control/watch.h"

namespace gossamer::cluster {
namespace {

class DepartingMember : public CoordinatorOfSix {
 protected:
  // The first member says that it does not reach the second. All beat, and rest when they are asked to.
  // Returns after how many seconds the second had no life any more, up to `most`.
  double accused_for(double most) {
    const Instant begin = now_;
    while (now_ - begin < from_seconds(most) && is_there()) {
      for (const net::PeerId peer : members_) {
        say(peer, [&](auto& said) {
          said.mutable_beat();
          if (hears_ && peer != members_[1]) said.mutable_beat()->add_hears(hears_->value);
          if (peer == members_[0]) said.mutable_beat()->add_unreachable(members_[1].node.value);
        });
      }
      now_ = now_ + from_milliseconds(100);
      coordinator_->tick(now_);
      store();
      if (coordinator_->phase() != Coordinator::Phase::kFreezing) continue;
      ++rests_;
      rest();
    }
    return (now_ - begin).seconds();
  }
  [[nodiscard]] bool is_there() const { return coordinator_->view().find(members_[1]) != nullptr; }
  // The number of events of this kind so far.
  std::ptrdiff_t events(const std::string& kind) {
    return std::ranges::count(coordinator_->take_events(), kind, &RunEvent::kind);
  }

  int rests_ = 0;
  std::optional<NodeId> hears_;  // all but the accused one say so of it
};

// Claim: a loser of whom the others need nothing goes with the first rest.
TEST_F(DepartingMember, GoesAtOnce) {
  EXPECT_NEAR(accused_for(100), 7.2, 0.2);
  EXPECT_EQ(rests_, 1);
  EXPECT_EQ(events("disputed"), 1);
}

// Claim: a loser that is needed stays, and hands over what it holds. All rest again after 1, 2 and 4 s. It
// goes at the first rest that finds the others with everything. It is told to go once.
TEST_F(DepartingMember, HandsOverFirst) {
  workload_.needed = members_[1].node;
  EXPECT_NEAR(accused_for(12), 12, 0.1);
  EXPECT_TRUE(is_there());
  EXPECT_EQ(held_by(members_[1]), 0);
  EXPECT_EQ(rests_, 3);
  EXPECT_EQ(coordinator_->shortage(now_),
            "node 11 has to go, as it and others cannot reach each other; it hands over first what it holds");
  workload_.needed.reset();
  EXPECT_NEAR(accused_for(100), 2.2, 0.3);
  EXPECT_EQ(events("disputed"), 1);
}

// Claim: a loser that is needed for ever goes at the tenth look, 1023 s of work later.
TEST_F(DepartingMember, GoesAtTheTenthLook) {
  workload_.needed = members_[1].node;
  EXPECT_NEAR(accused_for(2000), 7 + 1023, 3);
  EXPECT_FALSE(is_there());
  EXPECT_EQ(rests_, 11);
}

// Claim: a loser that alone is left stays. Once others have what it holds, it goes.
TEST_F(DepartingMember, TheLastOneStays) {
  workload_.needed = members_[1].node;
  accused_for(8);
  for (const net::PeerId peer : members_) {
    if (peer == members_[1]) continue;
    say(peer, [](auto& said) { said.mutable_leave(); });
    rest();
  }
  live(2000);
  EXPECT_TRUE(is_there());
  workload_.needed.reset();
  serve(begin(30));
  live(700);
  EXPECT_FALSE(is_there());
}

// Claim: no rest begins for a loser while others hear a member that the coordinator does not.
TEST_F(DepartingMember, NoRestWhileOneIsMissed) {
  workload_.needed = members_[1].node;
  accused_for(8);
  const int before = rests_;
  const net::PeerId missed = members_.back();
  members_.pop_back();
  hears_ = missed.node;
  accused_for(30);
  EXPECT_LE(rests_, before + 1) << "its silence is noticed first";
  EXPECT_NE(coordinator_->view().find(missed), nullptr);
}

// Claim: where nobody rests, a loser goes at once.
TEST_F(DepartingMember, GoesAtOnceWhereNobodyRests) {
  view_change_ = ViewChange::kAnnounced;
  lead_again();
  for (const net::PeerId peer : members_) say(peer, [](auto& said) { said.mutable_here(); });
  workload_.needed = members_[1].node;
  EXPECT_NEAR(accused_for(100), 7.1, 0.2);
  EXPECT_EQ(rests_, 0);
}

// Three members, before the part of a coordinator that settles disputes.
class DepartingByWord : public ::testing::Test {
 protected:
  DepartingByWord() {
    for (const std::uint64_t node : {10U, 11U, 12U}) {
      LedMember& member = around_.add(node, membership::SERVING);
      watch_.expect(member, {});
      watch_.come(member, {});
      watch_.heard(member, {});
    }
  }

  TestLeadership around_;
  Watch watch_{around_.shared(), around_.links, {}, {}};
};

// Claim: one in whose place another went loses its next quarrel, though it is older.
TEST_F(DepartingByWord, WhoWasFavouredGoesNext) {
  around_.run.departures.add(NodeId(10), NodeId(11));
  for (const std::uint64_t epoch : {5U, 6U, 7U})
    around_.run.departures.spoilt(NodeId(10), NodeId(11), Epoch(epoch));
  watch_.forget(around_.run.members.at(NodeId(11)), {});
  around_.run.members.erase(NodeId(11));
  EXPECT_TRUE(around_.run.departures.nodes().empty());
  (void)watch_.accuses(NodeId(12), NodeId(10), "a rule");
  for (const std::uint64_t epoch : {8U, 9U, 10U})
    watch_.loses(NodeId(12), NodeId(10), epoch, Epoch(epoch), at(0.1));
  EXPECT_EQ(watch_.unreachable(at(0.1)), std::vector{NodeId(10)});
}

// Claim: a loser of a dispute has no word in others. Neither an Install nor a step ends its departure. Its
// looks count anew from a step.
TEST_F(DepartingByWord, HasNoOtherWord) {
  const auto losers = [&](int from, int to, const Watch::Work& work) {
    std::vector<NodeId> all;
    for (int ms = from; ms < to; ms += 100) {
      const Instant now = Instant{} + from_milliseconds(ms);
      for (auto& [node, member] : around_.run.members) watch_.heard(member, now);
      watch_.works(work, now);
      watch_.says(NodeId(10), {.unreachable = {NodeId(11)}}, now);
      watch_.says(NodeId(11), {.unreachable = {NodeId(10), NodeId(12)}}, now);
      for (const NodeId node : watch_.unreachable(now)) all.push_back(node);
    }
    return all;
  };
  EXPECT_EQ(losers(0, 20'000, {Epoch(1), StepNumber(5)}), std::vector{NodeId(11)});
  for (int i = 0; i < 10; ++i) around_.run.departures.looks();
  EXPECT_EQ(losers(20'000, 40'000, {Epoch(2), StepNumber(6)}), std::vector<NodeId>());
  EXPECT_TRUE(around_.run.departures.is_over(NodeId(11)));
  EXPECT_EQ(losers(40'000, 60'000, {Epoch(2), StepNumber(7)}), std::vector<NodeId>());
  EXPECT_FALSE(around_.run.departures.is_over(NodeId(11)));
  EXPECT_TRUE(around_.run.departures.contains(NodeId(11)));
  watch_.forget(around_.run.members.at(NodeId(11)), at(100));
  EXPECT_TRUE(around_.run.departures.nodes().empty());
}

}  // namespace
}  // namespace gossamer::cluster
