// SPDX-License-Identifier: Apache-2.0
#include "net/link/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace gossamer::net {
namespace {

using ::testing::HasSubstr;
using wire::Refusal;

constexpr PeerId kSelf{NodeId{3}, Incarnation{1}};
constexpr PeerId kPeer{NodeId{5}, Incarnation{4}};

Handshake handshake() { return Handshake({.run = "run", .self = kSelf, .program = "test"}); }

Link link_with(PeerId peer) {
  Link link(1 << 20, 1 << 20);
  link.peer = peer;
  return link;
}

// What kPeer says when it opens its link session 7.
wire::Hello good_hello() {
  wire::Hello hello;
  hello.set_wire_min(kWireMin);
  hello.set_wire_max(kWireMax);
  hello.set_run("run");
  hello.mutable_from()->set_node(kPeer.node.value);
  hello.mutable_from()->set_incarnation(kPeer.incarnation.value);
  hello.set_to_node(kSelf.node.value);
  hello.set_session(7);
  return hello;
}

wire::Welcome good_welcome() {
  wire::Welcome welcome;
  welcome.set_wire(kWireMax);
  *welcome.mutable_from() = good_hello().from();
  return welcome;
}

Connection connection_named(const std::string& certificate) {
  Connection connection;
  connection.where = "there";
  connection.name.certificate = certificate;
  return connection;
}

// A Hello of a peer that is what it says is welcome, with TLS and without, to this node and to any.
TEST(Handshake, WelcomesAPeer) {
  for (const std::string certificate : {"", "node-5"}) {
    for (const std::uint64_t to : {0U, 3U}) {
      wire::Hello hello = good_hello();
      hello.set_to_node(to);
      EXPECT_FALSE(handshake().objection(connection_named(certificate), hello, {}).has_value());
    }
  }
}

// Each thing that is wrong with a Hello has its reason.
TEST(Handshake, Refuses) {
  struct Case {
    std::function<void(wire::Hello&)> spoil;
    Refusal::Reason reason;
  };
  const std::vector<Case> cases{
      {[](wire::Hello& hello) { hello.set_wire_min(kWireMax + 1); }, Refusal::WIRE},
      {[](wire::Hello& hello) { hello.set_run("another"); }, Refusal::RUN},
      {[](wire::Hello& hello) { hello.set_to_node(9); }, Refusal::NODE},
      {[](wire::Hello& hello) { hello.mutable_from()->set_node(6); }, Refusal::IDENTITY},
      {[](wire::Hello& hello) { hello.mutable_from()->set_node(0); }, Refusal::IDENTITY},
      {[](wire::Hello& hello) { hello.mutable_from()->set_incarnation(0); }, Refusal::IDENTITY},
      {[](wire::Hello& hello) { hello.mutable_from()->set_incarnation(2); }, Refusal::FENCED},
      {[](wire::Hello& hello) { hello.set_lane(1); }, Refusal::PROTOCOL},
      {[](wire::Hello& hello) { hello.set_resume(true); }, Refusal::GONE},
  };
  Handshake judge = handshake();
  judge.fence({kPeer.node, Incarnation{2}});
  for (const Case& one : cases) {
    wire::Hello hello = good_hello();
    one.spoil(hello);
    const auto refusal = judge.objection(connection_named("node-5"), hello, {});
    ASSERT_TRUE(refusal.has_value()) << one.reason;
    EXPECT_EQ(refusal->reason(), one.reason);
  }
  EXPECT_FALSE(judge.objection(connection_named("node-5"), good_hello(), {}).has_value());
}

// An incarnation that is older than the one of the link is refused as fenced.
TEST(Handshake, RefusesOlderIncarnations) {
  const Link link = link_with({kPeer.node, Incarnation{5}});
  const auto refusal = handshake().objection(connection_named(""), good_hello(), {.link = &link});
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason(), Refusal::FENCED);
}

// Only lives that the user knows are welcome, and those of the coordinator. The refusal is not final: a life
// may be told of later. The same holds for who answers.
TEST(Handshake, RefusesLivesThatItDoesNotKnow) {
  Handshake judge({.run = "run", .self = kSelf, .program = "test", .coordinator = NodeId{1}});
  wire::Hello hello = good_hello();
  EXPECT_FALSE(judge.objection(connection_named(""), hello, {}).has_value());
  judge.set_known({});
  const auto refusal = judge.objection(connection_named(""), hello, {});
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason(), Refusal::BUSY);
  const Link link = link_with({kPeer.node, Incarnation{}});
  EXPECT_TRUE(judge.objection(connection_named(""), good_welcome(), link).has_value());
  judge.set_known({{kPeer.node, Incarnation{kPeer.incarnation.value - 1}}});
  EXPECT_TRUE(judge.objection(connection_named(""), hello, {}).has_value());
  judge.set_known({kPeer});
  EXPECT_FALSE(judge.objection(connection_named(""), hello, {}).has_value());
  EXPECT_FALSE(judge.objection(connection_named(""), good_welcome(), link).has_value());
  hello.mutable_from()->set_node(1);
  EXPECT_FALSE(judge.objection(connection_named(""), hello, {}).has_value());
}

// A later connection of the link session that is there is welcome. Older sessions, and the same one when its
// link is gone, are refused.
TEST(Handshake, Sessions) {
  Handshake judge = handshake();
  Link link = link_with(kPeer);
  link.session = 7;
  EXPECT_EQ(judge.claim(good_hello(), nullptr), Handshake::Claim::kNewLink);
  wire::Hello hello = good_hello();
  hello.set_resume(true);
  EXPECT_FALSE(judge.objection(connection_named(""), hello, {.link = &link}).has_value());
  EXPECT_EQ(judge.claim(hello, &link), Handshake::Claim::kSameLink);
  EXPECT_EQ(judge.objection(connection_named(""), hello, {})->reason(), Refusal::GONE);
  hello.set_resume(false);
  const auto late = judge.objection(connection_named(""), hello, {});
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->reason(), Refusal::GONE);
  hello.set_session(6);
  EXPECT_EQ(judge.objection(connection_named(""), hello, {.link = &link})->reason(), Refusal::GONE);
  hello.set_session(8);
  EXPECT_FALSE(judge.objection(connection_named(""), hello, {.link = &link}).has_value());
  EXPECT_EQ(judge.claim(hello, &link), Handshake::Claim::kNewLink);
}

// A connection that is behind what was acknowledged is out of date, and so is one that is ahead of what was
// sent.
TEST(Handshake, OutOfDate) {
  Link link = link_with(kPeer);
  link.session = 7;
  wire::Hello hello = good_hello();
  hello.mutable_progress()->set_received(1);  // of which nothing was sent
  EXPECT_EQ(handshake().objection(connection_named(""), hello, {.link = &link})->reason(), Refusal::BUSY);
  LaneStream& stream = link.lane(host::Lane::kControl).stream;
  wire::Progress theirs;
  theirs.set_window(1 << 20);
  ASSERT_TRUE(stream.attach(theirs).ok());
  for (int i = 0; i < 2; ++i) {
    stream.send({.channel = 1, .body = "b", .payload = {}});
    ASSERT_TRUE(stream.next_frame().has_value());
  }
  theirs.set_received(1);
  ASSERT_TRUE(stream.on_ack(theirs).ok());
  for (const std::uint64_t received : {0U, 1U, 2U, 3U}) {
    hello.mutable_progress()->set_received(received);
    const auto refusal = handshake().objection(connection_named(""), hello, {.link = &link});
    EXPECT_EQ(refusal.has_value(), received == 0 || received == 3) << received;
    if (refusal.has_value()) {
      EXPECT_EQ(refusal->reason(), Refusal::BUSY);
    }
  }
}

// Both open at once: the node with the lower number keeps its link if that has said Hello. Otherwise, and if
// the number is higher, it takes the link that it is offered.
TEST(Handshake, BothOpen) {
  Link link = link_with({kPeer.node, {}});
  link.opener = true;
  for (const std::uint64_t self : {3U, 8U}) {
    for (const bool speaks : {false, true}) {
      Handshake judge({.run = "run", .self = {NodeId{self}, Incarnation{1}}, .program = "test"});
      wire::Hello hello = good_hello();
      hello.set_to_node(self);
      const auto refusal = judge.objection(connection_named(""), hello, {.link = &link, .speaks = speaks});
      EXPECT_EQ(refusal.has_value(), self == 3 && speaks);
      if (refusal.has_value()) {
        EXPECT_EQ(refusal->reason(), Refusal::BUSY);
      }
      EXPECT_EQ(judge.claim(hello, &link), Handshake::Claim::kTakesOver);
    }
  }
  link.was_up = true;
  EXPECT_EQ(handshake().claim(good_hello(), &link), Handshake::Claim::kNewLink);
}

// A Welcome of the node that was dialed is as expected; of the incarnation too, if it is known.
TEST(Handshake, Welcomes) {
  const Handshake judge = handshake();
  for (const Incarnation known : {Incarnation{}, kPeer.incarnation}) {
    EXPECT_FALSE(judge.objection(connection_named("node-5"), good_welcome(), link_with({kPeer.node, known}))
                     .has_value());
  }
}

// A Welcome that is wrong names what it is. It is a refusal only if the other side has no place for us.
TEST(Handshake, WrongWelcomes) {
  Handshake judge = handshake();
  const Link link = link_with({kPeer.node, {}});
  const auto expect = [&](const wire::Welcome& welcome, const Link& ours, ErrorKind kind,
                          const std::string& text) {
    const auto error = judge.objection(connection_named("node-5"), welcome, ours);
    ASSERT_TRUE(error.has_value()) << text;
    EXPECT_EQ(error->kind, kind) << text;
    EXPECT_EQ(error->where, "there");
    EXPECT_THAT(error->what, HasSubstr(text));
  };
  wire::Welcome welcome = good_welcome();
  welcome.mutable_from()->set_node(6);
  expect(welcome, link, ErrorKind::kRefused, "another node answers");
  welcome = good_welcome();
  welcome.set_wire(kWireMax + 1);
  expect(welcome, link, ErrorKind::kRefused, "no wire version in common");
  expect(good_welcome(), link_with({kPeer.node, Incarnation{3}}), ErrorKind::kFailed, "another incarnation");
  judge.fence(kPeer);
  expect(good_welcome(), link, ErrorKind::kFailed, "declared dead");
}

// Reasons are final or pass, and the user hears which kind of refusal it was.
TEST(Handshake, ReadsRefusals) {
  struct Case {
    Refusal::Reason reason;
    ConnectionEvent event;
    ErrorKind kind;
    Refused refused;
  };
  const std::vector<Case> cases{
      {Refusal::WIRE, ConnectionEvent::kFinalRefusal, ErrorKind::kRefused, Refused::kIncompatible},
      {Refusal::IDENTITY, ConnectionEvent::kFinalRefusal, ErrorKind::kRefused, Refused::kIncompatible},
      {Refusal::RUN, ConnectionEvent::kFinalRefusal, ErrorKind::kRefused, Refused::kElsewhere},
      {Refusal::NODE, ConnectionEvent::kFinalRefusal, ErrorKind::kRefused, Refused::kElsewhere},
      {Refusal::FENCED, ConnectionEvent::kFinalRefusal, ErrorKind::kRefused, Refused::kFenced},
      {Refusal::GONE, ConnectionEvent::kFinalRefusal, ErrorKind::kFailed, Refused::kNo},
      {Refusal::BUSY, ConnectionEvent::kOtherRefusal, ErrorKind::kFailed, Refused::kNo},
      {Refusal::PROTOCOL, ConnectionEvent::kOtherRefusal, ErrorKind::kFailed, Refused::kNo},
      {Refusal::UNKNOWN, ConnectionEvent::kOtherRefusal, ErrorKind::kFailed, Refused::kNo},
  };
  for (const Case& one : cases) {
    Refusal refusal;
    refusal.set_reason(one.reason);
    refusal.set_what("no");
    const Ending ending = Handshake::on_refusal(refusal, "there");
    EXPECT_EQ(ending.event, one.event) << one.reason;
    EXPECT_EQ(ending.reason.kind, one.kind) << one.reason;
    EXPECT_EQ(ending.reason.where, "there");
    EXPECT_EQ(ending.refused, one.refused) << one.reason;
  }
}

// Only a Hello that was refused for its versions is told to the user, and only if the node spoke for itself.
TEST(Handshake, TellsOfVersions) {
  Refusal wire;
  wire.set_reason(Refusal::WIRE);
  const auto told = Handshake::incompatible(connection_named("node-5"), good_hello(), wire);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->peer, kPeer);
  EXPECT_FALSE(Handshake::incompatible(connection_named("node-6"), good_hello(), wire).has_value());
  wire.set_reason(Refusal::RUN);
  EXPECT_FALSE(Handshake::incompatible(connection_named("node-5"), good_hello(), wire).has_value());
}

// What is written is what the other side reads, and fits to it.
TEST(Handshake, WritesHelloAndWelcome) {
  Link link = link_with({kPeer.node, {}});
  link.session = 2;
  link.was_up = true;
  const auto hello = decode_frame(handshake().hello(link, host::Lane::kBulk));
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(peer_of(hello->header.hello().from()), kSelf);
  EXPECT_EQ(hello->header.hello().to_node(), kPeer.node.value);
  EXPECT_EQ(hello->header.hello().lane(), 1U);
  EXPECT_EQ(hello->header.hello().session(), 2U);
  EXPECT_TRUE(hello->header.hello().resume());
  EXPECT_GT(hello->header.hello().progress().window(), 0U);
  wire::Hello later = good_hello();
  later.set_wire_max(kWireMax + 5);
  const auto welcome = decode_frame(handshake().welcome(link, host::Lane::kControl, later));
  ASSERT_TRUE(welcome.ok());
  EXPECT_EQ(welcome->header.welcome().wire(), kWireMax);
  EXPECT_EQ(peer_of(welcome->header.welcome().from()), kSelf);
}

}  // namespace
}  // namespace gossamer::net
