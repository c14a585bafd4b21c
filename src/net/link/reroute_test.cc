// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/link/test_simulated_nodes.h"

namespace gossamer::net {
namespace {

// A link moves to a relay when its path is cut, and back when the path is healed. Both lanes go on where they
// were: nothing is lost or doubled. Only the opener can move it, and only the opener sees that it must.
TEST_F(LinksTest, TakesAnotherWay) {
  Node& a = start(1);
  Node& b = start(2);
  Links::Options options;
  options.relays = true;
  nodes_.push_back(std::make_unique<Node>(timeline_, internet_, 3, 1, "run", "", std::move(options)));
  Node& relay = *nodes_.back();
  for (Node* const node : {&a, &b}) node->links->trust_relay(relay.id.node);
  join(a, relay);
  join(b, relay);
  join(a, b);
  const PeerAddress around{.node = b.id.node, .via = relay.id.node};
  int sent = 0;
  const auto send = [&] {
    for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
      a.send(b, lane, std::to_string(sent), 2'000'000);
      b.send(a, lane, std::to_string(sent), 2'000'000);
    }
    ++sent;
  };
  for (const bool both : {false, true}) {
    send();
    internet_.cut("m1", "m2");  // one way is enough: nothing is answered
    if (both) internet_.cut("m2", "m1");
    send();
    run_for(4);
    EXPECT_GE(a.blocked_for(b, Lane::kControl), 2.5);
    EXPECT_FALSE(b.blocked_for(a, Lane::kControl).has_value());
    EXPECT_FALSE(b.reroute({.node = a.id.node, .via = relay.id.node}));
    EXPECT_TRUE(a.reroute(around));
    send();
    run_for(3);
    EXPECT_EQ(a.links->statistics(b.id.node).relayed_by, relay.id.node);
    EXPECT_LE(a.blocked_for(b, Lane::kControl), 1.1);
    EXPECT_EQ(a.blocked_for(b, Lane::kBulk), 0);
    internet_.heal("m1", "m2");
    internet_.heal("m2", "m1");
    EXPECT_TRUE(a.reroute(b.address));
    send();
    run_for(3);
    EXPECT_FALSE(a.links->statistics(b.id.node).relayed_by.has_value());
  }
  std::vector<std::string> all;
  for (int i = 0; i < sent; ++i) all.push_back(std::to_string(i));
  for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
    EXPECT_EQ(a.bodies(lane), all);
    EXPECT_EQ(b.bodies(lane), all);
  }
  EXPECT_TRUE(a.all<LinkEnded>().empty() && b.all<LinkEnded>().empty());
}

}  // namespace
}  // namespace gossamer::net
