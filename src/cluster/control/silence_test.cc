// SPDX-License-Identifier: Apache-2.0
//
// What a coordinator does about members that fall silent.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
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
      store();
      if (coordinator_->phase() == Coordinator::Phase::kFreezing) rest();
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

// Half of six members fall silent together, and the others reach them only through the coordinator.
class HalfOfSixHidden : public CoordinatorOfSix {
 protected:
  HalfOfSixHidden() {
    for (const std::size_t i : {0U, 1U, 2U})
      coordinator_->on(net::LinkBroken{.peer = members_[i], .reason = {}}, now_);
  }
  // The other half beats, and rests when it is asked to.
  void go_on(double seconds) {
    for (const Instant end = now_ + from_seconds(seconds); now_ < end; now_ = now_ + from_milliseconds(100)) {
      for (const net::PeerId peer : {members_[3], members_[4], members_[5], back_}) {
        if (peer.node.value != 0) say(peer, [](auto& said) { said.mutable_beat(); });
      }
      coordinator_->tick(now_);
      store();
      if (coordinator_->phase() == Coordinator::Phase::kFreezing) {
        rest([&](net::PeerId peer) { return peer.node >= members_[3].node || peer == back_; });
        coordinator_->tick(now_);
        store();
      }
    }
  }
  net::PeerId back_;  // the first of the silent, once it is back
};

// Claim: where nobody has a word about members that fell silent together, none is fenced within their
// patience, and the status names them.
TEST_F(HalfOfSixHidden, HaveTheirPatience) {
  go_on(599);
  EXPECT_EQ(coordinator_->view().members().size(), 6u);
  EXPECT_EQ(coordinator_->shortage(now_),
            "node 10, 11, 12 is silent, and nothing shows that it is dead; it has ten minutes to come back");
  go_on(3);
  EXPECT_EQ(coordinator_->view().members().size(), 3u);
  EXPECT_EQ(coordinator_->shortage(now_), "");
}

// Claim: once one of them is back, the others have 10 s.
TEST_F(HalfOfSixHidden, OneIsBack) {
  go_on(60);
  back_ = members_[0];
  go_on(9.9);
  EXPECT_EQ(coordinator_->view().members().size(), 6u);
  go_on(1);
  EXPECT_EQ(coordinator_->view().find(members_[1]), nullptr);
  EXPECT_EQ(coordinator_->view().find(members_[2]), nullptr);
  EXPECT_NE(coordinator_->view().find(members_[0]), nullptr);
}

// Claim: once the node of one of them begins another life, the others have 10 s.
TEST_F(HalfOfSixHidden, OneBeginsAnotherLife) {
  go_on(60);
  begin(members_[0].node.value);
  go_on(9);
  EXPECT_NE(coordinator_->view().find(members_[1]), nullptr);
  go_on(2);
  EXPECT_EQ(coordinator_->view().find(members_[1]), nullptr);
  EXPECT_EQ(coordinator_->view().find(members_[2]), nullptr);
}

// Three members whose steps need all of them.
class TogetherOfThree : public CoordinatorTest {
 protected:
  TogetherOfThree() : CoordinatorTest({TrackId(0), TrackId(1), TrackId(2)}) {
    workload_.count = 3;
    for (std::uint64_t node = 10; node < 13; ++node) {
      members_.push_back(begin(node));
      serve(members_.back());
    }
  }
  struct Engine {
    bool rests = true;
    double works = 0;           // of its time
    double bytes_a_second = 0;  // sent and received
  };
  // All beat for so long, with engines that do so. A step is committed each second where `steps`.
  void go_on(double seconds, const std::vector<Engine>& engines, bool steps = false) {
    for (const Instant end = now_ + from_seconds(seconds); now_ < end; now_ = now_ + from_milliseconds(100)) {
      ++tick_;
      if (steps && tick_ % 10 == 0) ++next_;
      for (std::size_t i = 0; i < members_.size(); ++i) {
        work_ms_[i] += 100 * engines[i].works;
        bytes_[i] += 0.1 * engines[i].bytes_a_second;
        say(members_[i], [&](auto& said) { beat(*said.mutable_beat(), i); });
      }
      coordinator_->tick(now_);
      store();
      if (coordinator_->phase() != Coordinator::Phase::kFreezing) continue;
      rest([&](net::PeerId peer) { return engines[peer.node.value - 10].rests; });
    }
  }
  void beat(membership::Beat& beat, std::size_t i) {
    beat.set_epoch(coordinator_->view().epoch().value);
    beat.set_work_ms(static_cast<std::uint64_t>(work_ms_[i]));
    beat.set_moved_bytes(static_cast<std::uint64_t>(bytes_[i]));
    for (std::uint64_t track = 0; track < 3; ++track) {
      membership::Progress& progress = *beat.add_progress();
      progress.set_track(track);
      progress.set_next(next_);
    }
  }
  [[nodiscard]] Epoch epoch() const { return coordinator_->view().epoch(); }

  std::vector<net::PeerId> members_;
  std::uint64_t tick_ = 0;
  std::uint64_t next_ = 0;  // step
  std::array<double, 3> work_ms_ = {};
  std::array<double, 3> bytes_ = {};
};

// Claim: a run that takes no step for three minutes, while no member works, asks all to rest. It fences the
// member that does not come to rest, 30 s later, and names it in the status meanwhile.
TEST_F(TogetherOfThree, AnEngineHangs) {
  go_on(300, {{}, {}, {}}, true);
  const Epoch before = epoch();
  go_on(179, {{}, {.rests = false}, {}});
  EXPECT_EQ(epoch(), before);
  go_on(2, {{}, {.rests = false}, {}});
  EXPECT_EQ(epoch().value, before.value + 1);
  EXPECT_EQ(coordinator_->shortage(now_), "node 11 has not come to rest");
  go_on(31, {{}, {.rests = false}, {}});
  EXPECT_EQ(coordinator_->view().find(members_[1]), nullptr);
  EXPECT_EQ(coordinator_->view().members().size(), 2u);
}

// Claim: a member that works, or data on a slow way, is no hang, however long a step takes.
TEST_F(TogetherOfThree, LongSteps) {
  go_on(10, {{}, {}, {}}, true);
  const Epoch before = epoch();
  go_on(2000, {{}, {.works = 0.1}, {}});
  go_on(2000, {{}, {}, {.bytes_a_second = 1000}});
  EXPECT_EQ(epoch(), before);
}

// Claim: what engines do while they wait is no work. If all rest, all go on, and are asked again later and
// later.
TEST_F(TogetherOfThree, NobodyHangs) {
  go_on(10, {{}, {}, {}}, true);
  const Epoch before = epoch();
  const Engine waits{.works = 0.003, .bytes_a_second = 300};
  go_on(3600, {waits, waits, waits});
  EXPECT_EQ(epoch().value, before.value + 4) << "after 3, 6, 12 and 24 minutes";
  EXPECT_EQ(coordinator_->view().members().size(), 3u);
}

// Claim: nobody is fenced for not coming to rest while no member rests, however long: there is none to go on.
TEST_F(TogetherOfThree, AllHang) {
  go_on(10, {{}, {}, {}}, true);
  const Engine hangs{.rests = false};
  go_on(3600, {hangs, hangs, hangs});
  EXPECT_EQ(coordinator_->view().members().size(), 3u);
  go_on(1, {{}, {}, {}});
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kSettled);
}

}  // namespace
}  // namespace gossamer::cluster
