// SPDX-License-Identifier: Apache-2.0
//
// Links over the simulated internet: what a protocol page promises must hold whatever the network does.
#include "net/link/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "host/sim/internet.h"
#include "host/sim/timeline.h"

namespace gossamer::net {
namespace {

using host::Lane;
using ::testing::HasSubstr;

// A node on a simulated machine of its own, which writes down what its links say and consumes what arrives.
class Node {
 public:
  Node(host::Timeline& timeline, host::SimInternet& internet, std::uint64_t number,
       std::uint64_t incarnation = 1, std::string run = "run", std::string certificate = {})
      : timeline_(timeline),
        id{NodeId{number}, Incarnation{incarnation}},
        machine("m" + std::to_string(number)) {
    if (certificate.empty()) certificate = certificate_name(id.node);
    network_ = internet.attach(machine, {certificate}, [this](host::NetworkEvent event) {
      links->on(std::move(event), timeline_.now(), fresh_);
      after();
    });
    links = std::make_unique<Links>(*network_,
                                    Links::Options{.run = std::move(run), .self = id, .program = "test"});
    address.node = id.node;
    address.control = listen(Lane::kControl);
    address.bulk = listen(Lane::kBulk);
  }
  ~Node() { *alive_ = false; }

  void open(const Node& to) {
    links->open(to.address, timeline_.now());
    after();
  }
  void send(const Node& to, Lane lane, std::string body, std::size_t payload = 0) {
    links->send(to.id.node, lane,
                {.channel = 1, .body = std::move(body), .payload = {Slice::of(std::string(payload, 'x'))}},
                timeline_.now());
    after();
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
      if (one.lane == lane) found.push_back(one.message.body);
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
      const auto from = arrived == nullptr ? PeerId{} : arrived->from;
      const auto lane = arrived == nullptr ? Lane::kControl : arrived->lane;
      const std::uint64_t bytes = arrived == nullptr ? 0 : counted_bytes(arrived->message);
      when.push_back(timeline_.now());
      events.push_back(std::move(event));
      if (from.node.value != 0 && consumes) links->consumed(from, lane, bytes, timeline_.now());
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

// Both ends learn of a link once, and who is there; messages queued before it is up are not lost.
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

// Who does not consume bounds what is sent: the window, and a message beyond it.
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
  b.links->consumed(a.id, Lane::kBulk, b.bodies(Lane::kBulk).size() * 1'000'004, timeline_.now());
  run_for(60);
  EXPECT_EQ(b.bodies(Lane::kBulk).size(), 100U);
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
  run_for(Links::kSilence.seconds() + 2);
  ASSERT_EQ(a.all<LinkBroken>().size(), 2U);
  EXPECT_THAT(a.all<LinkBroken>()[1].reason.message(), HasSubstr("no sign of life"));
  EXPECT_FALSE(a.all<OpenFailed>().empty());
}

// A node that comes back as a new incarnation ends the old link on the other side; what was for the old one
// does not reach the new one.
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
  Node& wrong = start(4);
  PeerAddress address = a.address;
  address.node = NodeId{7};
  wrong.links->open(address, timeline_.now());
  run_for(3);
  ASSERT_EQ(wrong.all<LinkEnded>().size(), 1U);
  EXPECT_THAT(wrong.all<LinkEnded>()[0].reason.message(),
              HasSubstr("this is another node: got node-7; expected node-1"));
  a.fence({NodeId{5}, Incarnation{3}});
  refused(start(5, 3), "declared dead");
  Node& later = start(6, 2);
  join(later, a);
  EXPECT_TRUE(a.all<LinkEnded>().empty());
}

// Two nodes that open to each other at once have one link, and lose nothing that was queued.
TEST_F(LinksTest, BothOpen) {
  for (std::uint64_t pair = 0; pair < 20; ++pair) {
    Node& a = start(10 + 2 * pair);
    Node& b = start(11 + 2 * pair);
    a.open(b);
    run_for(static_cast<double>(pair) * 0.005);
    b.open(a);
    a.send(b, Lane::kControl, "from a");
    b.send(a, Lane::kControl, "from b");
    run_for(3);
    EXPECT_EQ(b.bodies(Lane::kControl), std::vector<std::string>{"from a"}) << pair;
    EXPECT_EQ(a.bodies(Lane::kControl), std::vector<std::string>{"from b"}) << pair;
    EXPECT_TRUE(a.all<LinkEnded>().empty());
    EXPECT_TRUE(b.all<LinkEnded>().empty());
    EXPECT_EQ(a.all<LinkUp>().size(), 1U);
  }
}

// Connections that say nothing are closed after a while, and too many at once immediately.
TEST_F(LinksTest, Strangers) {
  Node& a = start(1);
  std::size_t closed = 0;
  const auto stranger = internet_.attach("s", {"node-5"}, [&](const host::NetworkEvent& event) {
    closed += std::holds_alternative<host::Closed>(event) ? 1 : 0;
  });
  for (int i = 0; i < 3000; ++i) (void)stranger->connect(a.address.control, Lane::kControl);
  run_for(1);
  EXPECT_EQ(closed, 3000U - 2048U);
  run_for(Links::kGreetingTime.seconds());
  EXPECT_EQ(closed, 3000U);
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
  }
  run_for(1);
  EXPECT_EQ(refusals.size(), openings.size());
  EXPECT_THAT(refusals.back(), HasSubstr("kind 6"));
  b.send(a, Lane::kControl, "still here");
  run_for(1);
  EXPECT_EQ(a.bodies(Lane::kControl), std::vector<std::string>{"still here"});
}

// Who sends without reading, Pings above all, costs bounded memory.
TEST_F(LinksTest, PingsUnread) {
  struct Counting final : host::Network {
    Result<host::Endpoint> listen(const host::Endpoint& at, Lane) override { return at; }
    host::ConnectionId connect(const host::Endpoint&, Lane) override { return host::ConnectionId{1}; }
    void send(host::ConnectionId, Slices frame) override { queued += total_bytes(frame); }
    void consumed(host::ConnectionId, std::uint64_t) override {}
    void close(host::ConnectionId) override {}
    std::uint64_t queued = 0;
  } network;
  Links links(network, {.run = "run", .self = {NodeId{1}, Incarnation{1}}, .program = "test"});
  LinkEvents events;
  const host::ConnectionId id{7};
  links.on(host::Accepted{id, Lane::kControl, {"node-2"}, "stranger"}, {}, events);
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
  EXPECT_LT(network.queued, 2 * Links::kUnwritten);
  EXPECT_TRUE(links.next_wakeup().has_value());
  links.tick({}, events);
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
