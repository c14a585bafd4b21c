// SPDX-License-Identifier: Apache-2.0
#include "net/link/dial_budget.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/node_name.h"
#include "net/link/links.h"
#include "net/link/test_counting_network.h"

namespace gossamer::net {
namespace {

// Claim: an address is dialed kAtOnce times and then once every kEvery, whoever asks, and others are not
// touched by that. It begins anew when somebody has answered there, and after a long rest.
TEST(DialBudget, BoundsDialsOfAnAddress) {
  DialBudget budget;
  const host::Endpoint there{.host = "10.0.0.9", .port = 7000};
  const host::Endpoint beside{.host = "10.0.0.9", .port = 7001};
  Instant now{1'000'000'000};
  const auto at_once = [&] {
    int dials = 0;
    while (!budget.take(there, now)) ++dials;
    return dials;
  };
  EXPECT_EQ(at_once(), static_cast<int>(DialBudget::kAtOnce));
  EXPECT_FALSE(budget.take(beside, now));
  for (int i = 0; i < 100; ++i) {
    const auto later = budget.take(there, now);
    ASSERT_TRUE(later);
    EXPECT_LE(*later, now + DialBudget::kEvery);
    now = *later;
    EXPECT_EQ(at_once(), 1) << i;
  }
  budget.answered(there);
  EXPECT_EQ(at_once(), static_cast<int>(DialBudget::kAtOnce));
  now = now + from_seconds(1000);
  EXPECT_EQ(at_once(), static_cast<int>(DialBudget::kAtOnce));
}

// Claim: a node that answers with a Welcome is dialed again after each break, however many there are.
TEST(DialBudget, BeginsAnewWithEachWelcome) {
  CountingNetwork network;
  Links links(network, {.run = "run", .self = {NodeId{2}, Incarnation{1}}, .program = "test"});
  const NodeId node{9};
  const Instant now{1'000'000'000};
  LinkEvents events;
  links.open({.node = node, .control = {"10.0.0.9", 7000}, .bulk = {"10.0.0.9", 7001}}, now);
  ASSERT_EQ(network.dialed, 2U);
  wire::FrameHeader header;
  header.mutable_welcome()->set_wire(kWireMax);
  header.mutable_welcome()->mutable_from()->set_node(node.value);
  header.mutable_welcome()->mutable_from()->set_incarnation(1);
  for (std::uint64_t id = 1; id < 101; id += id == 1 ? 2 : 1) {  // 2 is the bulk lane's
    const host::ConnectionId connection{id};
    links.on(host::Opened{connection, {certificate_name(node)}}, now, events);
    links.on(host::Received{connection, encode_frame(header)}, now, events);
    links.on(host::Closed{connection, Error{.what = "connection reset"}}, now, events);
    links.hurry(node, now);
    links.tick(now, events);
    ASSERT_EQ(network.dialed, std::max<std::uint64_t>(id + 1, 3)) << id;
  }
}

// Claim: links dial an address of a node that never answers there at most so often, also where the user opens
// the link again and again, or tries one way after another. The coordinator is not counted.
TEST(DialBudget, HoldsForLinks) {
  for (const std::uint64_t node : {9U, 1U}) {
    CountingNetwork network;
    Links links(
        network,
        {.run = "run", .self = {NodeId{2}, Incarnation{1}}, .program = "test", .coordinator = NodeId{1}});
    const PeerAddress there{.node = NodeId{node}, .control = {"10.0.0.9", 7000}, .bulk = {"10.0.0.9", 7001}};
    Instant now{1'000'000'000};
    for (int i = 0; i < 600; ++i) {
      links.open(there, now);
      LinkEvents events;
      if (i % 3 == 0) {
        for (const host::Lane lane : {host::Lane::kControl, host::Lane::kBulk})
          (void)links.reroute(there, lane, now);
      }
      now = now + from_milliseconds(100);
      links.tick(now, events);
      if (i % 5 == 0) links.close(there.node, "it begins anew", now);
    }
    const double most = 2 * (DialBudget::kAtOnce + 60 / DialBudget::kEvery.seconds());
    if (node == 1) {
      EXPECT_GT(static_cast<double>(network.dialed), 2 * most);
    } else {
      EXPECT_LE(static_cast<double>(network.dialed), most);
      EXPECT_GE(static_cast<double>(network.dialed), 2 * DialBudget::kAtOnce);
    }
  }
}

}  // namespace
}  // namespace gossamer::net
