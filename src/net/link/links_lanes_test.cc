// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "net/link/test_counting_network.h"
#include "net/link/test_simulated_nodes.h"

namespace gossamer::net {
namespace {

using Silence = Links::Options::Silence;

class LinksLanesTest : public LinksTest {
 protected:
  Node& start_with(std::uint64_t number, Links::Options options) {
    nodes_.push_back(std::make_unique<Node>(timeline_, internet_, number, 1, "run", "", std::move(options)));
    return *nodes_.back();
  }
  void cut(Lane lane) {
    internet_.cut("m1", "m2", lane);
    internet_.cut("m2", "m1", lane);
  }
  void heal(Lane lane) {
    internet_.heal("m1", "m2", lane);
    internet_.heal("m2", "m1", lane);
  }
  static std::size_t blocked(const Node& node, Lane lane) {
    std::size_t count = 0;
    for (const LaneBlocked& one : node.all<LaneBlocked>()) count += one.lane == lane ? 1 : 0;
    return count;
  }
};

// Whether what was told of each lane is: up, broken, up, broken ...
void expect_turns(const Node& node) {
  std::array<bool, host::kLanes> up{};
  const auto turn = [&](Lane lane, bool comes) {
    EXPECT_NE(std::exchange(up[lane_index(lane)], comes), comes) << node.machine << " " << name(lane);
  };
  for (const LinkEvent& event : node.events) {
    if (std::holds_alternative<LinkUp>(event)) turn(Lane::kControl, true);
    if (std::holds_alternative<LinkBroken>(event)) turn(Lane::kControl, false);
    if (std::holds_alternative<BulkUp>(event)) turn(Lane::kBulk, true);
    if (std::holds_alternative<BulkBroken>(event)) turn(Lane::kBulk, false);
  }
}

// Claim: a lane that is cut without a word is given up after its own 10 s of silence, whatever the other lane
// carries. Both ends tell of it, and once that it stays away. Nothing is told of the other lane. When the way
// is open again, the lane goes on where it was.
TEST_F(LinksLanesTest, EachLaneHasItsOwnSilence) {
  for (const Lane lane : {Lane::kBulk, Lane::kControl}) {
    const Lane other = lane == Lane::kBulk ? Lane::kControl : Lane::kBulk;
    nodes_.clear();
    Node& a = start(1);
    Node& b = start(2);
    join(a, b);
    cut(lane);
    a.send(b, lane, "late");
    run_for(9);
    EXPECT_TRUE(a.links->statistics(b.id.node).lane(lane).up);
    run_for(3);
    EXPECT_EQ(a.all<LinkBroken>().size() + a.all<BulkBroken>().size(), 1U);
    EXPECT_EQ(b.all<LinkBroken>().size() + b.all<BulkBroken>().size(), 1U);
    EXPECT_FALSE(a.links->statistics(b.id.node).lane(lane).up);
    EXPECT_TRUE(b.links->statistics(a.id.node).lane(other).up);
    a.send(b, other, "meanwhile");
    run_for(60);
    EXPECT_EQ(b.bodies(other), std::vector<std::string>{"meanwhile"});
    for (const Node* const node : {&a, &b}) {
      EXPECT_EQ(blocked(*node, lane), 1U);
      EXPECT_EQ(blocked(*node, other), 0U);
      expect_turns(*node);
    }
    heal(lane);
    run_for(12);
    EXPECT_TRUE(b.links->statistics(a.id.node).lane(lane).up);
    EXPECT_EQ(b.bodies(lane), std::vector<std::string>{"late"});
  }
}

// Claim: with the silence of the link instead of the lane's own, nobody notices the cut. (The simulator's
// defect silence-of-link is this.)
TEST_F(LinksLanesTest, SilenceOfTheLinkSaysNothingOfALane) {
  Links::Options deaf;
  deaf.silence = Silence::kOfLink;
  Node& a = start_with(1, deaf);
  Node& b = start_with(2, deaf);
  join(a, b);
  cut(Lane::kBulk);
  run_for(15);
  EXPECT_TRUE(a.links->statistics(b.id.node).lane(Lane::kBulk).up);
  EXPECT_TRUE(a.all<BulkBroken>().empty());
}

// Claim: a port that lets nobody in is told of by name: at each attempt, and once as blocked.
TEST_F(LinksLanesTest, TellsOfAPortThatIsClosed) {
  Node& a = start(1);
  Node& b = start(2);
  PeerAddress half = b.address;
  half.bulk.port = 9;
  a.links->open(half, timeline_.now());
  a.used();
  run_for(20);
  EXPECT_EQ(a.all<LinkUp>().size(), 1U);
  EXPECT_TRUE(a.all<BulkUp>().empty());
  ASSERT_GE(a.all<BulkFailed>().size(), 3U);
  EXPECT_NE(a.all<BulkFailed>()[0].reason.message().find("m2:9"), std::string::npos);
  for (const Node* const node : {&a, &b}) EXPECT_EQ(blocked(*node, Lane::kBulk), 1U);
}

// Claim: one lane takes another way alone: through a relay, and back. It loses nothing, the other lane stays,
// and each fact is one event.
TEST_F(LinksLanesTest, OneLaneTakesAnotherWay) {
  Links::Options options;
  options.relays = true;
  Node& a = start(1);
  Node& b = start(2);
  Node& relay = start_with(3, std::move(options));
  for (Node* const node : {&a, &b}) node->links->trust_relay(relay.id.node);
  join(a, relay);
  join(b, relay);
  join(a, b);
  std::vector<std::string> sent;
  const auto send = [&] {
    sent.push_back(std::to_string(sent.size()));
    a.send(b, Lane::kBulk, sent.back(), 2'000'000);
    b.send(a, Lane::kBulk, sent.back(), 2'000'000);
  };
  send();
  cut(Lane::kBulk);
  send();
  EXPECT_TRUE(a.reroute({.node = b.id.node, .via = relay.id.node}, Lane::kBulk));
  run_for(3);
  const LinkStatistics around = a.links->statistics(b.id.node);
  EXPECT_EQ(around.lane(Lane::kBulk).relayed_by, relay.id.node);
  EXPECT_FALSE(around.relayed_by.has_value());
  EXPECT_EQ(a.all<BulkUp>().back().via, relay.id.node);
  EXPECT_EQ(b.all<BulkUp>().back().via, relay.id.node);
  heal(Lane::kBulk);
  EXPECT_TRUE(a.reroute(b.address, Lane::kBulk));
  send();
  run_for(3);
  EXPECT_FALSE(a.links->statistics(b.id.node).lane(Lane::kBulk).relayed_by.has_value());
  for (const Node* const node : {&a, &b}) {
    EXPECT_EQ(node->bodies(Lane::kBulk), sent);
    EXPECT_EQ(node->all<LinkUp>().size(), 2U);  // with the relay, and with each other
    EXPECT_TRUE(node->all<LinkBroken>().empty());
    EXPECT_EQ(node->all<BulkUp>().size(), 4U);
    EXPECT_EQ(node->all<BulkBroken>().size(), 2U);
  }
}

// Claim: a lane that no way carries is told of once, however often it is opened another way.
TEST_F(LinksLanesTest, BlockedOnEachWay) {
  Node& a = start(1);
  Node& b = start(2);
  Node& no_relay = start(3);
  join(a, no_relay);
  join(a, b);
  cut(Lane::kBulk);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(a.reroute(i % 2 == 0 ? PeerAddress{.node = b.id.node, .via = no_relay.id.node} : b.address,
                          Lane::kBulk));
    run_for(3);
  }
  EXPECT_EQ(blocked(a, Lane::kBulk), 1U);
  EXPECT_EQ(blocked(b, Lane::kBulk), 1U);
  EXPECT_EQ(a.all<BulkBroken>().size(), 1U);
}

// Claim: events of a lane come in turn also where a connection replaces another that its end still holds.
TEST_F(LinksLanesTest, ALaterConnectionIsTwoEvents) {
  Node& a = start(1);
  Node& b = start(2);
  join(a, b);
  internet_.cut("m2", "m1");  // b's word is lost, so it holds what a gives up
  run_for(3);
  internet_.heal("m2", "m1");
  EXPECT_TRUE(a.reroute(b.address));
  run_for(3);
  for (const Node* const node : {&a, &b}) {
    EXPECT_EQ(node->all<LinkUp>().size(), 2U);
    EXPECT_EQ(node->all<LinkBroken>().size(), 1U);
    expect_turns(*node);
  }
}

// One end of a link, without a network between. Its time stands still.
struct Side {
  explicit Side(std::uint64_t number)
      : self{NodeId{number}, Incarnation{1}},
        links(network, {.run = "run", .self = self, .program = "test"}) {
    network.keeps = true;
  }
  void open(const Side& to, Instant now = {}) {
    links.open({.node = to.self.node, .control = {"m", 1}, .bulk = {"m", 2}}, now);
  }
  void on(host::NetworkEvent event, Instant now = {}) { links.on(std::move(event), now, events); }
  // The first connection that it dialed is open, and says Hello.
  Slices greets(const Side& to) {
    on(host::Opened{host::ConnectionId{1}, {certificate_name(to.self.node)}});
    return encode_frame(network.sent.back());
  }
  // The other side's connection arrives, and says Hello.
  void hears(const Side& from, Slices hello) {
    on(host::Accepted{kAccepted, Lane::kControl, {certificate_name(from.self.node)}, "far", "host"});
    on(host::Received{kAccepted, std::move(hello)});
  }
  void breaks(host::ConnectionId connection) {
    on(host::Closed{connection, Error{.what = "connection reset"}});
  }
  [[nodiscard]] std::ptrdiff_t ended() const {
    return std::ranges::count_if(
        events, [](const LinkEvent& event) { return std::holds_alternative<LinkEnded>(event); });
  }
  static constexpr host::ConnectionId kAccepted{100};
  CountingNetwork network;
  PeerId self;
  Links links;
  LinkEvents events;
};

// Two nodes open to each other, and a connection breaks at that moment. Each then takes the other for the
// opener. No link stays like this: both sides end it, and their users open another.
TEST(LinksLanes, BothTakeTheOtherForTheOpener) {
  Side a(1);
  Side b(2);
  a.open(b);
  b.open(a);
  const Slices of_b = b.greets(a);
  b.hears(a, a.greets(b));  // and drops its own connections
  a.breaks(host::ConnectionId{1});
  a.hears(b, of_b);  // it came before b closed
  for (Side* const side : {&a, &b}) side->breaks(Side::kAccepted);
  for (Side* const side : {&a, &b}) {
    EXPECT_TRUE(side->links.linked(side == &a ? b.self.node : a.self.node));
    const Duration most = side == &a ? Connection::kAbandonedByLower : Connection::kAbandoned;
    side->links.tick(Instant{} + Duration{most.ns - 1}, side->events);
    EXPECT_EQ(side->ended(), 0);
    EXPECT_EQ(side->links.next_wakeup(), Instant{} + most);
    side->links.tick(Instant{} + most, side->events);
    EXPECT_EQ(side->ended(), 1);
  }
}

// Claim: a node whose opening was taken over waits for the opener no longer once a frame has come on either
// lane, also if the control lane had gone down before. The link stays.
TEST(LinksLanes, AFrameOnTheBulkLaneProvesTheOpener) {
  constexpr host::ConnectionId kBulk{101};
  Side a(1);
  Side b(2);
  b.open(a);
  a.open(b);
  b.hears(a, a.greets(b));
  wire::FrameHeader header = a.network.sent.back();
  header.mutable_hello()->set_lane(static_cast<std::uint32_t>(Lane::kBulk));
  b.on(host::Accepted{kBulk, Lane::kBulk, {certificate_name(a.self.node)}, "far", "host"});
  b.on(host::Received{kBulk, encode_frame(header)});
  b.breaks(Side::kAccepted);
  header.mutable_ping()->set_token(1);
  b.on(host::Received{kBulk, encode_frame(header)});
  b.links.tick(Instant{} + from_seconds(9), b.events);
  b.on(host::Received{kBulk, encode_frame(header)}, Instant{} + from_seconds(9));
  b.links.tick(Instant{} + Connection::kAbandoned, b.events);
  EXPECT_EQ(b.ended(), 0);
  EXPECT_TRUE(b.links.linked(a.self.node));
}

// Claim: an opener for which the Welcome is wrong ends its link and says so. If that is lost with the
// connection, the other side need not wait for the opener: once its user opens the link, after 4 s, the old
// one ends. A link on which something came after the Hello stays: its opener has it.
TEST(LinksLanes, AWrongWelcomeThatNobodyHearsOf) {
  for (const bool wrong : {true, false}) {
    SCOPED_TRACE(wrong);
    Side a(1);
    Side b(2);
    if (wrong) a.links.set_known({{b.self.node, Incarnation{7}}});
    a.open(b);
    b.hears(a, a.greets(b));
    a.on(host::Received{host::ConnectionId{1}, encode_frame(b.network.sent.front())});
    EXPECT_EQ(a.ended(), wrong ? 1 : 0);
    const auto is_refusal = [](const wire::FrameHeader& one) { return one.has_refusal(); };
    EXPECT_EQ(std::ranges::any_of(a.network.sent, is_refusal), wrong);
    wire::FrameHeader ping;
    ping.mutable_ping()->set_token(1);
    if (!wrong) b.on(host::Received{Side::kAccepted, encode_frame(ping)});
    EXPECT_FALSE(b.links.forsaken(a.self.node, Instant{} + from_seconds(100))) << "it has a connection";
    b.breaks(Side::kAccepted);
    const Instant later = Instant{} + Connection::kAbandonedByLower;
    b.open(a, Instant{later.ns - 1});
    EXPECT_EQ(b.network.dialed, 0U);
    EXPECT_EQ(b.links.forsaken(a.self.node, later), wrong);
    b.open(a, later);
    EXPECT_EQ(b.network.dialed, wrong ? host::kLanes : 0);
    b.links.tick(later, b.events);
    EXPECT_EQ(b.ended(), wrong ? 1 : 0);
    EXPECT_TRUE(b.links.linked(a.self.node));
    EXPECT_FALSE(b.links.forsaken(a.self.node, later + from_seconds(100))) << "it is ours";
  }
}

// Claim: a user that fences a peer, and does not look at what it is told of that, misses nothing about
// others.
TEST_F(LinksLanesTest, AFenceTellsNothingOfOthers) {
  Node& a = start(1);
  Node& b = start(2);
  Node& c = start(3);
  join(a, b);
  join(a, c);
  EXPECT_TRUE(a.links->reroute(b.address, Lane::kControl, timeline_.now()));
  LinkEvents of_fence;
  a.links->fence(c.id, timeline_.now(), of_fence);
  ASSERT_EQ(of_fence.size(), 1U);
  EXPECT_EQ(std::get<LinkEnded>(of_fence.front()).peer, c.id);
  EXPECT_TRUE(a.all<LinkBroken>().empty());
  a.used();
  run_for(1);
  ASSERT_EQ(a.all<LinkBroken>().size(), 1U);
  EXPECT_EQ(a.all<LinkBroken>().front().peer, b.id);
}

}  // namespace
}  // namespace gossamer::net
