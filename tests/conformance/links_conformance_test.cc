// SPDX-License-Identifier: Apache-2.0
//
// Links (net/link) over each Network. The networks promise what the link relies on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/node_name.h"
#include "net/link/links.h"
#include "networks.h"

namespace gossamer::net {
namespace {

using host::Lane;
using ::testing::HasSubstr;

class LinksConformance : public ::testing::TestWithParam<host::NetworkKind> {
 protected:
  struct Node {
    PeerId id;
    std::unique_ptr<host::Network> network;
    std::unique_ptr<Links> links;
    PeerAddress address;
    LinkEvents events;
    std::vector<std::string> arrived;
    std::uint64_t bytes = 0;
  };

  void SetUp() override { world_ = make_world(GetParam()); }

  std::unique_ptr<Node> start(std::uint64_t number, const std::string& run = "run",
                              Links::Options options = {}) {
    auto node = std::make_unique<Node>();
    Node* const self = node.get();
    self->id = {NodeId{number}, Incarnation{1}};
    const std::string name = certificate_name(self->id.node);
    self->network = world_->start(name, 0, [this, self](host::NetworkEvent event) {
      if (self->network == nullptr) return;  // it has ended while this was still on its way
      LinkEvents out;
      self->links->on(std::move(event), world_->now(), out);
      take(*self, out);
    });
    options.run = run;
    options.self = self->id;
    options.program = "test";
    self->links = std::make_unique<Links>(*self->network, std::move(options));
    self->address = {self->id.node, *self->network->listen(world_->address(name), Lane::kControl),
                     *self->network->listen(world_->address(name), Lane::kBulk)};
    nodes_.push_back(self);
    return node;
  }
  void TearDown() override { nodes_.clear(); }

  void take(Node& node, LinkEvents& out) {
    for (LinkEvent& event : out) {
      if (const auto* const one = std::get_if<Arrived>(&event)) {
        node.arrived.push_back(one->message.body);
        node.bytes += counted_bytes(one->message);
        node.links->consumed(one->receipt, world_->now());
      } else {
        node.events.push_back(std::move(event));
      }
    }
  }
  bool run_until(const std::function<bool()>& done) {
    return world_->run_until([&] {
      for (Node* const node : nodes_) {
        const auto wake = node->links->next_wakeup();
        if (!wake.has_value() || *wake > world_->now()) continue;
        LinkEvents out;
        node->links->tick(world_->now(), out);
        take(*node, out);
      }
      return done();
    });
  }
  template <class Event>
  static std::size_t count(const Node& node) {
    return static_cast<std::size_t>(std::ranges::count_if(
        node.events, [](const auto& event) { return std::holds_alternative<Event>(event); }));
  }

  std::unique_ptr<host::NetworkWorld> world_;
  std::vector<Node*> nodes_;
};

// Messages of both lanes and all sizes arrive once and in order, both ways at once. The windows are much
// smaller than the messages.
TEST_P(LinksConformance, CarriesMessages) {
  const auto a = start(1);
  const auto b = start(2);
  a->links->open(b->address, world_->now());
  ASSERT_TRUE(run_until([&] { return count<LinkUp>(*a) == 1 && count<LinkUp>(*b) == 1; }));
  std::uint64_t bytes = 0;
  for (int i = 0; i < 200; ++i) {
    const std::size_t size = static_cast<std::size_t>(i) * 7919 % 1'000'000;
    for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
      const Message message{
          .channel = 1, .body = std::to_string(i), .payload = {Slice::of(std::string(size, 'x'))}};
      bytes += counted_bytes(message);
      ASSERT_TRUE(a->links->send(b->id, lane, message, world_->now()).has_value());
      ASSERT_TRUE(b->links->send(a->id, lane, message, world_->now()).has_value());
    }
  }
  ASSERT_TRUE(run_until([&] { return a->arrived.size() == 400 && b->arrived.size() == 400; }));
  EXPECT_EQ(a->bytes, bytes);
  EXPECT_EQ(b->bytes, bytes);
  ASSERT_TRUE(run_until([&] { return a->links->statistics(b->id.node).queued_bytes == 0; }));
  EXPECT_EQ(count<LinkUp>(*a), 1U);
  EXPECT_EQ(count<LinkBroken>(*a) + count<LinkEnded>(*a), 0U);
}

// A refusal arrives although the connection that carries it is closed after it.
TEST_P(LinksConformance, RefusalArrives) {
  const auto a = start(1);
  const auto b = start(2, "another");
  b->links->open(a->address, world_->now());
  ASSERT_TRUE(run_until([&] { return count<LinkEnded>(*b) == 1; }));
  const Error reason = std::get<LinkEnded>(b->events.back()).reason;
  EXPECT_EQ(reason.kind, ErrorKind::kRefused);
  EXPECT_THAT(reason.message(), HasSubstr("another run"));
}

// The end of a process is noticed at once, and its peer tries again.
TEST_P(LinksConformance, ProcessEnds) {
  const auto a = start(1);
  auto b = start(2);
  a->links->open(b->address, world_->now());
  ASSERT_TRUE(run_until([&] { return count<LinkUp>(*a) == 1 && count<LinkUp>(*b) == 1; }));
  nodes_.pop_back();
  b->network.reset();
  ASSERT_TRUE(run_until([&] { return count<LinkBroken>(*a) == 1; }));
  ASSERT_TRUE(run_until([&] { return count<OpenFailed>(*a) >= 2; }));
}

// Messages through a third node pass as over a connection of their own. When it ends, both ends know at once.
TEST_P(LinksConformance, Relayed) {
  const auto a = start(1);
  const auto b = start(2);
  Links::Options options;
  options.relays = true;
  auto relay = start(3, "run", std::move(options));
  b->links->trust_relay(relay->id.node);
  for (Node* const end : {a.get(), b.get()}) end->links->open(relay->address, world_->now());
  ASSERT_TRUE(run_until([&] {
    return std::ranges::all_of(std::array{a.get(), b.get()}, [&](const Node* end) {
      return relay->links->statistics(end->id.node).up && end->links->statistics(relay->id.node).up;
    });
  }));
  a->links->open({.node = b->id.node, .via = relay->id.node}, world_->now());
  constexpr std::size_t kMessages = 60;
  for (std::size_t i = 0; i < kMessages; ++i) {
    for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
      const Message message{
          .channel = 1, .body = std::to_string(i), .payload = {Slice::of(std::string(i * 79190, 'x'))}};
      ASSERT_TRUE(a->links->send({b->id.node, {}}, lane, message, world_->now()).has_value());
    }
  }
  ASSERT_TRUE(run_until([&] { return b->arrived.size() == 2 * kMessages; }));
  EXPECT_EQ(a->links->statistics(b->id.node).relayed_by, relay->id.node);
  EXPECT_EQ(b->links->statistics(a->id.node).relayed_by, relay->id.node);
  ASSERT_TRUE(
      b->links->send(a->id, Lane::kControl, {.channel = 1, .body = "back", .payload = {}}, world_->now()));
  ASSERT_TRUE(run_until([&] { return a->arrived == std::vector<std::string>{"back"}; }));
  EXPECT_EQ(count<LinkBroken>(*a) + count<LinkBroken>(*b) + count<LinkEnded>(*a) + count<LinkEnded>(*b), 0U);
  nodes_.pop_back();
  relay->network.reset();
  ASSERT_TRUE(run_until([&] { return count<LinkBroken>(*a) == 2 && count<LinkBroken>(*b) == 2; }));
}

INSTANTIATE_TEST_SUITE_P(Networks, LinksConformance,
                         ::testing::Values(host::NetworkKind::kPlain, host::NetworkKind::kTls,
                                           host::NetworkKind::kSim),
                         [](const auto& test) { return name(test.param); });

}  // namespace
}  // namespace gossamer::net
