// SPDX-License-Identifier: Apache-2.0
//
// What a coordinator does about members that fall silent.
#include <gtest/gtest.h>

#include <vector>

#include "cluster/control/test_coordinator.h"

namespace gossamer::cluster {
namespace {

// Claim: members whose deaths are due within 50 ms of each other are one change of the view. It happens when
// the last of them is due, 250 ms after its connection broke.
TEST_F(CoordinatorOfSix, DeathsTogetherAreOneChange) {
  EXPECT_EQ(second({{members_[1], 0}, {members_[3], 7}, {members_[4], 19}}), std::vector{269});
  EXPECT_EQ(coordinator_->view().members().size(), 3u);
}

// Claim: while others hear a member that the coordinator does not, a node that is ready waits: the others
// would have to rest, and steps go on without the coordinator. It serves once the member is heard again.
TEST_F(CoordinatorOfSix, NodesWaitForAMemberThatOthersHear) {
  std::vector<net::PeerId> heard(members_.begin() + 1, members_.end());
  const auto live_on = [&](double seconds, bool first_is_heard) {
    for (const Instant end = now_ + from_seconds(seconds); now_ < end; now_ = now_ + from_milliseconds(50)) {
      if (first_is_heard) say(members_[0], [](auto& said) { said.mutable_beat(); });
      for (const net::PeerId peer : heard) {
        say(peer, [&](auto& said) {
          said.mutable_beat();
          if (!first_is_heard) said.mutable_beat()->add_hears(members_[0].node.value);
        });
      }
      coordinator_->tick(now_);
      store();
    }
  };
  live_on(1, true);
  const Epoch before = coordinator_->view().epoch();
  coordinator_->on(net::LinkBroken{.peer = members_[0], .reason = {}}, now_);
  live_on(2, false);
  const net::PeerId joins = begin(20);
  heard.push_back(joins);
  say(joins, [](auto& said) { said.mutable_ready(); });
  live_on(60, false);
  EXPECT_EQ(coordinator_->view().epoch(), before);
  EXPECT_GE(*coordinator_->next_wakeup() + from_milliseconds(50), now_) << "it would tick without end";
  live_on(0.1, true);
  EXPECT_EQ(coordinator_->view().epoch().value, before.value + 1);
  rest();
  EXPECT_TRUE(coordinator_->view().members().contains(joins.node));
}

// Claim: a death does not wait for one due later, nor longer than 50 ms however many follow. A death is not
// delayed either for a member that was heard again.
TEST_F(CoordinatorOfSix, DeathsWaitBriefly) {
  EXPECT_EQ(second({{members_[0], 0}, {members_[1], 40}, {members_[2], 80}, {members_[3], 400}}),
            (std::vector{290, 330, 650}));
  EXPECT_EQ(second({{members_[4], 0}, {members_[5], 30}}, {{members_[5], 200}}), std::vector{250});
}

// Claim: a coordinator that heard nobody for a while relayed nothing either. Members that cannot reach each
// other then have 7 s from its return, however long they have said so.
TEST_F(CoordinatorOfSix, WhatWasRelayedHasTimeAnew) {
  const auto accused_for = [this](int seconds) {
    for (int i = 0; i < 10 * seconds; ++i) {
      for (const net::PeerId peer : members_) {
        say(peer, [&](auto& said) {
          said.mutable_beat();
          if (peer == members_[0]) said.mutable_beat()->add_unreachable(members_[1].node.value);
        });
      }
      now_ = now_ + from_milliseconds(100);
      coordinator_->tick(now_);
    }
    return coordinator_->view().find(members_[1]) == nullptr;
  };
  EXPECT_FALSE(accused_for(6));
  for (int i = 0; i < 50; ++i) {
    now_ = now_ + from_milliseconds(100);
    coordinator_->tick(now_);
  }
  EXPECT_FALSE(accused_for(6));
  EXPECT_TRUE(accused_for(2));
}

}  // namespace
}  // namespace gossamer::cluster
