// SPDX-License-Identifier: Apache-2.0
//
// Links over the simulated internet: what the protocol page promises must hold whatever the network does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "net/link/test_simulated_nodes.h"

namespace gossamer::net {
namespace {

using ::testing::HasSubstr;

// Both ends learn of a link once, and which node is there. Messages queued before it is up are not lost.
TEST_F(LinksTest, Opens) {
  Node& a = start(1);
  Node& b = start(2);
  a.open(b);
  a.open(b);
  a.send(b, Lane::kControl, "early");
  a.send(b, Lane::kBulk, "early bulk", 3'000'000);
  run_for(1);
  ASSERT_EQ(a.all<LinkUp>().size(), 1U);
  EXPECT_EQ(a.all<LinkUp>()[0].peer, b.id);
  ASSERT_EQ(b.all<LinkUp>().size(), 1U);
  EXPECT_EQ(b.all<LinkUp>()[0].peer, a.id);
  EXPECT_EQ(b.bodies(Lane::kControl), std::vector<std::string>{"early"});
  EXPECT_EQ(b.bodies(Lane::kBulk), std::vector<std::string>{"early bulk"});
  b.send(a, Lane::kControl, "back");
  run_for(1);
  EXPECT_EQ(a.bodies(Lane::kControl), std::vector<std::string>{"back"});
  // One way takes 10 ms here; everything is acknowledged soon after.
  EXPECT_NEAR(a.links->statistics(b.id.node).round_trip->milliseconds(), 20, 1);
  EXPECT_EQ(a.links->statistics(b.id.node).queued_bytes, 0U);
}

// Beside gigabytes of bulk a control message takes at most two one-way delays, and the bulk still uses the
// link.
TEST_F(LinksTest, BulkDelaysNoControl) {
  host::MachineRates rates{.up_bytes_per_second = 12.5e6, .down_bytes_per_second = 12.5e6};  // 100 Mb/s
  internet_.set_rates("m1", rates);
  internet_.set_rates("m2", rates);
  Node& a = start(1);
  Node& b = start(2);
  join(a, b);
  for (int i = 0; i < 20; ++i) a.send(b, Lane::kBulk, "bulk", 50'000'000);
  run_for(2);
  for (int i = 0; i < 50; ++i) {
    const Instant sent = timeline_.now();
    const std::size_t before = b.bodies(Lane::kControl).size();
    a.send(b, Lane::kControl, "beat");
    run_for(0.02);
    ASSERT_EQ(b.bodies(Lane::kControl).size(), before + 1) << i << " at " << sent.ns;
    run_for(0.07);
  }
  const double seconds = (timeline_.now() - Instant{}).seconds();
  EXPECT_GT(static_cast<double>(b.links->statistics(a.id.node).received_bytes),
            0.9 * 12.5e6 * (seconds - 1.5));
}

// On a line of 10 kB/s a message of 1 MB arrives over one connection: its pieces are sign of life enough for
// both ends. So it is on either lane and on both, one way and both ways at once.
TEST_F(LinksTest, SlowLine) {
  const host::MachineRates slow{.up_bytes_per_second = 10e3, .down_bytes_per_second = 10e3};
  std::uint64_t number = 10;
  for (const std::vector<Lane>& lanes :
       std::vector<std::vector<Lane>>{{Lane::kControl}, {Lane::kBulk}, {Lane::kControl, Lane::kBulk}}) {
    for (const std::size_t directions : {1U, 2U}) {
      Node& a = start(++number);
      Node& b = start(++number);
      join(a, b);
      internet_.set_rates(a.machine, slow);
      internet_.set_rates(b.machine, slow);
      for (const Lane lane : lanes) {
        a.send(b, lane, "slow", 1'000'000);
        if (directions == 2) b.send(a, lane, "slow", 1'000'000);
      }
      const double bytes = 1e6 * static_cast<double>(lanes.size());
      run_for(bytes / 10e3 * 1.05);
      SCOPED_TRACE(testing::Message() << lanes.size() << " lanes, " << directions << " directions");
      for (const Lane lane : lanes) {
        EXPECT_EQ(b.bodies(lane).size(), 1U);
        EXPECT_EQ(a.bodies(lane).size(), directions - 1);
      }
      EXPECT_TRUE(a.all<LinkBroken>().empty() && b.all<LinkBroken>().empty());
      // A connection that was opened again would send again.
      EXPECT_LT(static_cast<double>(internet_.bytes_sent(a.machine)), 1.02 * bytes);
    }
  }
}

// A line that becomes slow while gigabytes are under way does not break either.
TEST_F(LinksTest, LineBecomesSlow) {
  Node& a = start(1);
  Node& b = start(2);
  join(a, b);
  for (const Lane lane : {Lane::kControl, Lane::kBulk}) a.send(b, lane, "x", 1'000'000'000);
  run_for(3);
  internet_.set_rates("m1", {.up_bytes_per_second = 10e3, .down_bytes_per_second = 10e3});
  const std::uint64_t before = b.links->statistics(a.id.node).received_bytes;
  EXPECT_GT(before, 100'000'000U);
  run_for(300);
  EXPECT_GT(b.links->statistics(a.id.node).received_bytes, before + 2'900'000);
  EXPECT_TRUE(a.all<LinkBroken>().empty() && b.all<LinkBroken>().empty());
}

// Lanes that are full both ways for a while, and then idle, stay up: no Ping is left without an answer.
TEST_F(LinksTest, BusyThenIdle) {
  const host::MachineRates rates{.up_bytes_per_second = 12.5e6, .down_bytes_per_second = 12.5e6};
  internet_.set_rates("m1", rates);
  internet_.set_rates("m2", rates);
  Node& a = start(1);
  Node& b = start(2);
  join(a, b);
  for (int i = 0; i < 100; ++i) {
    for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
      a.send(b, lane, "x", 1'000'000);
      b.send(a, lane, "x", 1'000'000);
    }
  }
  run_for(120);
  EXPECT_EQ(a.bodies(Lane::kControl).size() + b.bodies(Lane::kBulk).size(), 200U);
  EXPECT_TRUE(a.all<LinkBroken>().empty());
  EXPECT_TRUE(b.all<LinkBroken>().empty());
  EXPECT_LT((timeline_.now() - *a.links->statistics(b.id.node).last_heard).seconds(), 3);
}

// A user that does not consume bounds what is sent: the window, and a message beyond it.
TEST_F(LinksTest, WindowBoundsMemory) {
  Node& a = start(1);
  Node& b = start(2);
  join(a, b);
  b.consumes = false;
  for (int i = 0; i < 100; ++i) a.send(b, Lane::kBulk, "bulk", 1'000'000);
  run_for(60);
  EXPECT_LE(b.bodies(Lane::kBulk).size(), 34U);
  EXPECT_GE(b.bodies(Lane::kBulk).size(), 32U);
  b.consumes = true;
  for (const Arrived& one : b.all<Arrived>()) b.links->consumed(one.receipt, timeline_.now());
  run_for(60);
  EXPECT_EQ(b.bodies(Lane::kBulk).size(), 100U);
}

// Whether the other side has a message, and that a link is another one than before, can be asked.
TEST_F(LinksTest, Settled) {
  Node& a = start(1);
  Node& b = start(2);
  join(a, b);
  const std::uint64_t link = a.links->statistics(b.id.node).link;
  EXPECT_NE(link, 0U);
  EXPECT_EQ(a.links->statistics(NodeId(9)).link, 0U);
  const auto ticket = a.links->send(
      b.id, Lane::kBulk, {.channel = 1, .body = {}, .payload = {Slice::of(std::string(1'000'000, 'x'))}},
      timeline_.now());
  ASSERT_TRUE(ticket.has_value());
  EXPECT_EQ(ticket->link, link);
  EXPECT_FALSE(a.links->settled(*ticket));
  run_for(5);
  EXPECT_TRUE(a.links->settled(*ticket));
  internet_.cut("m1", "m2");
  const auto lost =
      a.links->send(b.id, Lane::kBulk, {.channel = 1, .body = "b", .payload = {}}, timeline_.now());
  run_for(5);
  EXPECT_FALSE(a.links->settled(*lost));
  a.fence(b.id);
  EXPECT_TRUE(a.links->settled(*lost)) << "its link is gone";
  EXPECT_EQ(a.links->statistics(b.id.node).link, 0U);
}

// A node that is killed is noticed within a one-way delay; a machine that vanishes, by silence.
TEST_F(LinksTest, DeathIsNoticed) {
  Node& a = start(1);
  Node& b = start(2);
  Node& c = start(3);
  join(a, b);
  join(a, c);
  kill(b);
  run_for(0.02);
  ASSERT_EQ(a.all<LinkBroken>().size(), 1U);
  EXPECT_EQ(a.all<LinkBroken>()[0].peer.node, NodeId{2});
  EXPECT_THAT(a.all<LinkBroken>()[0].reason.message(), HasSubstr("node-2"));
  internet_.vanish("m3");
  run_for(Connection::kSilence.seconds() + 2);
  ASSERT_EQ(a.all<LinkBroken>().size(), 2U);
  EXPECT_THAT(a.all<LinkBroken>()[1].reason.message(), HasSubstr("no sign of life"));
  EXPECT_FALSE(a.all<OpenFailed>().empty());
}

// A node that comes back as a new incarnation ends the old link on the other side. Messages for the old one
// do not reach the new one.
TEST_F(LinksTest, NewIncarnation) {
  Node& a = start(1);
  Node& old = start(2);
  join(old, a);
  // The machine is cut off, so that what is sent now does not arrive; then the process is replaced.
  internet_.cut("m1", "m2");
  a.send(old, Lane::kControl, "for the old one");
  kill(old);
  internet_.heal("m1", "m2");
  Node& fresh = start(2, 2);
  a.events.clear();
  join(fresh, a);
  ASSERT_EQ(a.all<LinkEnded>().size(), 1U);
  EXPECT_EQ(a.all<LinkEnded>()[0].peer, (PeerId{NodeId{2}, Incarnation{1}}));
  EXPECT_THAT(a.all<LinkEnded>()[0].reason.message(), HasSubstr("another incarnation"));
  ASSERT_EQ(a.all<LinkUp>().size(), 1U);
  EXPECT_EQ(a.all<LinkUp>()[0].peer, fresh.id);
  run_for(5);
  EXPECT_TRUE(fresh.bodies(Lane::kControl).empty());
  a.send(fresh, Lane::kControl, "for the new one");
  run_for(1);
  EXPECT_EQ(fresh.bodies(Lane::kControl), std::vector<std::string>{"for the new one"});
}

// A fence ends the link with that incarnation at once, and leaves a later one alone.
TEST_F(LinksTest, Fence) {
  Node& a = start(1);
  Node& b = start(2, 5);
  join(a, b);
  a.fence({b.id.node, Incarnation{4}});
  EXPECT_TRUE(a.links->linked(b.id.node));
  a.fence(b.id);
  EXPECT_FALSE(a.links->linked(b.id.node));
  ASSERT_EQ(a.all<LinkEnded>().size(), 1U);
  EXPECT_EQ(a.all<LinkEnded>()[0].peer, b.id);
  // The zombie hears of it, and hears it again when it tries again.
  for (const std::size_t times : {1U, 2U}) {
    run_for(2);
    ASSERT_EQ(b.all<LinkEnded>().size(), times);
    EXPECT_EQ(b.all<LinkEnded>().back().reason.kind, ErrorKind::kRefused);
    EXPECT_THAT(b.all<LinkEnded>().back().reason.message(), HasSubstr("declared dead"));
    b.open(a);
  }
}

// What was handed to connections is counted, by the channel of the messages; the rest is the link's own.
TEST_F(LinksTest, CountsWhatItSends) {
  Node& a = start(1);
  Node& b = start(2);
  join(a, b);
  const std::uint64_t own = a.links->sent_bytes();
  EXPECT_GT(own, 0U);
  EXPECT_EQ(a.links->sent_bytes(3), 0U);
  const auto payload = [](std::size_t bytes) { return Slices{Slice::of(std::string(bytes, 'x'))}; };
  a.send(b.id, Lane::kBulk, {.channel = 3, .body = {}, .payload = payload(1'000'000)});
  a.send(b.id, Lane::kControl, {.channel = 4, .body = {}, .payload = payload(200'000)});
  run_for(1);
  EXPECT_GT(a.links->sent_bytes(3), 1'000'000U);
  EXPECT_LT(a.links->sent_bytes(3), 1'005'000U);
  EXPECT_GT(a.links->sent_bytes(4), 200'000U);
  EXPECT_LT(a.links->sent_bytes(4), 201'000U);
  EXPECT_GE(a.links->sent_bytes(), own + a.links->sent_bytes(3) + a.links->sent_bytes(4));
  EXPECT_LE(a.links->sent_bytes(), internet_.bytes_sent(a.machine));
  EXPECT_EQ(b.links->sent_bytes(3), 0U);
}

// Goodbye ends a link at once on the other side, as no failure.
TEST_F(LinksTest, Goodbye) {
  Node& a = start(1);
  Node& b = start(2);
  join(a, b);
  a.close(b);
  EXPECT_FALSE(a.links->linked(b.id.node));
  run_for(1);
  ASSERT_EQ(b.all<LinkEnded>().size(), 1U);
  EXPECT_THAT(b.all<LinkEnded>()[0].reason.message(), HasSubstr("has left: done"));
  EXPECT_TRUE(b.all<LinkBroken>().empty());
  // And they may meet again.
  join(b, a);
}

// What does not belong together is refused for good, with a reason that names both.
TEST_F(LinksTest, Refusals) {
  Node& a = start(1);
  const auto refused = [&](Node& other, const std::string& text) {
    other.open(a);
    run_for(3);
    ASSERT_EQ(other.all<LinkEnded>().size(), 1U) << text;
    const Error reason = other.all<LinkEnded>()[0].reason;
    EXPECT_EQ(reason.kind, ErrorKind::kRefused);
    EXPECT_THAT(reason.message(), HasSubstr(text));
    EXPECT_FALSE(other.links->linked(a.id.node));
    EXPECT_TRUE(other.all<LinkUp>().empty());
  };
  refused(start(2, 1, "another"), "run 'another'; expected run 'run'");
  refused(start(8, 1, "\x1b[2J\xff"), "run '?[2J?'");
  refused(start(3, 1, "run", "node-9"), "certificate is of another node");
  a.fence({NodeId{5}, Incarnation{3}});
  refused(start(5, 3), "declared dead");
  Node& later = start(6, 2);
  join(later, a);
  EXPECT_TRUE(a.all<LinkEnded>().empty());
}

// Two nodes that open to each other at once have one link, and lose nothing that was queued.
TEST_F(LinksTest, BothOpen) {
  internet_.set_default_path({.delay = from_milliseconds(10), .jitter = from_milliseconds(60), .loss = 0.05});
  for (std::uint64_t pair = 0; pair < 60; ++pair) {
    Node& a = start(10 + 2 * pair);
    Node& b = start(11 + 2 * pair);
    a.open(b);
    run_for(static_cast<double>(pair) * 0.004);
    b.open(a);
    a.send(b, Lane::kControl, "from a");
    b.send(a, Lane::kControl, "from b");
    run_for(20);
    EXPECT_EQ(b.bodies(Lane::kControl), std::vector<std::string>{"from a"}) << pair;
    EXPECT_EQ(a.bodies(Lane::kControl), std::vector<std::string>{"from b"}) << pair;
    EXPECT_TRUE(a.all<LinkEnded>().empty());
    EXPECT_TRUE(b.all<LinkEnded>().empty());
    EXPECT_GE(a.all<LinkUp>().size(), 1U);
  }
}

// A Welcome of a life that the opener was not told of ends the link at both ends at once. The other end could
// else wait for the opener, which has no such link.
TEST_F(LinksTest, AWrongWelcomeEndsBothEnds) {
  Node& a = start(1);
  Node& b = start(2, 8);
  a.links->set_known({{b.id.node, Incarnation{2}}});
  a.open(b);
  run_for(0.2);
  ASSERT_EQ(a.all<LinkEnded>().size(), 1U);
  ASSERT_EQ(b.all<LinkEnded>().size(), 1U);
  EXPECT_THAT(b.all<LinkEnded>()[0].reason.message(), HasSubstr("has not told this node"));
  a.links->set_known({b.id});
  b.open(a);
  b.send(a, Lane::kControl, "again");
  run_for(1);
  EXPECT_EQ(a.bodies(Lane::kControl), std::vector<std::string>{"again"});
}

// If the node with the lower number cannot reach the other, the other's link is taken.
TEST_F(LinksTest, BothOpenOneHidden) {
  Node& a = start(1);
  Node& b = start(2);
  internet_.hide("m2");
  a.open(b);
  b.open(a);
  a.send(b, Lane::kControl, "from a");
  run_for(10);
  EXPECT_EQ(b.bodies(Lane::kControl), std::vector<std::string>{"from a"});
  EXPECT_TRUE(a.all<LinkEnded>().empty());
}

// What belongs to a link that is gone changes nothing in a later one with the same node: receipts, tickets,
// answers.
TEST_F(LinksTest, OldReceipts) {
  Node& a = start(1);
  Node& b = start(2);
  join(a, b);
  b.consumes = false;
  a.send(b, Lane::kControl, "first");
  run_for(1);
  const Receipt old = b.all<Arrived>().back().receipt;
  const auto ticket =
      b.links->send(a.id, Lane::kBulk, {.channel = 1, .body = "x", .payload = {}}, timeline_.now());
  a.close(b);
  run_for(1);
  join(a, b);
  b.links->consumed(old, timeline_.now());
  EXPECT_FALSE(b.links->cancel(*ticket));
  EXPECT_FALSE(b.links->send({a.id.node, Incarnation{9}}, Lane::kControl, {}, timeline_.now()).has_value());
  EXPECT_FALSE(b.links->send({NodeId{77}, {}}, Lane::kControl, {}, timeline_.now()).has_value());
  a.send(b, Lane::kControl, "second");
  run_for(1);
  EXPECT_EQ(b.bodies(Lane::kControl), (std::vector<std::string>{"first", "second"}));
}

// Whatever is cut, lost, delayed, reset or paused, and however often: each message arrives once and in order
// on its lane while both live. Prints the seed.
TEST(LinksChaos, NothingLostNothingTwice) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, Purpose::kTest);
    host::Timeline timeline(seed);
    host::SimInternet internet(timeline, seed);
    internet.set_default_path({.delay = from_milliseconds(static_cast<double>(rng.below(100))),
                               .jitter = from_milliseconds(static_cast<double>(rng.below(30))),
                               .loss = static_cast<double>(rng.below(5)) * 0.01});
    Node a(timeline, internet, 1);
    Node b(timeline, internet, 2);
    a.open(b);
    std::array<std::array<std::vector<std::string>, 2>, 2> sent;
    for (int turn = 0; turn < 200; ++turn) {
      timeline.run_until(timeline.now() + from_milliseconds(static_cast<double>(rng.below(300))));
      switch (rng.below(8)) {
        case 0: internet.cut("m1", "m2"); break;
        case 1: internet.cut("m2", "m1"); break;
        case 2:
        case 3:
          internet.heal("m1", "m2");
          internet.heal("m2", "m1");
          break;
        case 4: internet.reset("m1", "m2"); break;
        default: {
          const std::size_t from = rng.below(2);
          const std::size_t lane = rng.below(2);
          Node& here = from == 0 ? a : b;
          Node& there = from == 0 ? b : a;
          if (!here.links->linked(there.id.node)) break;
          sent[from][lane].push_back(std::to_string(sent[from][lane].size()));
          here.send(there, static_cast<Lane>(lane), sent[from][lane].back(), rng.below(500000));
        }
      }
    }
    internet.heal("m1", "m2");
    internet.heal("m2", "m1");
    timeline.run_until(timeline.now() + from_seconds(120));
    EXPECT_TRUE(a.all<LinkEnded>().empty());
    EXPECT_TRUE(b.all<LinkEnded>().empty());
    for (const std::size_t lane : {0U, 1U}) {
      EXPECT_EQ(b.bodies(static_cast<Lane>(lane)), sent[0][lane]);
      EXPECT_EQ(a.bodies(static_cast<Lane>(lane)), sent[1][lane]);
    }
    EXPECT_EQ(a.links->statistics(b.id.node).queued_bytes, 0U);
    EXPECT_EQ(b.links->statistics(a.id.node).queued_bytes, 0U);
  }
}

}  // namespace
}  // namespace gossamer::net
