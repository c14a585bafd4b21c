// SPDX-License-Identifier: Apache-2.0
//
// A change that can wait, as the coordinator has it: docs/protocols/membership.md as tests.
#include "cluster/membership/open_steps.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/test_generated_block.h"
#include "cluster/control/test_changes.h"
#include "cluster/control/test_coordinator.h"

namespace gossamer::cluster {
namespace {

using Phase = CoordinatorPhase;
using State = OpenSteps::State;
using StepEvent = OpenSteps::Event;

// Claim: docs/protocols/membership.md shows the table that the code follows.
TEST(OpenSteps, StandInThePage) {
  EXPECT_EQ(block_difference({.page = GOSSAMER_TREE "/docs/protocols/membership.md",
                              .name = "open-steps",
                              .text = OpenSteps::transitions()}),
            "");
}

// Claim: each row leads where the page says, and an event without a row changes nothing.
TEST(OpenSteps, EachRow) {
  const std::map<State, std::vector<StepEvent>> ways = {
      {State::kBarred, {}},
      {State::kNone, {StepEvent::kInstalled}},
      {State::kOpen, {StepEvent::kInstalled, StepEvent::kBegins}},
      {State::kClosing, {StepEvent::kInstalled, StepEvent::kBegins, StepEvent::kStepEnded}}};
  const std::map<std::pair<State, StepEvent>, State> rows = {
      {{State::kBarred, StepEvent::kInstalled}, State::kNone},
      {{State::kNone, StepEvent::kBegins}, State::kOpen},
      {{State::kOpen, StepEvent::kStepEnded}, State::kClosing},
      {{State::kOpen, StepEvent::kTrouble}, State::kNone},
      {{State::kOpen, StepEvent::kOver}, State::kNone},
      {{State::kClosing, StepEvent::kStepEnded}, State::kClosing},
      {{State::kClosing, StepEvent::kTimeOver}, State::kNone},
      {{State::kClosing, StepEvent::kTrouble}, State::kNone},
      {{State::kClosing, StepEvent::kOver}, State::kNone}};
  for (const auto& [state, way] : ways) {
    for (const StepEvent event : {StepEvent::kInstalled, StepEvent::kBegins, StepEvent::kStepEnded,
                                  StepEvent::kTimeOver, StepEvent::kTrouble, StepEvent::kOver}) {
      OpenSteps steps;
      for (const StepEvent one : way) ASSERT_TRUE(steps.take(one, at(1)));
      ASSERT_EQ(steps.state(), state);
      const auto row = rows.find({state, event});
      EXPECT_EQ(steps.take(event, at(2)), row != rows.end());
      EXPECT_EQ(steps.state(), row == rows.end() ? state : row->second);
      EXPECT_EQ(steps.next_look().has_value(), steps.state() == State::kClosing);
    }
  }
}

// Claim: the 10 s count from the first member that has ended its step, and end with the waiting.
TEST(OpenSteps, TimeCountsFromTheFirst) {
  OpenSteps steps;
  for (const StepEvent one : {StepEvent::kInstalled, StepEvent::kBegins}) (void)steps.take(one, at(0));
  EXPECT_FALSE(steps.is_due(at(1000)));
  (void)steps.take(StepEvent::kStepEnded, at(20));
  (void)steps.take(StepEvent::kStepEnded, at(25));
  EXPECT_FALSE(steps.is_due(at(29.9)));
  EXPECT_TRUE(steps.is_due(at(30)));
  (void)steps.take(StepEvent::kOver, at(30));
  EXPECT_FALSE(steps.is_due(at(1000)));
  (void)steps.take(StepEvent::kBegins, at(100));
  EXPECT_FALSE(steps.is_due(at(1000)));
}

class OpenStepsTest : public ChangesTest {
 protected:
  OpenStepsTest() { around_.workload.ends_steps = true; }

  // The flags of the last Change that left.
  [[nodiscard]] const membership::Change& last_change() {
    around_.store();
    for (auto one = around_.messages.rbegin(); one != around_.messages.rend(); ++one) {
      if (one->second.has_change()) return one->second.change();
    }
    ADD_FAILURE() << "no Change has left";
    static const membership::Change none;
    return none;
  }
  void hear_all(Instant now) {
    for (const auto& [node, record] : around_.run.view.members()) around_.hear(node, now);
  }
  // Nodes 10 to 12 serve, and node 13 is ready to.
  void one_joins(Instant now = {}) {
    serve(3);
    hear_all(now);
    LedMember& joins = come(13);
    around_.hear(NodeId(13), now);
    changes_.ready(joins, now);
  }
  void rests(std::uint64_t node, bool ended_step, Instant now) {
    membership::Frozen said;
    said.set_epoch(around_.run.view.epoch().value);
    said.set_installed(around_.run.installed.epoch());
    said.set_ended_step(ended_step);
    const LedMember& member = around_.run.members.at(NodeId(node));
    ASSERT_TRUE(changes_.awaits(peer_of(member.record), said));
    changes_.rests(member, said, now);
  }
  void expect_open() {
    EXPECT_EQ(changes_.phase(), Phase::kFreezing);
    EXPECT_TRUE(changes_.steps_go_on());
    EXPECT_TRUE(last_change().freeze() && last_change().can_wait());
  }
  // The change began anew, and cannot wait.
  void expect_hurried(Epoch before) {
    EXPECT_EQ(changes_.phase(), Phase::kFreezing);
    EXPECT_FALSE(changes_.steps_go_on());
    EXPECT_EQ(around_.run.view.epoch().value, before.value + 1);
    EXPECT_TRUE(last_change().freeze());
    EXPECT_FALSE(last_change().can_wait());
  }
};

// Claim: a join waits for the step that is open. Once all rest, all go on.
TEST_F(OpenStepsTest, AJoinWaits) {
  one_joins();
  expect_open();
  rests(13, false, at(1));
  rests(10, true, at(2));
  rests(11, true, at(2.1));
  EXPECT_EQ(changes_.phase(), Phase::kFreezing);
  rests(12, true, at(2.2));
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
  EXPECT_TRUE(changes_.steps_go_on());
  EXPECT_EQ(around_.run.installed.epoch(), around_.run.view.epoch().value);
}

// Claim: so do a drain, an expulsion, and a member that rests by a wish. Of that the word counts only now and
// then, and only of a member that has the view.
TEST_F(OpenStepsTest, WhatIsInOrderWaits) {
  serve(3);
  hear_all({});
  changes_.drain(around_.run.members.at(NodeId(10)), {});
  expect_open();
  rest_all({});
  ASSERT_EQ(changes_.phase(), Phase::kSettled);
  changes_.want_in_order({});
  expect_open();
  rest_all({});
  const auto wishes = [&](std::uint64_t epoch) {
    membership::Beat beat;
    beat.set_epoch(epoch);
    beat.set_rests_by_wish(true);
    changes_.beats(around_.run.members.at(NodeId(11)), beat, {});
  };
  wishes(around_.run.view.epoch().value - 1);
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
  wishes(around_.run.view.epoch().value);
  expect_open();
  rest_all({});
  wishes(around_.run.view.epoch().value);
  EXPECT_EQ(changes_.phase(), Phase::kSettled) << "it said so a moment ago";
}

// Claim: a member that leaves when it has drained costs no step. One that leaves otherwise does, as others
// may wait for its part.
TEST_F(OpenStepsTest, LeavingInOrder) {
  serve(3);
  for (const bool drains : {true, false}) {
    hear_all({});
    const std::uint64_t node = drains ? 10 : 11;
    if (drains) {
      changes_.drain(around_.run.members.at(NodeId(node)), {});
      rest_all({});
      hear_all({});
    }
    ASSERT_EQ(changes_.phase(), Phase::kSettled);
    fence(node, Changes::Fenced::kLeft);
    EXPECT_EQ(changes_.phase(), Phase::kFreezing);
    EXPECT_EQ(changes_.steps_go_on(), drains);
    EXPECT_EQ(last_change().can_wait(), drains);
    rest_all({});
  }
}

// Claim: a member that drains and still holds something is needed for the open step.
TEST_F(OpenStepsTest, LeavingTooSoon) {
  serve(3);
  hear_all({});
  around_.run.members.at(NodeId(10)).wants_to_drain = true;
  changes_.want_in_order({});
  rest_all({});
  hear_all({});
  around_.run.holdings[placement::ThingId(0)] = NodeId(10);
  fence(10, Changes::Fenced::kLeft);
  EXPECT_FALSE(changes_.steps_go_on());
  EXPECT_FALSE(last_change().can_wait());
}

// Claim: an engine that does not wait is told nothing of waiting.
TEST_F(OpenStepsTest, OtherEnginesAreAsBefore) {
  around_.workload.ends_steps = false;
  one_joins();
  EXPECT_EQ(changes_.phase(), Phase::kFreezing);
  EXPECT_FALSE(changes_.steps_go_on());
  EXPECT_TRUE(last_change().freeze());
  EXPECT_FALSE(last_change().can_wait());
}

// Claim: a change that something is wrong for never waits, nor does one while a member is not heard, or has
// to go.
TEST_F(OpenStepsTest, TroubleThatIsKnown) {
  serve(3);
  hear_all({});
  changes_.want_change({});
  EXPECT_FALSE(last_change().can_wait());
  rest_all({});
  around_.run.departures.add(NodeId(11), std::nullopt);
  changes_.want_in_order({});
  EXPECT_FALSE(last_change().can_wait()) << "node 11 has to go";
  for (const std::uint64_t node : {10U, 12U}) rests(node, false, {});
  fence(11, Changes::Fenced::kInView);
  ASSERT_EQ(changes_.phase(), Phase::kSettled);
  around_.run.members.at(NodeId(12)).here = false;
  changes_.want_in_order({});
  EXPECT_FALSE(last_change().can_wait()) << "node 12 has not come";
  EXPECT_FALSE(changes_.steps_go_on());
}

// Claim: a lost link, a dispute or a standstill ends the waiting: the next epoch begins at once, and its
// Change cannot wait. Reports of the epoch before do not count.
TEST_F(OpenStepsTest, TroubleEndsTheWaiting) {
  one_joins();
  const Epoch before = around_.run.view.epoch();
  rests(13, false, at(1));
  rests(10, true, at(1));
  changes_.want_change(at(2));
  expect_hurried(before);
  EXPECT_EQ(changes_.awaited().size(), 4U);
  rest_all(at(3));
  EXPECT_EQ(changes_.phase(), Phase::kSettled);
}

// Claim: a link that ended is such trouble, by the beat of a member that has the view.
TEST_F(OpenStepsTest, ALostLink) {
  one_joins();
  const Epoch before = around_.run.view.epoch();
  membership::Beat beat;
  beat.set_epoch(before.value);
  beat.add_lost(11);
  changes_.lost_links(around_.run.members.at(NodeId(10)), beat, {});
  expect_hurried(before);
}

// Claim: a member that seems dead ends the waiting, and is fenced once the others have reported anew.
TEST_F(OpenStepsTest, ADeath) {
  one_joins();
  const Epoch before = around_.run.view.epoch();
  rests(13, false, {});
  rests(10, true, {});
  EXPECT_FALSE(changes_.can_lose({NodeId(12)}, {}));
  expect_hurried(before);
  for (const std::uint64_t node : {10U, 11U, 13U}) rests(node, false, {});
  EXPECT_TRUE(changes_.can_lose({NodeId(12)}, {}));
}

// Claim: a fence ends the waiting, too.
TEST_F(OpenStepsTest, AFence) {
  one_joins();
  const Epoch before = around_.run.view.epoch();
  fence(12, Changes::Fenced::kInView);
  expect_hurried(before);
}

// Claim: 10 s after the first member has rested that had a step open, the change waits no longer. One that
// had none begins no time. Without any step that ends, it waits on.
TEST_F(OpenStepsTest, TenSeconds) {
  one_joins();
  const Epoch before = around_.run.view.epoch();
  rests(13, false, at(1));
  changes_.tick(all_heard, at(100));
  expect_open();
  rests(10, true, at(100));
  EXPECT_LE(*changes_.next_wakeup(), at(110));
  rests(11, true, at(105));
  changes_.tick(all_heard, at(109.9));
  expect_open();
  changes_.tick(all_heard, at(110));
  expect_hurried(before);
}

// Claim: members lose no time for coming to rest while the change waits. Their times begin with the change
// that cannot wait.
TEST_F(OpenStepsTest, PatienceBeginsLater) {
  one_joins();
  const RestClock::Hearing hears{.hears = [](NodeId) { return true; }};
  for (int s = 1; s < 1000; ++s) EXPECT_TRUE(changes_.take_restless(hears, at(s)).empty()) << s;
  rests(13, false, at(1000));
  for (const std::uint64_t node : {10U, 11U}) rests(node, true, at(1000));
  changes_.tick(all_heard, at(1010));
  around_.store(at(1010));
  for (const std::uint64_t node : {10U, 11U, 13U}) rests(node, false, at(1011));
  for (int s = 1011; s < 1040; ++s) EXPECT_TRUE(changes_.take_restless(hears, at(s)).empty()) << s;
  hear_all(at(1041));
  EXPECT_EQ(changes_.take_restless(hears, at(1041)), std::set<NodeId>{NodeId(12)});
}

// Claim: what comes in order during a change that cannot wait has its own turn, which can. What something is
// wrong for cannot.
TEST_F(OpenStepsTest, TheNextTurn) {
  for (const bool in_order : {true, false}) {
    if (in_order) serve(3);
    hear_all({});
    changes_.want_change({});
    in_order ? changes_.want_in_order({}) : changes_.want_change({});
    rest_all({});
    EXPECT_EQ(changes_.phase(), Phase::kFreezing);
    EXPECT_EQ(changes_.steps_go_on(), in_order);
    EXPECT_EQ(last_change().can_wait(), in_order);
    rest_all({});
    EXPECT_EQ(changes_.phase(), Phase::kSettled);
  }
}

// Claim: a member whose link is new during such a change is told that it can wait.
TEST_F(OpenStepsTest, ToldAgain) {
  one_joins();
  around_.store();
  around_.messages.clear();
  membership::Here here;
  here.set_epoch(around_.run.installed.epoch());
  changes_.here(around_.run.members.at(NodeId(10)), here, {});
  EXPECT_TRUE(last_change().freeze() && last_change().can_wait());
}

// Claim: a coordinator that takes over sends no Change that can wait until it has installed a view.
TEST_F(OpenStepsTest, ATakeover) {
  serve(3);
  hear_all({});
  Changes next(around_.shared(), books_);
  next.take_up({}, {});
  next.want_in_order({});
  EXPECT_EQ(next.phase(), Phase::kFreezing);
  EXPECT_FALSE(next.steps_go_on());
  EXPECT_FALSE(last_change().can_wait());
}

// A whole coordinator: nodes 10 to 12 serve, and node 13 is ready. They end their steps first.
class CoordinatorThatWaits : public CoordinatorTest {
 protected:
  CoordinatorThatWaits() : CoordinatorTest({TrackId(0)}) {
    workload_.count = 12;
    workload_.ends_steps = true;
    for (std::uint64_t node = 10; node < 13; ++node) {
      members_.push_back(begin(node));
      serve(members_.back());
    }
    members_.push_back(begin(13));
    say(members_.back(), [](auto& said) { said.mutable_ready(); });
    waiting_ = coordinator_->view().epoch();
  }
  // All beat, and none rests. One may say that it does not reach another.
  void work_for(double seconds, std::optional<NodeId> unreachable = {}) {
    for (const Instant end = now_ + from_seconds(seconds); now_ < end;) {
      now_ = now_ + from_milliseconds(200);
      for (const net::PeerId peer : members_) {
        say(peer, [&](auto& said) {
          said.mutable_beat()->set_epoch(coordinator_->view().epoch().value);
          if (unreachable && peer == members_[0]) said.mutable_beat()->add_unreachable(unreachable->value);
        });
      }
      coordinator_->tick(now_);
      store();
    }
  }
  // Whether the last Change to node 10 can wait.
  [[nodiscard]] bool waits() const {
    bool can_wait = false;
    for (const auto& [to, message] : said_.all) {
      if (to == members_[0] && message.has_change()) can_wait = message.change().can_wait();
    }
    return can_wait && coordinator_->view().epoch() == waiting_;
  }

  std::vector<net::PeerId> members_;
  Epoch waiting_;
};

// Claim: a run that stands still while a change waits is noticed as at any time.
TEST_F(CoordinatorThatWaits, StandsStill) {
  work_for(170);
  EXPECT_TRUE(waits());
  work_for(20);
  EXPECT_FALSE(waits());
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kFreezing);
}

// Claim: so is a dispute, after its 7 s.
TEST_F(CoordinatorThatWaits, Disputes) {
  work_for(6, members_[1].node);
  EXPECT_TRUE(waits());
  work_for(3, members_[1].node);
  EXPECT_FALSE(waits());
}

}  // namespace
}  // namespace gossamer::cluster
