// SPDX-License-Identifier: Apache-2.0
//
// Nodes with Links on the simulated internet, for tests. Thread rule: the test's thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/node_name.h"
#include "host/sim/internet.h"
#include "host/sim/timeline.h"
#include "net/link/links.h"

namespace gossamer::net {

using host::Lane;

// A node on a simulated machine of its own. It writes down what its links say and consumes what arrives.
class Node {
 public:
  Node(host::Timeline& timeline, host::SimInternet& internet, std::uint64_t number,
       std::uint64_t incarnation = 1, std::string run = "run", std::string certificate = {},
       Links::Options options = {})
      : timeline_(timeline),
        id{NodeId{number}, Incarnation{incarnation}},
        machine("m" + std::to_string(number)) {
    if (certificate.empty()) certificate = certificate_name(id.node);
    network_ = internet.attach(machine, {certificate}, [this](host::NetworkEvent event) {
      links->on(std::move(event), timeline_.now(), fresh_);
      after();
    });
    options.run = std::move(run);
    options.self = id;
    options.program = "test";
    links = std::make_unique<Links>(*network_, std::move(options));
    address.node = id.node;
    address.control = listen(Lane::kControl);
    address.bulk = listen(Lane::kBulk);
  }
  ~Node() { *alive_ = false; }

  void open(const Node& to) {
    links->open(to.address, timeline_.now());
    after();
  }
  void open_through(const Node& relay, const Node& to) {
    links->open({.node = to.id.node, .via = relay.id.node}, timeline_.now());
    after();
  }
  bool reroute(const PeerAddress& to, Lane lane) {
    const bool ours = links->reroute(to, lane, timeline_.now());
    after();
    return ours;
  }
  bool reroute(const PeerAddress& to) { return reroute(to, Lane::kControl) && reroute(to, Lane::kBulk); }
  // How long a lane of the link has been blocked, in seconds.
  [[nodiscard]] std::optional<double> blocked_for(const Node& to, Lane lane) const {
    const auto since = links->blocked_since(to.id.node, lane, timeline_.now());
    if (!since) return std::nullopt;
    return (timeline_.now() - *since).seconds();
  }
  // To be called after a user has called `links` itself.
  void used() { after(); }
  void send(const Node& to, Lane lane, std::string body, std::size_t payload = 0) {
    (void)links->send(
        {to.id.node, {}}, lane,
        {.channel = 1, .body = std::move(body), .payload = {Slice::of(std::string(payload, 'x'))}},
        timeline_.now());
    after();
  }
  // False if there is no link with it.
  bool send(PeerId to, Lane lane, Message message) {
    const bool queued = links->send(to, lane, std::move(message), timeline_.now()).has_value();
    after();
    return queued;
  }
  void close(const Node& to) {
    links->close(to.id.node, "done", timeline_.now());
    after();
  }
  void fence(PeerId peer) {
    links->fence(peer, timeline_.now(), fresh_);
    after();
  }

  template <class Event>
  [[nodiscard]] std::vector<Event> all() const {
    std::vector<Event> found;
    for (const LinkEvent& event : events) {
      if (const auto* const one = std::get_if<Event>(&event)) found.push_back(*one);
    }
    return found;
  }
  [[nodiscard]] std::vector<std::string> bodies(Lane lane) const {
    std::vector<std::string> found;
    for (const Arrived& one : all<Arrived>()) {
      if (one.receipt.lane == lane) found.push_back(one.message.body);
    }
    return found;
  }

 private:
  host::Endpoint listen(Lane lane) {
    const auto bound = network_->listen({machine, 0}, lane);
    CHECK(bound.ok());
    return *bound;
  }
  void after() {
    LinkEvents fresh = std::exchange(fresh_, {});
    for (LinkEvent& event : fresh) {
      const auto* const arrived = std::get_if<Arrived>(&event);
      if (arrived != nullptr && consumes) links->consumed(arrived->receipt, timeline_.now());
      when.push_back(timeline_.now());
      if (on_event) on_event(event);
      // Tests of gigabytes look at bodies only.
      if (arrived != nullptr) std::get<Arrived>(event).message.payload.clear();
      events.push_back(std::move(event));
    }
    const auto wake = links->next_wakeup();
    if (!wake.has_value() || (armed_.has_value() && *armed_ <= *wake)) return;
    armed_ = *wake;
    timeline_.at(std::max(*wake, timeline_.now()), [this, alive = alive_, wake] {
      if (!*alive || armed_ != wake) return;
      armed_.reset();
      links->tick(timeline_.now(), fresh_);
      after();
    });
  }

  host::Timeline& timeline_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<host::Network> network_;
  LinkEvents fresh_;
  std::optional<Instant> armed_;

 public:
  PeerId id;
  std::string machine;
  PeerAddress address;
  LinkEvents events;
  std::vector<Instant> when;  // of each event
  bool consumes = true;
  std::function<void(LinkEvent)> on_event;  // called for each event before it is written down; may send
  std::unique_ptr<Links> links;
};

class LinksTest : public ::testing::Test {
 protected:
  Node& start(std::uint64_t number, std::uint64_t incarnation = 1, std::string run = "run",
              std::string certificate = {}) {
    nodes_.push_back(std::make_unique<Node>(timeline_, internet_, number, incarnation, std::move(run),
                                            std::move(certificate)));
    return *nodes_.back();
  }
  // With a table of channels, which outlives the node.
  Node& start_with(std::uint64_t number, std::span<const ChannelRule> channels) {
    Links::Options options;
    options.channels = channels;
    nodes_.push_back(
        std::make_unique<Node>(timeline_, internet_, number, 1, "run", std::string(), std::move(options)));
    return *nodes_.back();
  }
  void kill(Node& node) {
    std::erase_if(nodes_, [&](const auto& one) { return one.get() == &node; });
  }
  void run_for(double seconds) { timeline_.run_until(timeline_.now() + from_seconds(seconds)); }
  void join(Node& a, Node& b) {
    a.open(b);
    run_for(1);
    ASSERT_TRUE(a.links->statistics(b.id.node).up);
    ASSERT_TRUE(b.links->statistics(a.id.node).up);
  }

  host::Timeline timeline_{11};
  host::SimInternet internet_{timeline_, 11};
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace gossamer::net
