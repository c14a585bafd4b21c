// SPDX-License-Identifier: Apache-2.0
//
// A member that is told to come to rest, alone.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "cluster/control/control_message.h"
#include "cluster/control/member_process.h"
#include "cluster/control/test_nobody.h"

namespace gossamer::cluster {
namespace {

class MemberRest : public ::testing::Test {
 protected:
  MemberRest() : process_(options(), network_, {}) {
    process_.tick({});
    membership::BeginAnswer begun;
    begun.set_node(2);
    begun.set_incarnation(3);
    begun.mutable_lead()->set_incarnation(1);
    begun.set_beat_ms(100);
    process_.on(host::Answered{network_.asked(), begun.SerializeAsString()}, {});
  }
  MemberProcess::Options options() {
    MemberProcess::Options options;
    options.falsify = [this](membership::ToCoordinator& said) {
      if (said.has_beat()) beat_ = said.beat();
      if (said.has_frozen()) frozen_ = said.frozen();
    };
    options.run = "run";
    options.coordinators = {{.host = "there", .port = 1}};
    return options;
  }
  void hear(const membership::ToMember& said) {
    Member& own = *process_.member();
    own.on(net::Arrived{.from = own.coordinator(), .message = pack(said), .receipt = {}}, {});
  }
  void change(std::uint64_t epoch, bool freeze, bool can_wait = false) {
    membership::ToMember said;
    said.mutable_change()->set_from(epoch - 1);
    said.mutable_change()->set_epoch(epoch);
    said.mutable_change()->set_freeze(freeze);
    said.mutable_change()->set_can_wait(can_wait);
    if (epoch == 1) {
      for (const net::PeerId peer : {net::PeerId{NodeId(2), Incarnation(3)}, kOther}) {
        membership::MemberRecord& record = *said.mutable_change()->add_members();
        record.set_node(peer.node.value);
        record.set_incarnation(peer.incarnation.value);
        record.set_state(membership::SERVING);
        record.mutable_listening()->mutable_control()->set_port(1);
        record.mutable_listening()->mutable_bulk()->set_port(1);
      }
    }
    hear(said);
  }
  // What it says in its next beat.
  const membership::Beat& next_beat() {
    now_ = now_ + from_milliseconds(100);
    process_.member()->tick(now_);
    return beat_;
  }
  [[nodiscard]] std::vector<ViewChanged> told() {
    std::vector<ViewChanged> all;
    for (const MemberEvent& event : process_.member()->take_events()) {
      if (const auto* const changed = std::get_if<ViewChanged>(&event)) all.push_back(*changed);
    }
    return all;
  }
  void install(std::uint64_t epoch) {
    membership::ToMember said;
    said.mutable_install()->set_epoch(epoch);
    hear(said);
  }
  [[nodiscard]] bool at_rest() { return process_.member()->at_rest(); }

  static constexpr net::PeerId kOther{NodeId(7), Incarnation(2)};

  Instant now_;
  membership::Beat beat_;      // the last one it sent
  membership::Frozen frozen_;  // likewise
  Nobody network_;
  MemberProcess process_;
};

// Claim: a member rests from the view with which it is told to until the placement of that view, whether its
// engine has come to rest or not. A view that asks for no rest, in a run that asks for none, is none.
TEST_F(MemberRest, LastsUntilTheInstall) {
  change(1, false);
  EXPECT_FALSE(at_rest());
  change(2, true);
  EXPECT_TRUE(at_rest());
  change(3, true);
  install(2);
  EXPECT_TRUE(at_rest()) << "another view follows";
  install(3);
  EXPECT_FALSE(at_rest());
}

// Claim: a member that is told of a change that can wait rests once its engine does, and says whether it had
// a step to end. A change that cannot wait makes it rest at once.
TEST_F(MemberRest, AfterTheOpenStep) {
  Member& own = *process_.member();
  change(1, false);
  (void)told();
  change(2, true, true);
  const auto soft = told();
  ASSERT_EQ(soft.size(), 1U);
  EXPECT_TRUE(soft[0].freeze && soft[0].can_wait);
  EXPECT_FALSE(at_rest());
  own.ended_step();
  own.frozen("report", {}, now_);
  EXPECT_TRUE(at_rest());
  EXPECT_TRUE(frozen_.ended_step());
  install(2);
  EXPECT_FALSE(at_rest());
  change(3, true, true);
  EXPECT_FALSE(at_rest());
  change(4, true);
  const auto hard = told();
  ASSERT_EQ(hard.size(), 2U);
  EXPECT_TRUE(hard[1].freeze);
  EXPECT_FALSE(hard[1].can_wait);
  EXPECT_TRUE(at_rest());
  own.frozen("report", {}, now_);
  EXPECT_FALSE(frozen_.ended_step()) << "that was in another view";
}

// Claim: what a member has lost before a change that can wait is told with its beats after it. A change that
// cannot wait lets all go on from the same step, so it is forgotten.
TEST_F(MemberRest, LossesAreTold) {
  Member& own = *process_.member();
  own.on(net::LinkUp{own.coordinator()}, now_);
  change(1, false);
  own.on(net::LinkUp{kOther}, now_);
  own.on(net::LinkEnded{.peer = kOther, .reason = {}, .refused = net::Refused::kNo}, now_);
  change(2, true, true);
  ASSERT_EQ(next_beat().lost_size(), 1);
  EXPECT_EQ(beat_.lost(0), 7U);
  EXPECT_EQ(beat_.epoch(), 2U);
  change(3, true);
  EXPECT_EQ(next_beat().lost_size(), 0);
}

// Claim: a member that rests by wish says so in each beat until the next Install.
TEST_F(MemberRest, ByWish) {
  Member& own = *process_.member();
  own.on(net::LinkUp{own.coordinator()}, now_);
  change(1, true);
  install(1);
  EXPECT_FALSE(next_beat().rests_by_wish());
  own.rests_by_wish();
  EXPECT_TRUE(next_beat().rests_by_wish());
  change(2, true, true);
  EXPECT_TRUE(next_beat().rests_by_wish());
  install(2);
  EXPECT_FALSE(next_beat().rests_by_wish());
}

}  // namespace
}  // namespace gossamer::cluster
