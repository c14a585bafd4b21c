// SPDX-License-Identifier: Apache-2.0
//
// Every promise of host/api/network.h, on the real network with and without TLS and on the simulated one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/rng.h"
#include "networks.h"

namespace gossamer::host {
namespace {

using ::testing::HasSubstr;

class NetworkConformance : public NetworkTest {};

Slices frame_of(std::string text) { return {Slice::of(std::move(text))}; }

// Bytes that depend on their place and on `salt`.
std::string pattern(std::size_t size, std::uint64_t salt) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 131 + salt * 17 + i / 251) & 0xff);
  return text;
}

// The frames that one connection received, in order.
std::vector<std::string> frames(const Recorder& process, ConnectionId connection) {
  std::vector<std::string> all;
  for (const Received& received : process.all<Received>()) {
    if (received.connection == connection) all.push_back(joined(received.frame));
  }
  return all;
}

std::size_t count(const Recorder& process, ConnectionId connection) {
  return static_cast<std::size_t>(std::ranges::count_if(process.events, [&](const NetworkEvent& event) {
    const auto* const received = std::get_if<Received>(&event);
    return received != nullptr && received->connection == connection;
  }));
}

// Both ends learn of a connection, of its lane, and, with TLS, of each other's certificate.
TEST_P(NetworkConformance, Opens) {
  for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
    Recorder& a = start(std::string("a-") + name(lane));
    Recorder& b = start(std::string("b-") + name(lane));
    const ConnectionPair pair = join(a, b, listen(b, lane), lane);
    ASSERT_EQ(a.all<Opened>().size(), 1U);
    EXPECT_EQ(a.all<Opened>()[0].connection, pair.opener);
    ASSERT_EQ(b.all<Accepted>().size(), 1U);
    EXPECT_EQ(b.all<Accepted>()[0].lane, lane);
    EXPECT_FALSE(b.all<Accepted>()[0].from.empty());
    // Another connection of the same machine comes from the same host.
    (void)join(a, b, listen(b, lane), lane);
    EXPECT_FALSE(b.all<Accepted>()[0].host.empty());
    EXPECT_EQ(b.all<Accepted>()[1].host, b.all<Accepted>()[0].host);
    if (GetParam() == NetworkKind::kPlain) continue;
    EXPECT_EQ(a.all<Opened>()[0].peer.certificate, b.name);
    EXPECT_EQ(b.all<Accepted>()[0].peer.certificate, a.name);
  }
}

// Frames of all sizes, in any number of slices, arrive whole and in order, both ways at once.
TEST_P(NetworkConformance, FramesArriveInOrder) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const ConnectionPair pair = join(a, b, listen(b));
  std::vector<std::string> sent;
  Rng rng(3, Purpose::kTest);
  for (const std::size_t size :
       {0U, 1U, 255U, 256U, 257U, 65536U, 7U, static_cast<unsigned>(Network::kMaxFrameBytes)}) {
    sent.push_back(pattern(size, sent.size()));
    SliceReader reader({Slice::of(sent.back())});
    Slices cut;
    while (reader.left() > 0) {
      for (Slice& slice : reader.take(1 + rng.below(reader.left()))) cut.push_back(std::move(slice));
    }
    a.network->send(pair.opener, cut);
    b.network->send(pair.acceptor, cut);
  }
  ASSERT_TRUE(world_->run_until(
      [&] { return count(a, pair.opener) == sent.size() && count(b, pair.acceptor) == sent.size(); }));
  EXPECT_EQ(frames(a, pair.opener), sent);
  EXPECT_EQ(frames(b, pair.acceptor), sent);
}

// Frames that go together leave together. The last of a burst does not wait for more to come, and is written.
TEST_P(NetworkConformance, BurstsLeaveWhole) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const ConnectionPair pair = join(a, b, listen(b));
  std::size_t sent = 0;
  for (std::size_t burst = 1; burst <= 40; ++burst) {
    for (std::size_t i = 0; i < burst; ++i) a.network->send(pair.opener, frame_of(std::string(100, 'x')));
    sent += burst;
    ASSERT_TRUE(world_->run_until([&] {
      std::uint64_t written = 0;
      for (const Written& one : a.all<Written>()) written += one.bytes;
      return count(b, pair.acceptor) == sent && written == 100 * sent;
    })) << burst;
  }
}

// Messages sent before the connection is open wait for it. They are lost with it if it never opens.
TEST_P(NetworkConformance, SendsBeforeOpened) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const Endpoint there = listen(b);
  std::vector<std::string> sent;
  std::uint64_t bytes = 0;
  const ConnectionId id = a.network->connect(there, Lane::kControl);
  for (const std::size_t size : {5U, 0U, 100000U, 1U}) {
    sent.push_back(pattern(size, sent.size()));
    bytes += size;
    a.network->send(id, frame_of(sent.back()));
  }
  EXPECT_TRUE(a.events.empty());
  const auto written = [&] {
    std::uint64_t total = 0;
    for (const Written& one : a.all<Written>()) total += one.bytes;
    return total;
  };
  ASSERT_TRUE(
      world_->run_until([&] { return b.all<Received>().size() == sent.size() && written() == bytes; }));
  EXPECT_EQ(frames(b, b.all<Accepted>()[0].connection), sent);
  EXPECT_TRUE(std::holds_alternative<Opened>(a.events[0]));

  Recorder& c = start("c");
  Endpoint nobody = there;
  nobody.port = 1;
  const ConnectionId never = c.network->connect(nobody, Lane::kControl);
  c.network->send(never, frame_of("lost"));
  ASSERT_TRUE(world_->run_until([&] { return !c.events.empty(); }));
  c.network->send(never, frame_of("lost"));
  (void)join(c, b, there);
  EXPECT_EQ(c.all<Closed>().size(), 1U);
  EXPECT_TRUE(c.all<Written>().empty());
}

// An opener that closes before the connection is open hears of it once, and none of its messages arrives. (A
// thread that is interrupted may come too late to close before; then it tries again.)
TEST_P(NetworkConformance, ClosesBeforeOpened) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const Endpoint there = listen(b);
  std::size_t opened = 0;
  for (std::size_t tries = 1; tries <= 20; ++tries) {
    const ConnectionId id = a.network->connect(there, Lane::kControl);
    a.network->send(id, frame_of("x"));
    a.network->close(id);
    ASSERT_TRUE(world_->run_until([&] { return a.all<Closed>().size() == tries; }));
    if (a.all<Opened>().size() == opened) break;
    opened = a.all<Opened>().size();
  }
  const std::size_t closed = a.all<Closed>().size();
  ASSERT_LT(opened, closed);
  (void)join(a, b, there);
  EXPECT_EQ(a.all<Closed>().size(), closed);
  EXPECT_EQ(a.all<Opened>().size(), opened + 1);
  EXPECT_LE(b.all<Received>().size(), opened);
}

// Written counts every byte sent, once.
TEST_P(NetworkConformance, WrittenCountsBytes) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const ConnectionPair pair = join(a, b, listen(b));
  std::uint64_t sent = 0;
  for (std::size_t i = 0; i < 50; ++i) {
    sent += i * 1000;
    a.network->send(pair.opener, frame_of(pattern(i * 1000, i)));
  }
  const auto written = [&] {
    std::uint64_t total = 0;
    for (const Written& one : a.all<Written>()) total += one.bytes;
    return total;
  };
  ASSERT_TRUE(world_->run_until([&] { return written() >= sent && count(b, pair.acceptor) == 50; }));
  EXPECT_EQ(written(), sent);
}

// A receiver that does not consume stops the sender after a bounded number of bytes. It loses nothing when it
// goes on.
TEST_P(NetworkConformance, BackPressure) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const ConnectionPair pair = join(a, b, listen(b));
  b.consumes = false;
  constexpr std::size_t kFrame = Network::kMaxFrameBytes;
  constexpr std::size_t kFrames = 512;
  const std::string text = pattern(kFrame, 1);
  const Slice shared = Slice::of(text);
  for (std::size_t i = 0; i < kFrames; ++i) a.network->send(pair.opener, {shared});
  const std::uint64_t bound = Network::kReadAhead + Network::kMaxFrameBytes;
  const std::uint64_t cost = Network::cost({shared});
  // Another connection works meanwhile, which shows that time has passed.
  Recorder& c = start("c");
  const ConnectionPair beside = join(c, a, listen(a));
  for (int i = 0; i < 20; ++i) {
    c.network->send(beside.opener, frame_of("ping"));
    ASSERT_TRUE(
        world_->run_until([&] { return count(a, beside.acceptor) == static_cast<std::size_t>(i) + 1; }));
  }
  // A part of one more frame may have come.
  ASSERT_TRUE(world_->run_until([&] { return (count(b, pair.acceptor) + 1) * cost >= Network::kReadAhead; }));
  EXPECT_LE(count(b, pair.acceptor) * cost, bound);
  EXPECT_LT(a.all<Written>().size(), kFrames);
  b.network->consumed(pair.acceptor, count(b, pair.acceptor) * cost);
  b.consumes = true;
  ASSERT_TRUE(world_->run_until([&] { return count(b, pair.acceptor) == kFrames; }));
  for (const std::string& frame : frames(b, pair.acceptor)) ASSERT_TRUE(frame == text);
}

// A receiver of nothing but empty frames, or frames of one byte, stops the sender, too. They fill no memory
// either.
TEST_P(NetworkConformance, BackPressureOfSmallFrames) {
  constexpr std::size_t kMost = Network::kReadAhead / Network::kFrameCost + 1;
  for (const std::size_t size : {0U, 1U}) {
    Recorder& a = start("a" + std::to_string(size));
    Recorder& b = start("b" + std::to_string(size));
    const ConnectionPair pair = join(a, b, listen(b));
    b.consumes = false;
    const std::string text(size, 'x');
    for (std::size_t i = 0; i < 2 * kMost; ++i) a.network->send(pair.opener, frame_of(text));
    const std::size_t bound = kMost * Network::kFrameCost / (Network::kFrameCost + size) + 1;
    ASSERT_TRUE(world_->run_until([&] { return b.events.size() + 2 >= bound; }));
    // Another connection shows that time has passed.
    (void)join(b, a, listen(a));
    EXPECT_LE(count(b, pair.acceptor), bound);
    b.network->consumed(pair.acceptor, count(b, pair.acceptor) * (Network::kFrameCost + size));
    b.consumes = true;
    ASSERT_TRUE(world_->run_until([&] { return count(b, pair.acceptor) == 2 * kMost; }));
  }
}

// An opener is told once, by the address it used, that nobody listens there, or only for another lane.
TEST_P(NetworkConformance, NobodyListens) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const Endpoint bulk = listen(b, Lane::kBulk);
  Endpoint free = bulk;
  free.port = 1;
  for (const Endpoint& at : {free, bulk}) {
    const std::size_t before = a.all<Closed>().size();
    const ConnectionId id = a.network->connect(at, Lane::kControl);
    ASSERT_TRUE(world_->run_until([&] { return a.all<Closed>().size() > before; }));
    const Closed closed = a.all<Closed>().back();
    EXPECT_EQ(closed.connection, id);
    EXPECT_THAT(closed.reason.message(),
                HasSubstr(GetParam() == NetworkKind::kSim ? at.host : to_string(at)));
  }
  EXPECT_TRUE(a.all<Opened>().empty());
  EXPECT_TRUE(b.all<Accepted>().empty());
}

// An address that is taken, or not of this machine, is refused by name.
TEST_P(NetworkConformance, CannotListen) {
  Recorder& a = start("a");
  const Endpoint taken = listen(a);
  for (const Endpoint& at : {taken, Endpoint{"192.0.2.7", 0}}) {
    const auto bound = a.network->listen(at, Lane::kControl);
    ASSERT_FALSE(bound.ok());
    EXPECT_EQ(bound.error().where, to_string(at));
    EXPECT_THAT(bound.error().what, HasSubstr("cannot listen"));
    EXPECT_FALSE(bound.error().fix.empty());
  }
}

// close() ends a connection at both ends. Nothing comes after Closed, and later messages are dropped.
TEST_P(NetworkConformance, CloseIsLast) {
  for (const bool opener_closes : {true, false}) {
    Recorder& a = start(opener_closes ? "a1" : "a2");
    Recorder& b = start(opener_closes ? "b1" : "b2");
    const ConnectionPair pair = join(a, b, listen(b));
    for (int i = 0; i < 10; ++i) {
      a.network->send(pair.opener, frame_of("x"));
      b.network->send(pair.acceptor, frame_of("y"));
    }
    if (opener_closes) {
      a.network->close(pair.opener);
      a.network->close(pair.opener);
    } else {
      b.network->close(pair.acceptor);
      b.network->close(pair.acceptor);
    }
    ASSERT_TRUE(world_->run_until([&] { return !a.all<Closed>().empty() && !b.all<Closed>().empty(); }));
    a.network->send(pair.opener, frame_of("late"));
    b.network->send(pair.acceptor, frame_of("late"));
    // Another connection shows that time has passed.
    Recorder& c = start(opener_closes ? "c1" : "c2");
    (void)join(c, b, listen(b));
    (void)join(c, a, listen(a));
    for (const auto& [process, id] : {std::pair{&a, pair.opener}, std::pair{&b, pair.acceptor}}) {
      bool closed = false;
      for (const NetworkEvent& event : process->events) {
        const ConnectionId of = std::visit(
            [](const auto& one) {
              if constexpr (requires { one.connection; }) return one.connection;
              return ConnectionId{};
            },
            event);
        if (of != id) continue;
        EXPECT_FALSE(closed) << process->name;
        closed = closed || std::holds_alternative<Closed>(event);
      }
      EXPECT_TRUE(closed) << process->name;
    }
  }
}

// A process that ends takes its connections with it, and its peers are told.
TEST_P(NetworkConformance, ProcessEnds) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  const ConnectionPair to_b = join(a, b, listen(b));
  const ConnectionPair from_b = join(b, a, listen(a));
  b.network.reset();
  ASSERT_TRUE(world_->run_until([&] { return a.all<Closed>().size() == 2; }));
  std::map<ConnectionId, int> closed;
  for (const Closed& one : a.all<Closed>()) ++closed[one.connection];
  EXPECT_EQ(closed[to_b.opener], 1);
  EXPECT_EQ(closed[from_b.acceptor], 1);
}

// The connections of a process are independent. One that nobody consumes holds up no other, of the same lane
// or another.
TEST_P(NetworkConformance, ConnectionsAreIndependent) {
  Recorder& a = start("a");
  Recorder& b = start("b");
  Recorder& c = start("c");
  const ConnectionPair stuck = join(a, b, listen(b, Lane::kBulk), Lane::kBulk);
  const ConnectionPair control = join(a, c, listen(c));
  b.consumes = false;
  const Slice block = Slice::of(pattern(Network::kMaxFrameBytes, 2));
  for (int i = 0; i < 320; ++i) a.network->send(stuck.opener, {block});
  for (std::size_t i = 0; i < 30; ++i) {
    a.network->send(control.opener, frame_of("beat"));
    ASSERT_TRUE(world_->run_until([&] { return count(c, control.acceptor) == i + 1; }));
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, NetworkConformance,
                         ::testing::Values(NetworkKind::kPlain, NetworkKind::kTls, NetworkKind::kSim),
                         [](const auto& test) { return name(test.param); });

// A certificate of another authority, at whichever end, makes no connection. Only with TLS.
TEST_P(NetworkTest, ForeignCertificate) {
  Recorder& ours = start("ours", 0);
  Recorder& foreign = start("foreign", 1);
  const std::array<std::pair<Recorder*, Endpoint>, 2> tries{
      {{&foreign, listen(ours)}, {&ours, listen(foreign)}}};
  for (const auto& [opener, at] : tries) {
    (void)opener->network->connect(at, Lane::kControl);
    ASSERT_TRUE(world_->run_until([&] { return opener->all<Closed>().size() == 1; }));
    EXPECT_TRUE(opener->all<Opened>().empty());
  }
  EXPECT_TRUE(ours.all<Accepted>().empty());
  EXPECT_TRUE(foreign.all<Accepted>().empty());
}
INSTANTIATE_TEST_SUITE_P(Tls, NetworkTest, ::testing::Values(NetworkKind::kTls),
                         [](const auto& test) { return name(test.param); });

}  // namespace
}  // namespace gossamer::host
