// SPDX-License-Identifier: Apache-2.0
//
// A member process alone, before a coordinator whose messages the test chooses. The simulation tests how it
// does in a fleet (src/simulation).
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/control/control_message.h"
#include "cluster/control/test_member.h"

namespace gossamer::cluster {
namespace {

// Claim: an engine that is ready at once waits for the view and for links to all members in it. A member that
// served before it reaches them would make all of them wait.
TEST_F(MemberTest, ReadyOnceItReachesAll) {
  answer(kSelf);
  Member& own = *process_.member();
  own.ready(now_);
  own.on(net::LinkUp{own.coordinator()}, now_);
  EXPECT_FALSE(own.said_ready());
  change({NodeId(3), Incarnation(4)});
  EXPECT_FALSE(own.said_ready());
}

// Claim: the view that a member waits for is empty while nobody serves. Ready follows once both lanes to the
// coordinator are up.
TEST_F(MemberTest, ReadyWhereNobodyServes) {
  answer(kSelf);
  Member& own = *process_.member();
  own.ready(now_);
  own.on(net::LinkUp{own.coordinator()}, now_);
  membership::ToMember said;
  said.mutable_change();
  own.on(net::Arrived{.from = own.coordinator(), .message = pack(said), .receipt = {}}, now_);
  EXPECT_FALSE(own.said_ready());
  own.on(net::BulkUp{own.coordinator()}, now_);
  EXPECT_TRUE(own.said_ready());
}

// Claim: no member gets the coordinator's number.
TEST_F(MemberTest, IsNotTheCoordinator) {
  answer({kCoordinatorNode, Incarnation(3)});
  EXPECT_EQ(process_.member(), nullptr);
}

// Claim: any answer that is not from the run's coordinator is followed by a question to the next address. The
// coordinator that leads there gives a life.
TEST_F(MemberTest, SomebodyElseAnswers) {
  const auto of_kind = [](ErrorKind kind) {
    return Result<std::string>(Error{.kind = kind, .what = "said by somebody"});
  };
  const std::vector<Result<std::string>> answers{std::string(), std::string("garbage"),
                                                 of_kind(ErrorKind::kBadData), of_kind(ErrorKind::kUsage),
                                                 of_kind(ErrorKind::kFailed)};
  for (const auto& one : answers) {
    const host::Endpoint before = network_.asked_at();
    process_.on(host::Answered{network_.asked(), one}, now_);
    EXPECT_FALSE(error().has_value());
    ASSERT_FALSE(process_.done());
    now_ = now_ + MemberProcess::kBeginEvery;
    process_.tick(now_);
    EXPECT_NE(network_.asked_at(), before);
  }
  answer(kSelf);
  EXPECT_NE(process_.member(), nullptr);
}

// Claim: a refusal ends the process at once.
TEST_F(MemberTest, EndsWhenRefused) {
  process_.on(host::Answered{network_.asked(), Error{.kind = ErrorKind::kRefused, .what = "no"}}, now_);
  const auto ended = error();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->kind, ErrorKind::kRefused);
}

// Claim: the listening address is looked up for each life. A life whose address has gone ends, and another
// follows.
TEST_F(MemberTest, TellsWhereItIsNow) {
  std::string host = "before";
  MemberProcess::Options wanted = options();
  wanted.machine = "machine";
  wanted.look_up = [&host] {
    return listening_of({.node = kSelf.node, .control = {host, 1}, .bulk = {host, 2}});
  };
  MemberProcess process(wanted, network_, now_);
  const auto told = [&] {
    membership::BeginAsk ask;
    EXPECT_TRUE(network_.question().method == "Begin" && ask.ParseFromString(network_.question().body));
    EXPECT_EQ(ask.machine(), "machine");
    return ask.listening().control().host();
  };
  process.tick(now_);
  EXPECT_EQ(told(), "before");
  process.begin_anew({.what = "no life yet"}, now_);
  EXPECT_TRUE(process.take_events().empty());
  process.on(host::Answered{network_.asked(), begun(kSelf)}, now_);
  ASSERT_NE(process.member(), nullptr);
  host = "after";
  process.begin_anew({.what = "its address has gone"}, now_);
  EXPECT_EQ(process.member(), nullptr);
  const auto events = process.take_events();
  const auto* const ended = std::get_if<LifeEnded>(&events.back());
  ASSERT_NE(ended, nullptr);
  EXPECT_TRUE(ended->again && ended->error);
  now_ = now_ + MemberProcess::kBeginEvery;
  process.tick(now_);
  EXPECT_EQ(told(), "after");
}

// Claim: an unreadable answer to Lead names no other coordinator.
TEST_F(MemberTest, NobodyLeadsThere) {
  answer(kSelf);
  Member& own = *process_.member();
  const net::PeerId before = own.coordinator();
  for (const char* const said : {"", "garbage"}) own.lead_answered(std::string(said), now_);
  EXPECT_EQ(own.coordinator(), before);
}

// Claim: a view with another life of the node ends this life with an error.
TEST_F(MemberTest, AnotherLifeOfTheNode) {
  answer(kSelf);
  change({kSelf.node, Incarnation(4)});
  const auto ended = error();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->kind, ErrorKind::kBadData);
}

// Claim: a view with the coordinator as a member ends the life, too. A view with any other node does not.
TEST_F(MemberTest, CoordinatorIsNoMember) {
  answer(kSelf);
  change({NodeId(3), Incarnation(4)});
  EXPECT_FALSE(error().has_value());
  now_ = now_ + from_seconds(1);
  process_.tick(now_);
  EXPECT_TRUE(process_.links()->linked(NodeId(3)));
  membership::ToMember said;
  said.mutable_change()->set_epoch(2);
  said.mutable_change()->add_members()->set_node(kCoordinatorNode.value);
  said.mutable_change()->mutable_members(0)->set_incarnation(5);
  Member& own = *process_.member();
  own.on(net::Arrived{.from = own.coordinator(), .message = pack(said), .receipt = {}}, now_);
  const auto ended = error();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->kind, ErrorKind::kBadData);
}

// Claim: a peer reached only through the coordinator has 3 s anew when the coordinator is back, as nobody
// could reach it meanwhile. A peer that listens has not. No beats pile up meanwhile.
TEST_F(MemberTest, RelayWasAway) {
  answer(kSelf);
  constexpr net::PeerId kListens{NodeId(3), Incarnation(4)};
  constexpr net::PeerId kHidden{NodeId(4), Incarnation(2)};
  change(kListens);
  hide(kHidden);
  Member& own = *process_.member();
  own.on(net::LinkUp{own.coordinator()}, now_);
  wait(2.5);
  EXPECT_EQ(unreachable(), std::set<std::uint64_t>());
  own.on(net::LinkBroken{.peer = own.coordinator(), .reason = {}}, now_);
  beat_.Clear();
  wait(20);
  EXPECT_EQ(beat_.ByteSizeLong(), 0U);
  own.on(net::LinkUp{own.coordinator()}, now_);
  wait(2.5);
  EXPECT_EQ(unreachable(), std::set{kListens.node.value});
  wait(1);
  EXPECT_EQ(unreachable(), (std::set{kListens.node.value, kHidden.node.value}));
}

// Claim: a member that was fenced while the run ends, and was not told, learns of the end when it begins
// anew. It ends without an error as the run does.
TEST_F(MemberTest, BeginsWhileTheRunEnds) {
  answer(kSelf);
  fenced();
  EXPECT_FALSE(error().has_value());
  now_ = now_ + from_seconds(1);
  process_.tick(now_);
  EXPECT_FALSE(process_.done());
  stop_answer("enough", false);
  EXPECT_FALSE(error().has_value());
  EXPECT_TRUE(process_.done());
}

// Claim: a member ends with an error if the run has failed.
TEST_F(MemberTest, BeginsWhileTheRunFails) {
  answer(kSelf);
  fenced();
  EXPECT_FALSE(error().has_value());
  now_ = now_ + from_seconds(1);
  process_.tick(now_);
  stop_answer("sums differ", true);
  const auto ended = error();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->kind, ErrorKind::kFailed);
  EXPECT_EQ(ended->got, "sums differ");
}

// Claim: a process that comes for the first time while the run ends is refused.
TEST_F(MemberTest, ComesTooLate) {
  stop_answer("enough", false);
  const auto ended = error();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->kind, ErrorKind::kRefused);
}

// Claim: a member that was told that the run ends, and is then fenced, asks nobody.
TEST_F(MemberTest, FencedAfterItWasTold) {
  answer(kSelf);
  membership::ToMember said;
  said.mutable_stop()->set_reason("enough");
  Member& own = *process_.member();
  own.on(net::Arrived{.from = own.coordinator(), .message = pack(said), .receipt = {}}, now_);
  fenced();
  EXPECT_FALSE(error().has_value());
  EXPECT_TRUE(process_.done());
}

// Claim: a member says that it leaves once all is settled that it had told by then. What it tells later does
// not hold it up.
TEST_F(MemberTest, LeavesOnceItsReportsAreSettled) {
  answer(kSelf);
  told_ = {.last = 5, .settled = 3};
  process_.member()->leave("done", now_);
  wait(1);
  EXPECT_EQ(leaves_, 0U);
  told_ = {.last = 9, .settled = 4};
  wait(1);
  EXPECT_EQ(leaves_, 0U);
  told_.settled = 5;
  wait(0.1);
  EXPECT_EQ(leaves_, 1U);
  wait(1);
  EXPECT_EQ(leaves_, 1U);
}

// Claim: a member that leaves by itself waits for its reports. It gives up 30 s after the last of them that
// was settled, however often it is told to leave.
TEST_F(MemberTest, WaitsForItsReportsForATime) {
  answer(kSelf);
  told_ = {.last = 5, .settled = 3};
  process_.member()->leave("done", now_);
  wait_led(29);
  EXPECT_EQ(leaves_, 0U);
  told_.settled = 4;
  wait_led(15);
  process_.member()->leave("done", now_);
  wait_led(14);
  EXPECT_EQ(leaves_, 0U);
  wait_led(2);
  EXPECT_EQ(leaves_, 1U);
}

// Claim: a member that leaves by itself waits neither for reports nor for an answer once it has heard no
// coordinator for 10 s.
TEST_F(MemberTest, LeavesAloneWithoutACoordinator) {
  answer(kSelf);
  wait_led(3);
  told_ = {.last = 5, .settled = 3};
  process_.member()->leave("done", now_);
  wait(8.9);
  EXPECT_FALSE(process_.member()->ended());
  wait(0.1);
  EXPECT_TRUE(process_.member()->ended() && leaves_ == 0);
}

// Claim: leave_now() waits for nothing, also when the member waits already.
TEST_F(MemberTest, LeavesAtOnce) {
  answer(kSelf);
  told_ = {.last = 5, .settled = 3};
  process_.member()->leave("done", now_);
  process_.member()->leave_now("done for good", now_);
  EXPECT_EQ(leaves_, 1U);
}

// Claim: a member that waits for its reports and is fenced has not left. Its next life brings them.
TEST_F(MemberTest, FencedWhileItWaitsForItsReports) {
  answer(kSelf);
  told_ = {.last = 5, .settled = 3};
  process_.member()->leave("done", now_);
  fenced();
  process_.tick(now_);
  EXPECT_FALSE(error().has_value());
  EXPECT_FALSE(process_.done());
}

// Claim: a member that was told to stop waits as long as it lives.
TEST_F(MemberTest, ToldToStopItWaitsForItsReports) {
  answer(kSelf);
  told_ = {.last = 5, .settled = 3};
  membership::ToMember said;
  said.mutable_stop()->set_reason("trained");
  Member& own = *process_.member();
  own.on(net::Arrived{.from = own.coordinator(), .message = pack(said), .receipt = {}}, now_);
  own.leave("trained", now_);
  wait(100);
  // The next coordinator tells it once more.
  own.on(net::Arrived{.from = own.coordinator(), .message = pack(said), .receipt = {}}, now_);
  own.leave("trained", now_);
  wait(100);
  EXPECT_EQ(leaves_, 0U);
  told_.settled = 5;
  wait(0.1);
  EXPECT_EQ(leaves_, 1U);
}

// Claim: a member that leaves by itself, and is told to stop then, waits as long as it lives, too.
TEST_F(MemberTest, ToldToStopWhileItLeaves) {
  answer(kSelf);
  told_ = {.last = 5, .settled = 3};
  Member& own = *process_.member();
  own.leave("its machine is wanted back", now_);
  wait(20);
  membership::ToMember said;
  said.mutable_stop()->set_reason("trained");
  own.on(net::Arrived{.from = own.coordinator(), .message = pack(said), .receipt = {}}, now_);
  wait(100);
  EXPECT_EQ(leaves_, 0U);
}

// Claim: a member that waits for its reports looks for a coordinator that takes them, also when the link with
// its own ends. Once it has said that it leaves, the end of that link is the answer.
TEST_F(MemberTest, WithReportsItFollowsTheNextCoordinator) {
  answer(kSelf);
  const auto heard_link_ends = [&] {
    change(kSelf);
    link_ends({.what = "gone"}, net::Refused::kNo);
  };
  told_ = {.last = 5, .settled = 3};
  process_.member()->leave("done", now_);
  heard_link_ends();
  EXPECT_FALSE(process_.member()->ended());
  told_.settled = 5;
  wait(0.1);
  EXPECT_EQ(leaves_, 1U);
  heard_link_ends();
  EXPECT_TRUE(process_.member()->ended());
}

// Claim: a member tells the coordinator at once, and with each beat, who broke which rule, until that life is
// fenced. It never blames the coordinator.
TEST_F(MemberTest, TellsWhoBrokeARule) {
  answer(kSelf);
  Member& own = *process_.member();
  own.on(net::LinkUp{own.coordinator()}, now_);
  const net::PeerId other{NodeId(7), Incarnation(9)};
  change(other);
  own.blame(own.coordinator(), Error{.what = "rule 7"}, now_);
  EXPECT_TRUE(beat_.broke().empty());
  own.on(net::PeerAtFault{.peer = other, .error = Error{.what = std::string(5000, 'x')}}, now_);
  own.blame({NodeId(8), Incarnation(10)}, Error{.what = "rule 7"}, now_);
  beat_.Clear();
  wait(0.2);
  ASSERT_EQ(beat_.broke_size(), 2);
  EXPECT_EQ(beat_.broke(0).node(), 7U);
  EXPECT_EQ(beat_.broke(0).incarnation(), 9U);
  EXPECT_LT(beat_.broke(0).rule().size(), 400U);
  EXPECT_EQ(beat_.broke(1).node(), 8U);
  membership::ToMember fences;
  fences.mutable_change()->set_from(1);
  fences.mutable_change()->set_epoch(2);
  fences.mutable_change()->add_fenced()->set_first(10);
  fences.mutable_change()->mutable_fenced(0)->set_last(10);
  own.on(net::Arrived{.from = own.coordinator(), .message = pack(fences), .receipt = {}}, now_);
  wait(0.2);
  ASSERT_EQ(beat_.broke_size(), 1);
  EXPECT_EQ(beat_.broke(0).node(), 7U);
}

// Claim: a peer with which a member parts is told as lost and not as one that broke a rule. The engine hears
// of the loss. The coordinator is never parted.
TEST_F(MemberTest, PartsAndBlamesNobody) {
  answer(kSelf);
  Member& own = *process_.member();
  own.on(net::LinkUp{own.coordinator()}, now_);
  const net::PeerId other{NodeId(7), Incarnation(2)};
  change(other);
  own.on(net::LinkUp{other}, now_);
  (void)own.take_events();
  own.part(own.coordinator(), now_);
  EXPECT_TRUE(own.take_events().empty());
  own.part(other, now_);
  const auto events = own.take_events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(std::get<PeerLost>(events[0]).peer, other);
  wait(0.2);
  EXPECT_TRUE(beat_.broke().empty());
  ASSERT_EQ(beat_.lost_size(), 1);
  EXPECT_EQ(beat_.lost(0), 7U);
}

// Claim: what a member keeps of broken rules is bounded.
TEST_F(MemberTest, BlamesAFew) {
  answer(kSelf);
  Member& own = *process_.member();
  own.on(net::LinkUp{own.coordinator()}, now_);
  for (std::uint64_t node = 100; node < 200; ++node)
    own.blame({NodeId(node), Incarnation(node)}, Error{.what = "rule 7"}, now_);
  wait(0.2);
  EXPECT_EQ(beat_.broke_size(), 16);
}

}  // namespace
}  // namespace gossamer::cluster
