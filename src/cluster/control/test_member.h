// SPDX-License-Identifier: Apache-2.0
//
// Tests only: a member process alone, before a coordinator whose messages the test chooses. Thread rule: the
// test's thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "cluster/control/control_message.h"
#include "cluster/control/member_process.h"
#include "cluster/control/test_nobody.h"

namespace gossamer::cluster {

class MemberTest : public ::testing::Test {
 protected:
  static constexpr net::PeerId kSelf{NodeId(2), Incarnation(3)};

  MemberTest() : process_(options(), network_, now_) { process_.tick(now_); }

  MemberProcess::Options options() {
    MemberProcess::Options options;
    options.falsify = [this](membership::ToCoordinator& said) {
      if (said.has_beat()) beat_ = said.beat();
      if (said.has_leave()) ++leaves_;
    };
    options.told = [this] { return told_; };
    options.run = "run";
    options.coordinators = {{.host = "there", .port = 1}, {.host = "elsewhere", .port = 2}};
    return options;
  }
  void stop_answer(const char* reason, bool failed) {
    membership::BeginAnswer ends;
    ends.mutable_stop()->set_reason(reason);
    ends.mutable_stop()->set_failed(failed);
    process_.on(host::Answered{network_.asked(), ends.SerializeAsString()}, now_);
  }
  void link_ends(Error reason, net::Refused refused) {
    Member& own = *process_.member();
    own.on(net::LinkEnded{.peer = own.coordinator(), .reason = std::move(reason), .refused = refused}, now_);
  }
  // The link says that this life is fenced.
  void fenced() { link_ends({.kind = ErrorKind::kRefused, .what = "fenced"}, net::Refused::kFenced); }
  static std::string begun(net::PeerId self) {
    membership::BeginAnswer begun;
    begun.set_node(self.node.value);
    begun.set_incarnation(self.incarnation.value);
    begun.mutable_lead()->set_incarnation(1);
    begun.set_beat_ms(100);
    return begun.SerializeAsString();
  }
  void answer(net::PeerId self) { process_.on(host::Answered{network_.asked(), begun(self)}, now_); }
  // The first view, with one member.
  void change(net::PeerId member) {
    membership::ToMember said;
    said.mutable_change()->set_epoch(1);
    membership::MemberRecord& record = *said.mutable_change()->add_members();
    record.set_node(member.node.value);
    record.set_incarnation(member.incarnation.value);
    record.set_state(membership::SERVING);
    record.mutable_listening()->mutable_control()->set_port(1);
    record.mutable_listening()->mutable_bulk()->set_port(1);
    Member& own = *process_.member();
    own.on(net::Arrived{.from = own.coordinator(), .message = pack(said), .receipt = {}}, now_);
  }
  // The next view adds members that listen nowhere.
  void hide(net::PeerId member) {
    membership::ToMember said;
    said.mutable_change()->set_from(1);
    said.mutable_change()->set_epoch(2);
    membership::MemberRecord& record = *said.mutable_change()->add_members();
    record.set_node(member.node.value);
    record.set_incarnation(member.incarnation.value);
    record.set_state(membership::SERVING);
    Member& own = *process_.member();
    own.on(net::Arrived{.from = own.coordinator(), .message = pack(said), .receipt = {}}, now_);
  }
  // Lets so many seconds pass.
  void wait(double seconds) {
    for (int i = 0; i < static_cast<int>(10 * seconds); ++i) {
      now_ = now_ + from_milliseconds(100);
      process_.member()->tick(now_);
    }
  }
  // Likewise, and the coordinator is heard meanwhile.
  void wait_led(double seconds) {
    Member& own = *process_.member();
    membership::ToMember seen;
    seen.mutable_beat_seen();
    for (int i = 0; i < static_cast<int>(seconds); ++i, wait(1))
      own.on(net::Arrived{.from = own.coordinator(), .message = pack(seen), .receipt = {}}, now_);
  }
  // The members that its last beat calls unreachable.
  [[nodiscard]] std::set<std::uint64_t> unreachable() const {
    return {beat_.unreachable().begin(), beat_.unreachable().end()};
  }
  // The error with which the process ended, if it did.
  std::optional<Error> error() {
    for (const ProcessEvent& event : process_.take_events()) {
      const auto* const ended = std::get_if<LifeEnded>(&event);
      if (ended != nullptr && !ended->again) return ended->error;
    }
    return std::nullopt;
  }

  Instant now_;
  membership::Beat beat_;   // the last one it sent
  std::size_t leaves_ = 0;  // how often it has said that it leaves
  Told told_;
  Nobody network_;
  MemberProcess process_;
};

}  // namespace gossamer::cluster
