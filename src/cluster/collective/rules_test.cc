// SPDX-License-Identifier: Apache-2.0
//
// Peers that break the rules. Each is named, counts as lost, and harms nothing else.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "cluster/collective/collectives.h"
#include "cluster/collective/test_members.h"

namespace gossamer::cluster {
namespace {

using ::testing::HasSubstr;

net::Message message(wire::Collective::Kind kind, std::uint64_t number, std::size_t bytes,
                     wire::Collective::Operation operation = wire::Collective::ALL_REDUCE,
                     std::uint64_t view = 5, std::uint64_t id = 1) {
  wire::Collective body;
  body.set_view(view);
  body.set_id(id);
  body.set_operation(operation);
  body.set_kind(kind);
  body.set_number(number);
  return {.channel = 3, .body = body.SerializeAsString(), .payload = {Slice::of(std::string(bytes, '\0'))}};
}

net::Message grant(std::uint64_t number) {
  net::Message made = message(wire::Collective::GRANT, number, 0);
  made.payload.clear();
  return made;
}

// A message that a peer may not send ends the view, with an error that names the peer and the fault. Here
// rank 0 of three is in an all-reduce of 48 + 32 + 32 bytes in two rounds. It gets three chunks from each, in
// a window of four.
TEST(Rules, EachFaultNamesThePeer) {
  using wire::Collective;
  struct Fault {
    std::vector<net::Message> messages;
    std::string text;
  };
  const std::vector<Fault> faults = {
      {{{.channel = 3, .body = "\xff\xff", .payload = {}}}, "2 bytes that are none"},
      {{message(Collective::UNKNOWN, 0, 16)}, "a message of kind 0"},
      {{message(static_cast<Collective::Kind>(77), 0, 16)}, "a message of kind 77"},
      {{message(Collective::PART, 0, 16, Collective::ALL_GATHER)}, "operation kind 1"},
      {{message(Collective::PART, 0, 16, Collective::NONE)}, "operation kind 0"},
      {{message(Collective::PART, 1, 16)}, "chunk 1; expected chunk 0"},
      {{message(Collective::PART, 0, 16), message(Collective::PART, 0, 16)}, "chunk 0; expected chunk 1"},
      {{message(Collective::PART, 0, 15)}, "15 bytes in chunk 0; expected 16"},
      {{message(Collective::PART, 0, 17)}, "17 bytes in chunk 0; expected 16"},
      {{message(Collective::PART, 0, 16), message(Collective::PART, 1, 16), message(Collective::PART, 2, 16),
        message(Collective::PART, 3, 16)},
       "chunk 3; expected chunk 3, with 3 of 3 granted"},
      {{message(Collective::SUM, 2, 16)}, "chunk 2; expected chunk 0"},
      {{message(Collective::SUM, 0, 12)}, "12 bytes in chunk 0"},
      {{grant(2)}, "a GRANT of 2 chunks; expected more than 2, at most 2"},
      {{grant(~0ULL)}, "a GRANT of 18446744073709551615 chunks"},
      {{message(Collective::GRANT, 3, 16)}, "a GRANT with a payload"},
  };
  Rng rng(1, Purpose::kTest);
  const Job job = make_job(OperationKind::kAllReduce, {12, 8, 8}, rng);
  for (const bool early : {false, true}) {
    for (const Fault& fault : faults) {
      SCOPED_TRACE(fault.text + (early ? ", early" : ""));
      Members members(3, 1);
      members.install(view_of(3));
      if (!early) members.begin(0, 1, job);
      for (const net::Message& one : fault.messages) members.on(0, peer_of(2), one);
      if (early) members.begin(0, 1, job);
      ASSERT_EQ(members.broken.size(), 1U);
      EXPECT_EQ(members.broken[0].peer, peer_of(2));
      EXPECT_EQ(members.broken[0].error.kind, ErrorKind::kBadData);
      EXPECT_THAT(members.broken[0].error.message(), HasSubstr("node-12"));
      EXPECT_THAT(members.broken[0].error.message(), HasSubstr(fault.text));
      EXPECT_EQ(members.outcomes[0][1].times, 1);
      EXPECT_EQ(members.outcomes[0][1].lost, peer_of(2));
      EXPECT_EQ(members.at(0).held_bytes(), 0U);
      members.on(0, peer_of(1), message(Collective::PART, 0, 16));
      EXPECT_EQ(members.at(0).held_bytes(), 0U);
    }
  }
}

// A chunk beyond the window is refused, however much the stream has left.
TEST(Rules, TheWindowIsKept) {
  Rng rng(1, Purpose::kTest);
  const Job job = make_job(OperationKind::kReduceScatter, {400, 400, 400}, rng);
  Members members(3, 1);
  members.install(view_of(3));
  members.begin(0, 1, job);
  for (std::uint64_t chunk = 0; chunk < 5; ++chunk) {
    ASSERT_TRUE(members.broken.empty()) << chunk;
    members.on(0, peer_of(2), message(wire::Collective::PART, chunk, 16, wire::Collective::REDUCE_SCATTER));
  }
  ASSERT_EQ(members.broken.size(), 1U);
  EXPECT_THAT(members.broken[0].error.message(), HasSubstr("with 4 of 100 granted"));
}

// A peer outside the view that its message names harms no operation, and is named.
TEST(Rules, Strangers) {
  Rng rng(1, Purpose::kTest);
  const Job job = make_job(OperationKind::kAllReduce, {1, 1, 1}, rng);
  const net::PeerId stranger{peer_of(1).node, Incarnation{1}};
  Members members(3, 1);
  members.install(view_of(3));
  members.on(0, stranger, message(wire::Collective::PART, 0, 12));
  for (std::size_t rank = 0; rank < 3; ++rank) members.begin(rank, 1, job);
  members.on(0, stranger, message(wire::Collective::PART, 0, 12));
  members.on(0, peer_of(0), message(wire::Collective::PART, 0, 12));
  ASSERT_EQ(members.broken.size(), 3U);
  EXPECT_EQ(members.broken[0].peer, stranger);
  EXPECT_THAT(members.broken[0].error.message(), HasSubstr("incarnation 1; expected one from a member"));
  members.deliver_all();
  EXPECT_EQ(members.outcomes[1][1].result, job.expected[1]);
  EXPECT_EQ(members.outcomes[2][1].result, job.expected[2]);
}

// The bytes that one peer sends for later operations and views are bounded. The bound counts for each peer
// alone, and a peer beyond it is named.
TEST(Rules, TooFarAhead) {
  CollectiveLimits limits = small_limits();
  limits.early_bytes = 1000;
  Members members(3, 1, limits);
  members.install(view_of(3));
  for (const std::size_t rank : {1U, 2U}) {
    for (std::uint64_t view = 6; view < 9; ++view) {
      members.on(0, peer_of(rank),
                 message(wire::Collective::PART, 0, 16, wire::Collective::ALL_REDUCE, view));
    }
  }
  EXPECT_TRUE(members.broken.empty());
  const std::uint64_t each = net::counted_bytes(message(wire::Collective::PART, 0, 16));
  EXPECT_EQ(members.at(0).held_bytes(), 6 * each);
  members.on(0, peer_of(2), message(wire::Collective::PART, 0, 16));
  ASSERT_EQ(members.broken.size(), 1U);
  EXPECT_EQ(members.broken[0].peer, peer_of(2));
  EXPECT_THAT(members.broken[0].error.message(),
              HasSubstr(fmt::format("too far ahead: got {} bytes", 4 * each)));
  // The blamed peer counts as lost, and what it has sent goes with it. Messages dropped with an earlier view
  // make room.
  EXPECT_EQ(members.at(0).held_bytes(), 3 * each);
  members.install(0, view_of(3, 8));
  EXPECT_EQ(members.at(0).held_bytes(), each);
}

// Claim: a peer may be four windows of 4 chunks of 1 MiB ahead in a run, though each message counts 256
// bytes more. One chunk more is too far.
TEST(Rules, FarAhead) {
  Members members(3, 1, CollectiveLimits{});
  members.install(view_of(3));
  net::Message chunk = message(wire::Collective::PART, 0, std::size_t{1} << 20);
  for (int i = 0; i < 4 * 4; ++i) members.on(0, peer_of(2), chunk);
  EXPECT_TRUE(members.broken.empty());
  members.on(0, peer_of(2), chunk);
  EXPECT_EQ(members.broken.size(), 1U);
}

// Claim: a peer that never grants what it is to be sent, and goes on all the same, is named with its next
// message. So what others keep for it does not heap up.
TEST(Rules, WhoGoesOnWithoutAResult) {
  using wire::Collective;
  Rng rng(1, Purpose::kTest);
  const Job job = make_job(OperationKind::kAllToAll, {400, 400, 400}, rng);
  for (const bool early : {false, true}) {
    Members members(3, 1, small_limits(), std::less<>());
    members.install(view_of(3));
    members.begin(0, 1, job);
    members.begin(1, 1, job);
    members.deliver_all();
    for (std::uint64_t chunk = 0; chunk < 25; ++chunk)
      members.on(0, peer_of(2), message(Collective::PART, chunk, 16, Collective::ALL_TO_ALL));
    EXPECT_TRUE(members.outcomes[0][1].completed);
    EXPECT_EQ(members.at(0).under_way(), 1U) << "21 chunks are not granted";
    if (!early) members.begin(0, 2, job);
    EXPECT_TRUE(members.broken.empty());
    members.on(0, peer_of(2), message(Collective::PART, 0, 16, Collective::ALL_TO_ALL, 5, 2));
    if (early) members.begin(0, 2, job);
    ASSERT_EQ(members.broken.size(), 1U);
    EXPECT_EQ(members.broken[0].peer, peer_of(2));
    EXPECT_THAT(members.broken[0].error.message(), HasSubstr("goes on without the result"));
    EXPECT_EQ(members.at(0).under_way(), 0U);
  }
}

// Claim: members that begin each operation with the result of the one before are never named, in whatever
// order messages of different members come.
TEST(Rules, WhoWaitsForResultsIsNotNamed) {
  for (const OperationKind kind : {OperationKind::kAllGather, OperationKind::kReduceScatter,
                                   OperationKind::kAllReduce, OperationKind::kAllToAll}) {
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      Rng rng(seed, Purpose::kTest);
      const Job job = make_job(kind, {400, 400, 0, 24}, rng);
      Members members(4, seed, small_limits(), std::less<>());
      members.install(view_of(4));
      constexpr std::uint64_t kOperations = 6;
      std::vector<std::uint64_t> begun(4, 0);
      do {
        for (std::size_t rank = 0; rank < 4; ++rank) {
          if (begun[rank] < kOperations &&
              (begun[rank] == 0 || members.outcomes[rank][begun[rank]].completed))
            members.begin(rank, ++begun[rank], job);
        }
      } while (members.deliver_any());
      ASSERT_TRUE(members.broken.empty()) << seed;
      for (std::size_t rank = 0; rank < 4; ++rank)
        ASSERT_EQ(members.outcomes[rank][kOperations].result, job.expected[rank]) << seed;
    }
  }
}

// Claim: a body counts with all that it has, also if that is tens of thousands of fields that nobody knows.
// It would be kept with the message: bodies of 64 KiB that count for nothing are 4.25 GiB of a peer.
TEST(Rules, BodiesCount) {
  Members members(3, 1, CollectiveLimits{});
  members.install(view_of(3));
  net::Message large = message(wire::Collective::PART, 0, 1);
  while (large.body.size() < 60'000) large.body += std::string("\x78\x01", 2);
  const std::uint64_t most = CollectiveLimits{}.early_bytes / large.body.size();
  std::uint64_t sent = 0;
  for (; members.broken.empty() && sent < 2 * most; ++sent) members.on(0, peer_of(2), large);
  ASSERT_EQ(members.broken.size(), 1U);
  EXPECT_EQ(members.broken[0].peer, peer_of(2));
  EXPECT_LE(sent, most + 1);
  EXPECT_EQ(members.at(0).held_bytes(), 0U);
}

// Claim: what peers have sent that are no members is forgotten once these are gone, before something of
// another one is kept. Nobody reports them as lost, and a node may have many lives.
TEST(Rules, NothingIsKeptOfTheGone) {
  std::uint64_t lives = 200;
  Collectives member({.self = peer_of(0), .channel = 3, .gone = [&](net::PeerId peer) {
                        return peer.node == NodeId(99) && peer.incarnation < Incarnation(lives);
                      }});
  const auto later = [&](net::PeerId from) {
    CollectiveEvents events;
    member.on(from, message(wire::Collective::PART, 0, 16, wire::Collective::ALL_REDUCE, 9), events);
    EXPECT_TRUE(events.empty());
  };
  later(peer_of(1));
  const std::uint64_t of_one = member.held_bytes();
  for (; lives < 210; ++lives) {
    for (int i = 0; i < 5; ++i) later({NodeId(99), Incarnation(lives)});
    EXPECT_EQ(member.held_bytes(), 6 * of_one) << lives;
  }
  later(peer_of(2));
  EXPECT_EQ(member.held_bytes(), 2 * of_one);
}

// Claim: what a lost peer has sent for later views goes with it, whether it is a member or not. Many lives of
// a node heap up nothing. What others have sent stays.
TEST(Rules, NothingIsKeptOfTheLost) {
  Members members(3, 1);
  members.install(view_of(3));
  const auto later = [&](net::PeerId from) {
    members.on(0, from, message(wire::Collective::PART, 0, 16, wire::Collective::ALL_REDUCE, 9));
  };
  later(peer_of(1));
  const std::uint64_t of_one = members.at(0).held_bytes();
  for (std::uint64_t life = 100; life < 110; ++life) {
    const net::PeerId stranger{NodeId(99), Incarnation(life)};
    for (int i = 0; i < 5; ++i) later(stranger);
    CollectiveEvents events;
    members.at(0).lost(stranger, events);
    EXPECT_TRUE(events.empty());
    EXPECT_EQ(members.at(0).held_bytes(), of_one);
  }
  later(peer_of(2));
  members.lost(0, 2);
  EXPECT_EQ(members.at(0).held_bytes(), of_one);
}

}  // namespace
}  // namespace gossamer::cluster
