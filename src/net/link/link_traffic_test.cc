// SPDX-License-Identifier: Apache-2.0
#include "net/link/link_traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "net/link/test_counting_network.h"

namespace gossamer::net {
namespace {

using host::Lane;
using ::testing::ElementsAre;
// A link whose control lane is up.
class LinkTrafficTest : public ::testing::Test {
 protected:
  using Kind = wire::FrameHeader;
  using Next = LinkTraffic::Next;
  static constexpr Instant kNow{7'000'000'000};

  LinkTrafficTest() {
    network_.keeps = true;
    link_.peer = {NodeId{2}, Incarnation{1}};
    link_.serial = 4;
    link_.lane(Lane::kControl).connection = connection_.id;
    link_.lane(Lane::kControl).up = true;
    connection_.advance(ConnectionEvent::kOpened);
    connection_.advance(ConnectionEvent::kWelcome);
    connections_.raise(connection_);
    wire::Progress theirs;
    theirs.set_window(8 << 20);
    (void)link_.lane(Lane::kControl).stream.tell();
    EXPECT_TRUE(link_.lane(Lane::kControl).stream.attach(theirs).ok());
  }
  Result<Next> take(const wire::FrameHeader& header) {
    return traffic_.on_frame(connection_, link_, {.header = header, .payload = {}}, kNow, events_);
  }
  void serve(Instant now = kNow) { traffic_.serve(link_.lane(Lane::kControl), now); }
  void queue(std::uint32_t channel, std::size_t bytes) {
    link_.lane(Lane::kControl)
        .stream.send({.channel = channel, .body = "b", .payload = {Slice::of(std::string(bytes, 'x'))}});
  }

  CountingNetwork network_;
  Connections connections_{network_, {.self = NodeId{1}}, {}};
  LinkTraffic traffic_{connections_, ChannelRules()};
  Link link_{4 << 20, 4 << 20};
  Connection& connection_ = connections_.dial(link_, Lane::kControl, kNow);
  LinkEvents events_;
};

// Messages of the other side reach the user, and are acknowledged when it is time.
TEST_F(LinkTrafficTest, Receives) {
  wire::FrameHeader data;
  data.mutable_data()->set_number(1);
  data.mutable_data()->mutable_start()->set_body("hi");
  const auto next = take(data);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(*next, Next::kServe);
  ASSERT_EQ(events_.size(), 1U);
  const Arrived& arrived = std::get<Arrived>(events_[0]);
  EXPECT_EQ(arrived.from, link_.peer);
  EXPECT_EQ(arrived.message.body, "hi");
  EXPECT_EQ(arrived.receipt.link, 4U);
  serve();
  EXPECT_TRUE(network_.sent.empty());
  serve(kNow + LaneStream::kAckDelay);
  EXPECT_THAT(network_.kinds(), ElementsAre(Kind::kAck));
}

// What is queued goes out up to the bound, counted by channel; the rest when something was written.
TEST_F(LinkTrafficTest, SendsUpToTheBound) {
  queue(3, 1000);
  queue(4, 3 << 20);
  serve();
  EXPECT_GE(connection_.unwritten, Connection::kUnwritten);
  EXPECT_LT(connection_.unwritten, Connection::kUnwritten + (32 << 10));
  EXPECT_GT(traffic_.sent_bytes(3), 1000U);
  EXPECT_LT(traffic_.sent_bytes(3), 1100U);
  EXPECT_EQ(traffic_.sent_bytes(3) + traffic_.sent_bytes(4), connections_.sent_bytes());
  EXPECT_EQ(traffic_.sent_bytes(5), 0U);
  const std::uint64_t before = connections_.sent_bytes();
  serve();
  EXPECT_EQ(connections_.sent_bytes(), before);
  connection_.unwritten = 0;
  serve();
  EXPECT_GT(connections_.sent_bytes(), before);
}

// One Ping a second, unless the last has no answer. The Pong gives the round trip.
TEST_F(LinkTrafficTest, Pings) {
  connection_.next_ping = kNow;
  traffic_.ping(connection_, kNow);
  traffic_.ping(connection_, kNow);
  traffic_.ping(connection_, kNow + Connection::kPingEvery);
  ASSERT_THAT(network_.kinds(), ElementsAre(Kind::kPing));
  link_.lane(Lane::kControl).failures = 3;
  wire::FrameHeader pong;
  pong.mutable_pong()->set_token(network_.sent[0].ping().token() + 1);  // not the answer
  ASSERT_TRUE(take(pong).ok());
  EXPECT_FALSE(link_.round_trip.has_value());
  EXPECT_EQ(link_.lane(Lane::kControl).failures, 3);
  pong.mutable_pong()->set_token(network_.sent[0].ping().token());
  const auto next = take(pong);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(*next, Next::kNothing);
  EXPECT_EQ(link_.round_trip, Duration{});
  EXPECT_EQ(link_.lane(Lane::kControl).failures, 0);
  traffic_.ping(connection_, kNow + Connection::kPingEvery);
  EXPECT_EQ(network_.sent.size(), 1U) << "the next second begins at the Ping that was left out";
  traffic_.ping(connection_, kNow + Connection::kPingEvery + Connection::kPingEvery);
  EXPECT_EQ(network_.sent.size(), 2U);
}

// A Ping has a Pong with its token, but not without end for a peer that reads nothing.
TEST_F(LinkTrafficTest, AnswersPings) {
  wire::FrameHeader ping;
  ping.mutable_ping()->set_token(9);
  ASSERT_TRUE(take(ping).ok());
  ASSERT_THAT(network_.kinds(), ElementsAre(Kind::kPong));
  EXPECT_EQ(network_.sent[0].pong().token(), 9U);
  connection_.unwritten = 2 * Connection::kUnwritten;
  ASSERT_TRUE(take(ping).ok());
  EXPECT_EQ(network_.sent.size(), 1U);
}

// Frames that a correct peer never sends are errors.
TEST_F(LinkTrafficTest, Faults) {
  wire::FrameHeader header;
  header.mutable_data()->set_number(2);
  EXPECT_FALSE(take(header).ok());
  header.mutable_ack()->set_received(1);
  EXPECT_FALSE(take(header).ok());
  header.mutable_relayed()->set_number(1);
  EXPECT_FALSE(take(header).ok());
  header.mutable_hello();
  const auto unexpected = take(header);
  ASSERT_FALSE(unexpected.ok());
  EXPECT_EQ(unexpected.error().got, "a frame of kind 1");
}

// Claim: inside a connection through a relay, frames of relaying are errors.
TEST_F(LinkTrafficTest, RelaysNothingTwice) {
  link_.lane(Lane::kControl).via = NodeId{3};
  Connection& inner = connections_.dial(link_, Lane::kControl, kNow);
  ASSERT_TRUE(Relay::is_inner(inner.id));
  std::array<wire::FrameHeader, 3> headers;
  headers[0].mutable_relay_open()->set_number(1);
  headers[1].mutable_relayed()->set_number(1);
  headers[2].mutable_relay_close()->set_number(1);
  for (const wire::FrameHeader& header : headers) {
    const auto wrong = traffic_.on_frame(inner, link_, {.header = header, .payload = {}}, kNow, events_);
    ASSERT_FALSE(wrong.ok());
    EXPECT_EQ(wrong.error().expected, "nothing relayed twice");
  }
}

// Claim: a Pong that nobody has asked for says nothing of the round trip, nor that the peer answers.
TEST_F(LinkTrafficTest, TakesNoPongUnasked) {
  link_.lane(Lane::kControl).failures = 3;
  wire::FrameHeader pong;
  pong.mutable_pong()->set_token(0);
  ASSERT_TRUE(take(pong).ok());
  EXPECT_EQ(link_.round_trip, std::nullopt);
  EXPECT_EQ(link_.lane(Lane::kControl).failures, 3);
}

}  // namespace
}  // namespace gossamer::net
