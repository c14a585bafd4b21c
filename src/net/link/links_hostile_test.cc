// SPDX-License-Identifier: Apache-2.0
//
// Links against peers that do not keep to the protocol: nothing ends a node, and nothing costs it unbounded
// memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "net/link/test_counting_network.h"
#include "net/link/test_simulated_nodes.h"

namespace gossamer::net {
namespace {

using ::testing::HasSubstr;

// Connections that say nothing are closed after 5 s. Beyond what one certificate, one host or all
// together may have, they are closed immediately. A flood of one keeps no other out.
TEST_F(LinksTest, Strangers) {
  constexpr std::size_t kEach = 40;  // connections of one process
  Node& a = start(1);
  Node& b = start(2);
  std::size_t closed = 0;
  std::uint64_t number = 100;
  std::vector<std::unique_ptr<host::Network>> strangers;
  const auto flood = [&](const std::string& machine, const std::string& certificate) {
    strangers.push_back(internet_.attach(machine, {certificate}, [&](const host::NetworkEvent& event) {
      closed += std::holds_alternative<host::Closed>(event) ? 1 : 0;
    }));
    for (std::size_t i = 0; i < kEach; ++i)
      (void)strangers.back()->connect(a.address.control, Lane::kControl);
  };
  const Strangers::Limits limits;
  ASSERT_LT(limits.of_certificate, kEach);
  std::size_t kept = 0;
  const auto expect_more = [&](std::size_t more) {
    kept += more;
    run_for(0.1);
    EXPECT_EQ(closed, strangers.size() * kEach - kept);
  };
  const auto flood_from_host = [&](const std::string& machine) {
    for (std::size_t held = 0; held < limits.of_host; held += limits.of_certificate)
      flood(machine, "node-" + std::to_string(++number));
  };
  flood("s0", "");  // no certificate: such connections come to nobody
  expect_more(0);
  flood("s1", "node-5");
  expect_more(limits.of_certificate);
  flood("s2", "node-5");  // the same from elsewhere
  expect_more(0);
  flood_from_host("s3");
  expect_more(limits.of_host);
  flood("s3", "node-6");  // one more from the same host
  expect_more(0);
  join(b, a);
  for (std::size_t held = 0; held < limits.in_all; held += limits.of_host)
    flood_from_host("t" + std::to_string(held));
  run_for(0.1);
  EXPECT_EQ(closed, strangers.size() * kEach - limits.in_all);
  run_for(5);
  EXPECT_EQ(closed, strangers.size() * kEach);
  // All is free again.
  closed = 0;
  strangers.clear();
  kept = 0;
  flood("s3", "node-5");
  expect_more(limits.of_certificate);
}

// Bytes that are no frames, and frames out of place, end the connection with words; the node goes on.
TEST_F(LinksTest, Garbage) {
  Node& a = start(1);
  Node& b = start(2);
  join(a, b);
  std::vector<std::string> refusals;
  const auto stranger = internet_.attach("s", {"node-5"}, [&](const host::NetworkEvent& event) {
    if (const auto* const received = std::get_if<host::Received>(&event)) {
      const auto frame = decode_frame(received->frame);
      if (frame.ok()) refusals.push_back(frame->header.refusal().got());
    }
  });
  Rng rng(4, Purpose::kTest);
  std::vector<std::string> openings{"", "abc", std::string(100000, '\xff')};
  for (int i = 0; i < 200; ++i) {
    std::string bytes(rng.below(40), '\0');
    for (char& one : bytes) one = static_cast<char>(rng.below(256));
    openings.push_back(bytes);
  }
  wire::FrameHeader ping;
  ping.mutable_ping()->set_token(1);
  openings.push_back(joined(encode_frame(ping)));
  for (const std::string& opening : openings) {
    const auto connection = stranger->connect(a.address.control, Lane::kControl);
    run_for(0.1);
    stranger->send(connection, {Slice::of(opening)});
    run_for(0.1);
    stranger->close(connection);  // its place is free again
  }
  run_for(1);
  EXPECT_EQ(refusals.size(), openings.size());
  EXPECT_THAT(refusals.back(), HasSubstr("kind 6"));
  b.send(a, Lane::kControl, "still here");
  run_for(1);
  EXPECT_EQ(a.bodies(Lane::kControl), std::vector<std::string>{"still here"});
}

// Hostile openings that once ended a node: a run's name as long as a header may be, and garbage while this
// node takes leave.
TEST_F(LinksTest, HostileOpenings) {
  Node& a = start(1);
  Node& b = start(2);
  std::vector<wire::Refusal> refusals;
  const auto stranger = internet_.attach("s", {"node-5"}, [&](const host::NetworkEvent& event) {
    const auto* const received = std::get_if<host::Received>(&event);
    if (received != nullptr) refusals.push_back(decode_frame(received->frame)->header.refusal());
  });
  for (const std::size_t size : {65000U, 65700U, 65740U, 65770U}) {
    wire::FrameHeader header;
    header.mutable_hello()->set_wire_max(1);
    header.mutable_hello()->set_run(std::string(size, 'r'));
    const auto connection = stranger->connect(a.address.control, Lane::kControl);
    run_for(0.1);
    stranger->send(connection, encode_frame(header));
    run_for(0.1);
    ASSERT_FALSE(refusals.empty());
    EXPECT_EQ(refusals.back().reason(), wire::Refusal::RUN);
    EXPECT_LT(refusals.back().got().size(), 1000U);
  }
  join(a, b);
  // b says something as a leaves; a's connection only waits to be closed.
  LinkEvents ignored;
  a.links->close(b.id.node, "done", timeline_.now());
  b.send(a, Lane::kControl, "late");
  run_for(Connection::kGreetingTime.seconds() + 1);
  EXPECT_TRUE(a.bodies(Lane::kControl).empty());
}

// A node at the address of another one gets no Hello, and nothing that it says ends the link with that one,
// on either lane. The opener's user is told which node is there. The link can go another way.
TEST_F(LinksTest, AnotherNodeAtTheAddress) {
  Links::Options relaying;
  relaying.relays = true;
  Node& relay = *nodes_.emplace_back(
      std::make_unique<Node>(timeline_, internet_, 3, 1, "run", std::string(), std::move(relaying)));
  Node& a = start(1);
  Node& b = start(2);
  b.links->trust_relay(relay.id.node);
  for (Node* const node : {&a, &b}) join(*node, relay);
  wire::FrameHeader word;
  std::size_t dialed = 0;
  std::size_t heard = 0;
  std::unique_ptr<host::Network> other;
  other = internet_.attach("s", {"node-9"}, [&](const host::NetworkEvent& event) {
    heard += std::holds_alternative<host::Received>(event) ? 1 : 0;
    const auto* const accepted = std::get_if<host::Accepted>(&event);
    if (accepted == nullptr) return;
    ++dialed;
    other->send(accepted->connection, encode_frame(word));
  });
  PeerAddress wrong = b.address;
  wrong.control = *other->listen({"s", 0}, Lane::kControl);
  wrong.bulk = *other->listen({"s", 0}, Lane::kBulk);
  word.mutable_refusal()->set_reason(wire::Refusal::FENCED);
  a.links->open(wrong, timeline_.now());
  a.send(b, Lane::kBulk, "queued");
  run_for(1.5);
  word.mutable_welcome()->mutable_from()->set_node(9);
  run_for(1.5);
  EXPECT_GT(dialed, 4U) << "it is dialed again";
  EXPECT_EQ(heard, 0U);
  EXPECT_TRUE(a.all<LinkEnded>().empty());
  ASSERT_FALSE(a.all<OpenFailed>().empty());
  EXPECT_EQ(a.all<OpenFailed>().back().node, b.id.node);
  EXPECT_THAT(a.all<OpenFailed>().back().reason.message(), HasSubstr("got node-9; expected node-2"));
  EXPECT_FALSE(a.all<BulkFailed>().empty());
  EXPECT_TRUE(a.reroute({.node = b.id.node, .via = relay.id.node}));
  run_for(1);
  EXPECT_EQ(a.links->statistics(b.id.node).relayed_by, relay.id.node);
  EXPECT_EQ(b.bodies(Lane::kBulk), std::vector<std::string>{"queued"});
}

// A node that speaks no version of ours is refused with both ranges, and our user is told the same. The user
// is not told if the certificate belongs to another node.
TEST_F(LinksTest, OtherVersion) {
  Node& a = start(1);
  std::vector<wire::Refusal> refusals;
  const auto stranger = internet_.attach("s", {"node-5"}, [&](const host::NetworkEvent& event) {
    const auto* const received = std::get_if<host::Received>(&event);
    if (received != nullptr) refusals.push_back(decode_frame(received->frame)->header.refusal());
  });
  for (const std::uint64_t node : {5U, 6U}) {
    wire::FrameHeader header;
    header.mutable_hello()->set_wire_min(kWireMax + 1);
    header.mutable_hello()->set_wire_max(kWireMax + 2);
    header.mutable_hello()->mutable_from()->set_node(node);
    header.mutable_hello()->mutable_from()->set_incarnation(9);
    stranger->send(stranger->connect(a.address.control, Lane::kControl), encode_frame(header));
    run_for(0.2);
  }
  ASSERT_EQ(refusals.size(), 2U);
  EXPECT_EQ(refusals[0].reason(), wire::Refusal::WIRE);
  EXPECT_EQ(refusals[0].got(), "2 to 3");
  EXPECT_EQ(refusals[0].expected(), "one of 1 to 1");
  const auto told = a.all<Incompatible>();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].peer, (PeerId{NodeId{5}, Incarnation{9}}));
  EXPECT_THAT(told[0].reason.message(), HasSubstr("2 to 3"));
  EXPECT_THAT(told[0].reason.message(), HasSubstr("1 to 1"));
}

// A peer that sends without reading, Pings above all, costs bounded memory.
TEST_F(LinksTest, PingsUnread) {
  CountingNetwork network;
  Links links(network, {.run = "run", .self = {NodeId{1}, Incarnation{1}}, .program = "test"});
  LinkEvents events;
  const host::ConnectionId id{7};
  links.on(host::Accepted{id, Lane::kControl, {"node-2"}, "stranger", "there"}, {}, events);
  wire::FrameHeader header;
  wire::Hello* const hello = header.mutable_hello();
  hello->set_wire_min(kWireMin);
  hello->set_wire_max(kWireMax);
  hello->set_run("run");
  hello->mutable_from()->set_node(2);
  hello->mutable_from()->set_incarnation(1);
  links.on(host::Received{id, encode_frame(header)}, {}, events);
  ASSERT_EQ(events.size(), 1U);
  header.mutable_ping()->set_token(1);
  for (int i = 0; i < 500'000; ++i) links.on(host::Received{id, encode_frame(header)}, {}, events);
  EXPECT_LT(network.queued, 3 * Connection::kUnwritten);
  EXPECT_TRUE(links.next_wakeup().has_value());
  links.tick({}, events);
}

// A connection that neither opens nor fails is given up and dialed again; waiting for it, nothing spins.
TEST(LinksSilence, DialingHasATimeOut) {
  CountingNetwork network;
  Links links(network, {.run = "run", .self = {NodeId{1}, Incarnation{1}}, .program = "test"});
  LinkEvents events;
  links.open({.node = NodeId{2}, .control = {"there", 1}, .bulk = {"there", 2}}, {});
  int wakeups = 0;
  for (Instant now; now < Instant{} + from_seconds(100); ++wakeups) {
    ASSERT_TRUE(links.next_wakeup().has_value());
    ASSERT_LT(wakeups, 200);
    now = std::max(now, *links.next_wakeup());
    links.tick(now, events);
  }
  EXPECT_GE(network.dialed, 12U);
  EXPECT_GE(network.closed, network.dialed - 2);
  const auto count = [&]<class Event>() {
    return std::ranges::count_if(events, [](const auto& one) { return std::holds_alternative<Event>(one); });
  };
  EXPECT_GE(count.operator()<OpenFailed>(), 5);
  EXPECT_GE(count.operator()<BulkFailed>(), 5);
  EXPECT_EQ(count.operator()<LaneBlocked>(), 2);
}

// A peer that reads nothing of what it is sent is at fault once too much waits for it.
TEST_F(LinksTest, PeersThatReadNothing) {
  static constexpr std::array kRule{ChannelRule{1, Sender::kJoining, Lanes::kControl, 1}};
  Node& a = start_with(1, kRule);
  Node& b = start(2);
  join(a, b);
  b.consumes = false;
  a.links->set_serving({});
  for (int i = 0; i < 15; ++i) a.send(b, Lane::kControl, "", 1 << 20);
  run_for(3);
  EXPECT_TRUE(a.all<PeerAtFault>().empty()) << "less than 16 MiB wait";
  for (int i = 0; i < 30; ++i) a.send(b, Lane::kControl, "", 1 << 20);
  run_for(3);
  ASSERT_EQ(a.all<PeerAtFault>().size(), 1U);
  EXPECT_EQ(a.all<PeerAtFault>().front().peer, b.id);
  EXPECT_FALSE(a.links->linked(b.id.node));
}

// A message that the table forbids is refused at its first piece, and nothing of it is kept.
TEST_F(LinksTest, ForbiddenMessages) {
  static constexpr std::array kRule{ChannelRule{1, Sender::kServing, Lanes::kBoth, 1000}};
  Node& a = start(1);
  Node& b = start_with(2, kRule);
  join(a, b);
  a.send(b, Lane::kBulk, "", 1000);
  run_for(1);
  EXPECT_EQ(b.bodies(Lane::kBulk).size(), 1U);
  a.send(b, Lane::kBulk, "", 100 << 20);
  run_for(1);
  EXPECT_EQ(b.bodies(Lane::kBulk).size(), 1U);
  ASSERT_EQ(b.all<PeerAtFault>().size(), 1U);
  EXPECT_EQ(b.all<PeerAtFault>().front().peer, a.id);
  EXPECT_EQ(b.links->statistics(a.id.node).received_bytes, 0U);
  EXPECT_FALSE(b.links->linked(a.id.node));
}

}  // namespace
}  // namespace gossamer::net
