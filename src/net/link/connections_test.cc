// SPDX-License-Identifier: Apache-2.0
#include "net/link/connections.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/rng.h"
#include "net/link/test_counting_network.h"

namespace gossamer::net {
namespace {

using host::Lane;

class ConnectionsTest : public ::testing::Test {
 protected:
  static constexpr Instant kNow{7'000'000'000};

  static Link link_to(std::uint64_t node, NodeId via = {}) {
    Link link(1 << 20, 1 << 20);
    link.peer.node = NodeId{node};
    link.address = {.node = link.peer.node, .control = {"there", 1}, .bulk = {"there", 2}};
    for (LaneState& lane : link.lanes) lane.via = via;
    return link;
  }
  static Slices ping() {
    wire::FrameHeader header;
    header.mutable_ping()->set_token(1);
    return encode_frame(header);
  }
  // A connection with `node` that it has opened and that is up.
  Connection& up(std::uint64_t id, std::uint64_t node) {
    connections_.accept({host::ConnectionId{id}, Lane::kControl, {"node"}, "far", "host"}, kNow);
    Connection& connection = connections_.at(host::ConnectionId{id});
    connection.advance(ConnectionEvent::kHello);
    connection.node = NodeId{node};
    connections_.raise(connection);
    return connection;
  }

  CountingNetwork network_;
  Connections connections_{
      network_,
      {.self = NodeId{1}, .relays = true, .most_held = {1 << 20, 1 << 20}, .most_held_in_all = 1 << 20},
      {.in_all = 2, .of_host = 2, .of_certificate = 2}};
};

// What is dialed belongs to the link, and counts what is sent on it.
TEST_F(ConnectionsTest, Dials) {
  const Link link = link_to(2);
  Connection& connection = connections_.dial(link, Lane::kBulk, kNow);
  EXPECT_EQ(network_.dialed, 1U);
  EXPECT_TRUE(connection.ours);
  EXPECT_EQ(connection.state, ConnectionState::kDialing);
  EXPECT_EQ(connection.node, NodeId{2});
  EXPECT_EQ(connection.lane, Lane::kBulk);
  EXPECT_EQ(connection.heard, kNow);
  EXPECT_EQ(connection.where, "node-2 at there:2");
  connections_.send(connection, ping());
  EXPECT_EQ(connection.unwritten, network_.queued);
  EXPECT_EQ(connections_.sent_bytes(), network_.queued);
  EXPECT_FALSE(connections_.next_stranger().has_value());
  connection.advance(ConnectionEvent::kLinkEnds);
  connections_.drop(connection);
  EXPECT_EQ(network_.closed, 1U);
  EXPECT_EQ(connections_.find(host::ConnectionId{1}), nullptr);
}

// Claim: after each failure an opener waits twice as long as before, 5 s at most, less a random part of up to
// half. After the first one it does not wait.
TEST_F(ConnectionsTest, WaitsLongerAfterEachFailure) {
  Rng rng(3, Purpose::kTest);
  LaneState lane(1 << 20);
  for (const double most : {0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0}) {
    lane.plan_next(kNow, rng);
    ASSERT_TRUE(lane.retry.has_value());
    const double wait = (*lane.retry - kNow).seconds();
    EXPECT_GE(wait, most / 2);
    EXPECT_LE(wait, most);
  }
}

// A link speaks once a connection of it is open.
TEST_F(ConnectionsTest, Speaks) {
  Link link = link_to(2);
  EXPECT_FALSE(connections_.speaks(link));
  Connection& connection = connections_.dial(link, Lane::kBulk, kNow);
  link.lane(Lane::kBulk).connection = connection.id;
  EXPECT_FALSE(connections_.speaks(link));
  connection.advance(ConnectionEvent::kOpened);
  EXPECT_TRUE(connections_.speaks(link));
}

// What is accepted is a stranger until it is up, and again when it is dismissed. Its deadline does not move
// while it stays one. Beyond the room for strangers connections are closed.
TEST_F(ConnectionsTest, Strangers) {
  Connection& first = up(11, 2);
  EXPECT_FALSE(connections_.next_stranger().has_value());
  const host::Accepted event{host::ConnectionId{12}, Lane::kControl, {"node-4"}, "far", "host"};
  connections_.accept(event, kNow);
  const Instant deadline = kNow + Connection::kGreetingTime;
  ASSERT_TRUE(connections_.next_stranger().has_value());
  EXPECT_EQ(*connections_.next_stranger(), std::pair(deadline, event.connection));
  const Instant later = kNow + from_seconds(1);
  connections_.dismiss(connections_.at(event.connection), later);
  EXPECT_EQ(connections_.next_stranger()->first, deadline);
  first.advance(ConnectionEvent::kUserCloses);
  connections_.dismiss(first, later);
  EXPECT_EQ(first.node, NodeId{});
  connections_.at(event.connection).advance(ConnectionEvent::kSilence);
  connections_.drop(connections_.at(event.connection));
  EXPECT_EQ(*connections_.next_stranger(), std::pair(later + Connection::kGreetingTime, first.id));
  EXPECT_EQ(network_.closed, 1U);
  connections_.accept({host::ConnectionId{13}, Lane::kControl, {}, "far", "host"}, later);
  connections_.accept({host::ConnectionId{14}, Lane::kControl, {}, "far", "host"}, later);
  EXPECT_NE(connections_.find(host::ConnectionId{13}), nullptr);
  EXPECT_EQ(connections_.find(host::ConnectionId{14}), nullptr);
  EXPECT_EQ(network_.closed, 2U);
}

// A connection through a relay goes over the outer one: the network sees neither its dialing nor its end.
TEST_F(ConnectionsTest, Inner) {
  Connection& outer = up(11, 2);
  const Link link = link_to(5, NodeId{2});
  Connection& inner = connections_.dial(link, Lane::kControl, kNow);
  EXPECT_TRUE(Relay::is_inner(inner.id));
  EXPECT_EQ(inner.via, NodeId{2});
  EXPECT_EQ(inner.where, "node-5 at relay node-2");
  EXPECT_EQ(network_.dialed, 0U);
  EXPECT_TRUE(connections_.relay().next_frame(outer.id).has_value());  // RelayOpen
  inner.advance(ConnectionEvent::kClosed);
  connections_.drop(inner);
  EXPECT_EQ(network_.closed, 0U);
  EXPECT_TRUE(connections_.relay().next_frame(outer.id).has_value());  // RelayClose
  EXPECT_FALSE(connections_.relay().next_frame(outer.id).has_value());
  connections_.abandon();
  EXPECT_EQ(network_.closed, 1U);
}

}  // namespace
}  // namespace gossamer::net
