// SPDX-License-Identifier: Apache-2.0
//
// A relay alone: what it takes, holds and sends, frame by frame.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "net/link/relay.h"

namespace gossamer::net {
namespace {

using host::Lane;
using ::testing::HasSubstr;

wire::FrameHeader relay_open(std::uint64_t number, std::uint64_t to, std::uint64_t from = 0) {
  wire::FrameHeader header;
  header.mutable_relay_open()->set_number(number);
  header.mutable_relay_open()->set_to_node(to);
  header.mutable_relay_open()->set_from_node(from);
  return header;
}
wire::FrameHeader relayed(std::uint64_t number) {
  wire::FrameHeader header;
  header.mutable_relayed()->set_number(number);
  return header;
}

// A relay alone, with connections that nodes 1 and 2 have opened to it. What it sends is fetched by the test.
class LoneRelay : public ::testing::Test {
 protected:
  LoneRelay() {
    relay_.up(kOne, {.peer = NodeId{1}, .lane = Lane::kBulk, .ours = false});
    relay_.up(kTwo, {.peer = NodeId{2}, .lane = Lane::kBulk, .ours = false});
  }
  std::string fault(const wire::FrameHeader& header, Slices payload = {}) {
    const auto done = relay_.on_frame(kOne, {.header = header, .payload = std::move(payload)});
    return done.ok() ? std::string("fine") : done.error().message();
  }
  std::vector<wire::FrameHeader> fetch(host::ConnectionId from) {
    std::vector<wire::FrameHeader> all;
    while (auto frame = relay_.next_frame(from)) all.push_back(decode_frame(std::move(*frame))->header);
    return all;
  }

  static constexpr host::ConnectionId kOne{1};
  static constexpr host::ConnectionId kTwo{2};
  Relay relay_{
      {.self = NodeId{3}, .relays = true, .most_held = {8U << 20, 8U << 20}, .most_held_in_all = 12U << 20}};
};

// Nodes 1 to 6 with connections to the relay, which has room for 12 MiB, 8 MiB of one inner connection.
class FullRelay : public LoneRelay {
 protected:
  FullRelay() {
    for (std::uint64_t node = 4; node <= 6; ++node)
      relay_.up(outer(node), {.peer = NodeId{node}, .lane = Lane::kBulk, .ours = false});
  }
  static host::ConnectionId outer(std::uint64_t node) { return host::ConnectionId{node}; }
  // A node opens an inner connection to another one, or sends so many frames of 80 kB over it.
  void opens(std::uint64_t from, std::uint64_t number, std::uint64_t to) {
    EXPECT_TRUE(relay_.on_frame(outer(from), {.header = relay_open(number, to), .payload = {}}).ok());
  }
  void sends(std::uint64_t from, std::uint64_t number, int frames) {
    for (int frame = 0; frame < frames; ++frame) {
      const Slices large{Slice::of(std::string(80'000, 'x'))};
      EXPECT_TRUE(relay_.on_frame(outer(from), {.header = relayed(number), .payload = large}).ok());
      EXPECT_LE(relay_.held(), 12U << 20);
    }
  }
  // The numbers of the inner connections of which a node is told that they have ended.
  std::vector<std::uint64_t> ended(std::uint64_t node) {
    std::vector<std::uint64_t> numbers;
    for (const wire::FrameHeader& one : fetch(outer(node))) {
      if (one.has_relay_close()) numbers.push_back(one.relay_close().number());
    }
    return numbers;
  }
};

// Claim: the room of all is for a node alone while no other needs it. Counted are the bytes, and 256 for each
// frame. Beyond it the fullest inner connection of the node ends.
TEST_F(FullRelay, IsForOneAlone) {
  for (const std::uint64_t number : {1U, 3U}) opens(1, number, 2);
  sends(1, 1, 56);
  sends(1, 3, 100);
  EXPECT_EQ(relay_.held(), 156 * 80'256U);
  EXPECT_TRUE(ended(1).empty());
  sends(1, 1, 1);
  EXPECT_EQ(relay_.held(), 57 * 80'256U);
  EXPECT_EQ(ended(1), std::vector<std::uint64_t>{3});
}

// Claim: where the fullest half is that of the way back of the frame that comes, the inner connection ends
// with both of its ways, and nothing else does.
TEST_F(FullRelay, TheWayBackIsTheFullest) {
  for (const std::uint64_t number : {1U, 3U}) opens(2, number, 1);
  std::vector<std::uint64_t> there;
  for (const wire::FrameHeader& one : fetch(outer(1))) {
    if (one.has_relay_open()) there.push_back(one.relay_open().number());
  }
  ASSERT_EQ(there.size(), 2U);
  sends(2, 1, 100);
  sends(2, 3, 56);
  sends(1, there[0], 1);
  EXPECT_EQ(relay_.held(), 56 * 80'256U);
  EXPECT_EQ(ended(2), std::vector<std::uint64_t>{1});
}

// Claim: where one receiver reads nothing, and those that send to it fill the room, another pair loses none
// of its frames, however many come.
TEST_F(FullRelay, OneReceiverReadsNothing) {
  for (const std::uint64_t from : {1U, 4U}) {
    opens(from, 1, 2);
    sends(from, 1, 78);
  }
  opens(5, 1, 6);
  int arrived = 0;
  for (int round = 0; round < 20; ++round) {
    sends(5, 1, 10);
    sends(1, 1, 5);  // nothing, if it has ended
    for (const wire::FrameHeader& one : fetch(outer(6))) arrived += one.has_relayed() ? 1 : 0;
    EXPECT_TRUE(fetch(outer(5)).empty());
  }
  EXPECT_EQ(arrived, 200);
  EXPECT_EQ(ended(1).size() + ended(4).size(), 1U);
}

// Claim: what waits for a receiver is a part of the room. It gives way to a sender with less than that,
// although each sender to that receiver has less than this one.
TEST_F(FullRelay, AReceiverHasAPart) {
  for (const std::uint64_t from : {1U, 4U, 5U}) {
    opens(from, 1, 2);
    sends(from, 1, 39);
  }
  opens(6, 1, 1);
  sends(6, 1, 45);
  EXPECT_TRUE(ended(6).empty());
  EXPECT_EQ(ended(1).size() + ended(4).size() + ended(5).size(), 1U);
}

// Claim: likewise what one sender has sent, although each receiver of it has less than another receiver.
TEST_F(FullRelay, ASenderHasAPart) {
  std::uint64_t number = 1;
  for (const std::uint64_t to : {2U, 4U, 5U}) {
    opens(1, number, to);
    sends(1, number, 39);
    number += 2;
  }
  opens(2, 1, 6);
  sends(2, 1, 45);
  EXPECT_EQ(fetch(outer(6)).size(), 46U);
  EXPECT_EQ(ended(1).size(), 1U);
}

// Claim: two nodes that fill the room with what they send each other, or a third one, over as many inner
// connections as they may have, end none of a pair that takes less than an equal part. That one may have a
// fuller inner connection than each of theirs.
TEST_F(FullRelay, NodesThatFillItTogether) {
  for (std::uint64_t i = 0; i < Relay::kMostInnerOfOne; ++i) {
    const std::uint64_t number = 1 + 2 * i;
    opens(1, number, 2);
    sends(1, number, 4);
    opens(4, number, i % 2 == 0 ? 2 : 1);
    sends(4, number, 4);
  }
  opens(5, 1, 6);
  sends(5, 1, 50);
  EXPECT_TRUE(fetch(outer(5)).empty());
  EXPECT_EQ(fetch(outer(6)).size(), 51U);
  EXPECT_FALSE(ended(1).empty());
}

// Claim: of what one sender has there, the pair with the most gives way, and a pair with less stays, although
// its inner connection is the one that comes, and the fullest.
TEST_F(FullRelay, TheFullestPairOfASenderGivesWay) {
  for (const std::uint64_t number : {1U, 3U, 5U}) {
    opens(1, number, 2);
    sends(1, number, 35);
  }
  opens(1, 7, 4);
  sends(1, 7, 60);
  EXPECT_EQ(ended(1).size(), 1U);
  EXPECT_EQ(fetch(outer(4)).size(), 61U);
}

// What a correct peer never sends is a fault; what may have been under way is not.
TEST_F(LoneRelay, Faults) {
  EXPECT_THAT(fault(relay_open(2, 2)), HasSubstr("a higher odd number"));
  EXPECT_THAT(fault(relay_open(0, 2)), HasSubstr("a higher odd number"));
  EXPECT_THAT(fault(relay_open(1, 0)), HasSubstr("one of them"));
  EXPECT_THAT(fault(relay_open(1, 2, 2)), HasSubstr("one of them"));
  EXPECT_THAT(fault(relayed(1)), HasSubstr("one that was opened"));
  EXPECT_EQ(fault(relay_open(1, 2)), "fine");
  EXPECT_THAT(fault(relay_open(1, 2)), HasSubstr("opened after 1"));
  for (const std::uint64_t number : {0U, 2U, 3U})
    EXPECT_THAT(fault(relayed(number)), HasSubstr("was opened"));
  EXPECT_EQ(fault(relay_open(7, 9)), "fine");  // nobody there
  EXPECT_EQ(fault(relayed(7)), "fine");        // sent before the refusal came
  const auto refusals = fetch(kOne);
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_EQ(refusals[0].relay_close().number(), 7U);
  const auto opened = fetch(kTwo);
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].relay_open().from_node(), 1U);
  EXPECT_EQ(opened[0].relay_open().number(), 2U);  // the relay's own, on a connection that it has not opened
}

// A peer that asks and does not read the answers, or opens without end, costs bounded memory.
TEST_F(LoneRelay, Floods) {
  std::uint64_t number = 1;
  while (fault(relay_open(number, 9)) == "fine") {
    number += 2;
    ASSERT_LT(number, 3 * Relay::kMostNotices);
  }
  (void)fetch(kOne);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(fault(relay_open(number += 2, 2)), "fine");
  EXPECT_EQ(fetch(kTwo).size(), Relay::kMostInnerOfOne);
  EXPECT_EQ(fetch(kOne).size(), 1000 - Relay::kMostInnerOfOne);
}

// The same holds where the other end closes what the peer has opened.
TEST_F(LoneRelay, FloodsAndAnotherCloses) {
  for (std::uint64_t number = 1; fault(relay_open(number, 2)) == "fine"; number += 2) {
    ASSERT_LT(number, 3 * Relay::kMostNotices);
    const auto opened = fetch(kTwo);
    ASSERT_EQ(opened.size(), 1U);
    wire::FrameHeader close;
    close.mutable_relay_close()->set_number(opened[0].relay_open().number());
    EXPECT_TRUE(relay_.on_frame(kTwo, {.header = close, .payload = {}}).ok());
  }
}

// Claim: where a node's answers to what others open through the relay pile up, the relay is not at fault. The
// node's memory is bounded still, and it takes connections again once the answers are on their way.
TEST_F(LoneRelay, ARelayIsNotAtFaultForOthers) {
  constexpr std::uint64_t kNobody = 0;
  Relay end({.self = NodeId{3}});  // trusts no relay, so each opening is answered
  end.up(kOne, {.peer = NodeId{1}, .lane = Lane::kBulk, .ours = true});
  const auto opens = [&](std::uint64_t number) {
    return end.on_frame(kOne, {.header = relay_open(number, kNobody, 2), .payload = {}}).ok();
  };
  const auto answers = [&] {
    std::size_t count = 0;
    while (end.next_frame(kOne)) ++count;
    return count;
  };
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 3 * Relay::kMostNotices; ++i) ASSERT_TRUE(opens(number += 2)) << i;
  EXPECT_EQ(answers(), Relay::kMostNotices);
  EXPECT_TRUE(end.on_frame(kOne, {.header = relayed(number), .payload = {}}).ok()) << "it was opened";
  EXPECT_TRUE(opens(number += 2));
  EXPECT_EQ(answers(), 1U);
}

// Beyond what may be held, or with a frame that would not fit into another, an inner connection ends at both
// ends, and others stay.
TEST_F(LoneRelay, HoldsNoMore) {
  const Slices large{Slice::of(std::string(Relay::kMostFrame, 'x'))};
  for (const std::uint64_t number : {1U, 3U, 5U}) EXPECT_EQ(fault(relay_open(number, 2)), "fine");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(fault(relayed(1), large), "fine");
  EXPECT_EQ(relay_.held(), 0U);
  EXPECT_EQ(fault(relayed(3), {Slice::of(std::string(Relay::kMostFrame + 1, 'x'))}), "fine");
  EXPECT_EQ(fault(relayed(5), large), "fine");
  const auto closed = fetch(kOne);
  ASSERT_EQ(closed.size(), 2U);
  EXPECT_EQ(closed[0].relay_close().number(), 1U);
  EXPECT_THAT(closed[0].relay_close().reason(), HasSubstr("cannot hold more"));
  EXPECT_EQ(closed[1].relay_close().number(), 3U);
  const auto passed = fetch(kTwo);
  ASSERT_EQ(passed.size(), 6U);  // three openings, two ends, and the frame of the third
  EXPECT_EQ(passed.back().relayed().number(), 6U);
  relay_.down(kOne);
  ASSERT_EQ(fetch(kTwo).size(), 1U);
}

// Inner connections to the same node take turns.
TEST_F(LoneRelay, TakesTurns) {
  for (const std::uint64_t number : {1U, 3U}) EXPECT_EQ(fault(relay_open(number, 2)), "fine");
  (void)fetch(kTwo);
  for (const std::uint64_t number : {1U, 3U}) {
    for (int i = 0; i < 50; ++i) EXPECT_EQ(fault(relayed(number), {Slice::of(std::string("x"))}), "fine");
  }
  const auto passed = fetch(kTwo);
  ASSERT_EQ(passed.size(), 100U);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(passed[i].relayed().number(), i % 2 == 0 ? 2U : 4U);
}

// A third node sends to node 2, too, and may do so without measure.
class FloodedRelay : public LoneRelay {
 protected:
  FloodedRelay() { relay_.up(kThree, {.peer = NodeId{4}, .lane = Lane::kBulk, .ours = false}); }
  void says(host::ConnectionId from, const wire::FrameHeader& header, Slices payload = {}) {
    const auto done = relay_.on_frame(from, {.header = header, .payload = std::move(payload)});
    EXPECT_TRUE(done.ok()) << done.error().message();
  }
  // Node 4 opens inner connections to node 2, and closes each. At some time it is at fault itself.
  void open_and_close(int times) {
    for (int i = 0; i < times; ++i) {
      static_cast<void>(relay_.on_frame(kThree, {.header = relay_open(number_ += 2, 2), .payload = {}}));
      wire::FrameHeader close;
      close.mutable_relay_close()->set_number(number_);
      static_cast<void>(relay_.on_frame(kThree, {.header = close, .payload = {}}));
    }
  }

  static constexpr host::ConnectionId kThree{3};
  std::uint64_t number_ = 1;
};

// Claim: of what two nodes send to a third one, each has half of the bytes at any moment, although one of
// them has as many inner connections as it may, with frames as large as they may be.
TEST_F(FloodedRelay, SharesByNode) {
  says(kOne, relay_open(1, 2));
  for (int i = 0; i < 100; ++i) says(kOne, relayed(1), {Slice::of(std::string(16'384, 'a'))});
  for (std::size_t i = 0; i < Relay::kMostInnerOfOne; ++i) {
    says(kThree, relay_open(number_ += 2, 2));
    for (int frame = 0; frame < 5; ++frame)
      says(kThree, relayed(number_), {Slice::of(std::string(Relay::kMostFrame, 'x'))});
  }
  std::uint64_t honest = 0;
  std::uint64_t flood = 0;
  while (honest < 100ULL * 16'384) {
    auto sent = relay_.next_frame(kTwo);
    ASSERT_TRUE(sent);
    const std::string bytes = joined(decode_frame(std::move(*sent))->payload);
    if (!bytes.empty()) (bytes.front() == 'a' ? honest : flood) += bytes.size();
    EXPECT_LE(flood, honest + 3 * Relay::kMostFrame);
  }
  EXPECT_GT(flood, honest / 2) << "it has its share, too";
}

// Claim: a node that opens and closes inner connections without end takes half of the line from others, and
// not all of it. A node has 16 inner connections to another at most, and others have room for theirs.
TEST_F(FloodedRelay, OpeningsTakeTurnsToo) {
  for (int i = 0; i < 300; ++i) says(kThree, relay_open(number_ += 2, 2));
  EXPECT_EQ(fetch(kTwo).size(), Relay::kMostInnerOfOne);
  for (std::size_t i = 0; i < Relay::kMostInnerOfOne; ++i) {
    wire::FrameHeader close;
    close.mutable_relay_close()->set_number(3 + 2 * i);
    says(kThree, close);
  }
  (void)fetch(kTwo);
  open_and_close(400);
  says(kOne, relay_open(1, 2));
  for (int i = 0; i < 20; ++i) says(kOne, relayed(1), {Slice::of(std::string(16'384, 'a'))});
  std::uint64_t before_the_last = 0;
  for (int honest = 0; honest < 20;) {
    auto sent = relay_.next_frame(kTwo);
    ASSERT_TRUE(sent);
    if (decode_frame(*std::exchange(sent, {}))->header.kind_case() == wire::FrameHeader::kRelayed) {
      ++honest;
    } else if (honest < 1) {
      ++before_the_last;
    }
  }
  EXPECT_LT(before_the_last, 100U);
}

// Claim: a node at which another one's openings and closings pile up is not at fault for asking itself, and
// others still reach it.
TEST_F(FloodedRelay, NobodyIsAtFaultForOthers) {
  open_and_close(5000);
  says(kTwo, relay_open(1, 1));
  says(kOne, relay_open(1, 2));
  const auto to_two = fetch(kTwo);
  EXPECT_LE(to_two.size(), Relay::kMostNotices + Relay::kMostInnerOfOne + 2);
  const auto of_one = [](const wire::FrameHeader& one) { return one.relay_open().from_node() == 1; };
  EXPECT_EQ(std::ranges::count_if(to_two, of_one), 1);
  EXPECT_EQ(fetch(kOne).front().relay_open().from_node(), 2U);
}

}  // namespace
}  // namespace gossamer::net
