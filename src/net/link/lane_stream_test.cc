// SPDX-License-Identifier: Apache-2.0
#include "net/link/lane_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "base/rng.h"
#include "net/link/frame.h"

namespace gossamer::net {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kWindow = 1U << 20;

Message message_of(std::uint32_t channel, std::string body, std::string payload) {
  return {.channel = channel, .body = std::move(body), .payload = {Slice::of(std::move(payload))}};
}

Frame decode(Slices bytes) {
  auto frame = decode_frame(std::move(bytes));
  CHECK(frame.ok(), frame.error().message());
  return std::move(*frame);
}

// Both ends of a lane and the frames between them, which take no time.
struct Pair {
  LaneStream a{kWindow};
  LaneStream b{kWindow};

  void connect() {
    const auto from_a = a.tell();
    const auto from_b = b.tell();
    ASSERT_TRUE(a.attach(from_b).ok());
    ASSERT_TRUE(b.attach(from_a).ok());
  }
  // Carries all that `from` would send to `to`; gives the messages that arrive.
  static std::vector<Message> carry(LaneStream& from, LaneStream& to) {
    std::vector<Message> arrived;
    while (auto next = from.next_frame()) {
      const Frame frame = decode(std::move(next->bytes));
      auto message = to.on_data(frame.header.data(), frame.payload, Instant{});
      EXPECT_TRUE(message.ok()) << message.error().message();
      if (message.ok() && message->has_value()) arrived.push_back(std::move(**message));
    }
    return arrived;
  }
};

// Messages of all sizes arrive whole and in order, in pieces within the limit.
TEST(LaneStream, CarriesMessages) {
  Pair pair;
  pair.connect();
  for (const std::size_t size : {0U, 1U, 1000U, 262144U, 262145U, 900000U}) {
    const std::string body(size % 60000, 'b');
    EXPECT_EQ(pair.a.send(message_of(5, body, std::string(size, 'p'))), pair.a.acknowledged() + 1);
    const auto arrived = Pair::carry(pair.a, pair.b);
    ASSERT_EQ(arrived.size(), 1U) << size;
    EXPECT_EQ(arrived[0].channel, 5U);
    EXPECT_EQ(arrived[0].body, body);
    EXPECT_EQ(joined(arrived[0].payload), std::string(size, 'p'));
    pair.b.consumed(counted_bytes(arrived[0]));
    ASSERT_TRUE(pair.a.on_ack(pair.b.tell()).ok());
    EXPECT_EQ(pair.a.queued_bytes(), 0U);
  }
}

// What the receiver's user has not consumed stops the sender at the window. A message larger than the window
// passes.
TEST(LaneStream, WindowStops) {
  Pair pair;
  pair.connect();
  for (int i = 0; i < 20; ++i) pair.a.send(message_of(1, {}, std::string(100000, 'x')));
  auto arrived = Pair::carry(pair.a, pair.b);
  EXPECT_EQ(arrived.size(), kWindow / 100000);
  ASSERT_TRUE(pair.a.on_ack(pair.b.tell()).ok());
  EXPECT_TRUE(Pair::carry(pair.a, pair.b).empty());
  pair.b.consumed(1000000);
  ASSERT_TRUE(pair.a.on_ack(pair.b.tell()).ok());
  EXPECT_EQ(Pair::carry(pair.a, pair.b).size(), 10U);
  pair.b.consumed(1000000);
  pair.a.send(message_of(1, {}, std::string(5 * kWindow, 'y')));
  std::size_t rounds = 0;
  for (arrived.clear(); arrived.empty() && rounds < 100; ++rounds) {
    ASSERT_TRUE(pair.a.on_ack(pair.b.tell()).ok());
    arrived = Pair::carry(pair.a, pair.b);
  }
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(total_bytes(arrived[0].payload), 5 * kWindow);
}

// Messages without a byte are stopped by the window too. The sender counts as queued what the receiver counts
// as received and its user as consumed.
TEST(LaneStream, EmptyMessagesCost) {
  Pair pair;
  pair.connect();
  constexpr std::size_t kMost = kWindow / kMessageCost;
  for (std::size_t i = 0; i < 2 * kMost; ++i) pair.a.send({});
  EXPECT_EQ(pair.a.queued_bytes(), 2 * kWindow);
  for (int half = 0; half < 2; ++half) {
    const auto arrived = Pair::carry(pair.a, pair.b);
    ASSERT_EQ(arrived.size(), kMost);
    EXPECT_EQ(pair.b.received_bytes(), kMost * kMessageCost * static_cast<std::size_t>(half + 1));
    ASSERT_TRUE(pair.a.on_ack(pair.b.tell()).ok());
    EXPECT_FALSE(pair.a.next_frame().has_value());
    pair.b.consumed(kMost * counted_bytes(arrived[0]));
    ASSERT_TRUE(pair.a.on_ack(pair.b.tell()).ok());
  }
  EXPECT_EQ(pair.a.queued_bytes(), 0U);
  // A message taken back before it was sent leaves nothing behind.
  EXPECT_TRUE(pair.a.cancel(pair.a.send({})));
  EXPECT_EQ(pair.a.queued_bytes(), 0U);
}

// Acks are due at once when a quarter of the window was used and consumed, else after the delay, else never.
TEST(LaneStream, AckIsDue) {
  Pair pair;
  pair.connect();
  EXPECT_FALSE(pair.b.ack_due().has_value());
  pair.a.send(message_of(1, "x", {}));
  const Frame frame = decode(pair.a.next_frame()->bytes);
  ASSERT_TRUE(pair.b.on_data(frame.header.data(), frame.payload, Instant{1000}).ok());
  ASSERT_TRUE(pair.b.ack_due().has_value());
  EXPECT_EQ(*pair.b.ack_due(), Instant{1000} + LaneStream::kAckDelay);
  (void)pair.b.tell();
  EXPECT_FALSE(pair.b.ack_due().has_value());
  pair.a.send(message_of(1, {}, std::string(kWindow / 2, 'x')));
  const auto arrived = Pair::carry(pair.a, pair.b);
  pair.b.consumed(counted_bytes(arrived[0]));
  EXPECT_EQ(pair.b.ack_due(), Instant{});
}

// A cancelled message never arrives, whether none, some or all but the last of its frames have left. The
// messages after it do arrive. A message that has left wholly cannot be cancelled.
TEST(LaneStream, Cancel) {
  const std::string large(3 * LaneStream::kPieceBytes, 'c');
  for (int sent = 0; sent <= 3; ++sent) {
    Pair pair;
    pair.connect();
    const MessageNumber number = pair.a.send(message_of(1, "cancelled", large));
    pair.a.send(message_of(2, "kept", "k"));
    std::vector<Message> arrived;
    for (int i = 0; i < sent; ++i) {
      const Frame frame = decode(pair.a.next_frame()->bytes);
      auto message = pair.b.on_data(frame.header.data(), frame.payload, {});
      ASSERT_TRUE(message.ok());
      if (message->has_value()) arrived.push_back(std::move(**message));
    }
    // The body takes a part of the first piece, so three frames do not hold it all.
    EXPECT_TRUE(pair.a.cancel(number)) << sent;
    EXPECT_FALSE(pair.a.cancel(number));
    for (Message& message : Pair::carry(pair.a, pair.b)) arrived.push_back(std::move(message));
    ASSERT_EQ(arrived.size(), 1U) << sent;
    EXPECT_EQ(arrived[0].body, "kept");
    EXPECT_FALSE(pair.a.cancel(number + 1));
    pair.b.consumed(counted_bytes(arrived[0]));
    ASSERT_TRUE(pair.a.on_ack(pair.b.tell()).ok());
    EXPECT_EQ(pair.a.queued_bytes(), 0U);
    // Nothing of the cancelled message counts against the window any more.
    EXPECT_EQ(pair.b.tell().window() - pair.b.received_bytes(), kWindow);
  }
}

// Whatever is lost when connections break at random, each message arrives once and in order, both ways, and
// none is left over.
TEST(LaneStream, SurvivesConnections) {
  constexpr std::uint64_t kSeeds = 300;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, Purpose::kTest);
    Pair pair;
    pair.connect();
    std::array<LaneStream*, 2> ends{&pair.a, &pair.b};
    std::array<std::deque<Slices>, 2> wire;  // what is on the way from each
    std::array<int, 2> sent{};
    std::array<std::vector<std::string>, 2> arrived;
    const auto idle = [&] { return pair.a.queued_bytes() == 0 && pair.b.queued_bytes() == 0; };
    for (int turn = 0; turn < 400 || !(idle() && wire[0].empty() && wire[1].empty()); ++turn) {
      ASSERT_LT(turn, 20000);
      const std::size_t from = rng.below(2);
      LaneStream& here = *ends[from];
      LaneStream& there = *ends[1 - from];
      switch (rng.below(turn < 400 ? 12 : 10)) {
        case 0:
          if (turn < 400)
            here.send(message_of(1, std::to_string(++sent[from]), std::string(rng.below(400000), 'x')));
          break;
        case 10:  // the connection breaks, and what was on the way is gone
          wire[0].clear();
          wire[1].clear();
          pair.connect();
          break;
        case 11:
        case 1:
          if (here.ack_due().has_value()) {
            ASSERT_TRUE(there.on_ack(here.tell()).ok());
          }
          break;
        case 2:
        case 3:
        case 4:
        case 5:
          if (auto frame = here.next_frame()) wire[from].push_back(std::move(frame->bytes));
          break;
        default:
          if (!wire[from].empty()) {
            const Frame frame = decode(std::move(wire[from].front()));
            wire[from].pop_front();
            auto message = there.on_data(frame.header.data(), frame.payload, {});
            ASSERT_TRUE(message.ok()) << message.error().message();
            if (message->has_value()) {
              there.consumed(counted_bytes(**message));
              arrived[from].push_back((*message)->body);
            }
          }
      }
    }
    for (const std::size_t from : {0U, 1U}) {
      ASSERT_EQ(arrived[from].size(), static_cast<std::size_t>(sent[from]));
      for (int i = 0; i < sent[from]; ++i)
        EXPECT_EQ(arrived[from][static_cast<std::size_t>(i)], std::to_string(i + 1));
    }
  }
}

// What a correct peer never sends is refused, in words, and changes nothing.
TEST(LaneStream, RefusesFaults) {
  const auto piece = [](std::uint64_t number) {
    wire::Data data;
    data.set_number(number);
    return data;
  };
  const auto start = [&](std::uint64_t number, std::uint64_t payload_bytes) {
    wire::Data data = piece(number);
    data.mutable_start()->set_payload_bytes(payload_bytes);
    return data;
  };
  const Slices some = {Slice::of(std::string("12345"))};
  Pair pair;
  pair.connect();
  const auto fault = [&](const wire::Data& data, const Slices& payload) {
    const auto result = pair.b.on_data(data, payload, {});
    return result.ok() ? std::string("fine") : result.error().message();
  };
  EXPECT_THAT(fault(start(2, 5), some), HasSubstr("frame 1"));
  EXPECT_THAT(fault(start(0, 5), some), HasSubstr("frame 1"));
  EXPECT_THAT(fault(piece(1), some), HasSubstr("middle of no message"));
  EXPECT_THAT(fault(start(1, 4), some), HasSubstr("5 bytes of payload"));
  EXPECT_THAT(fault(start(1, kMaxPayloadBytes + 1), some), HasSubstr("at most 1073741824"));
  wire::Data small = start(1, 0);
  LaneStream full(2 * LaneStream::kPieceBytes);
  for (std::uint64_t i = 0; i < 2 * LaneStream::kPieceBytes / kMessageCost; ++i) {
    small.set_number(i + 1);
    ASSERT_TRUE(full.on_data(small, {}, {}).ok());
  }
  small.set_number(small.number() + 1);
  EXPECT_THAT(full.on_data(small, {}, {}).error().message(), HasSubstr("in all"));
  EXPECT_THAT(fault(start(1, kWindow + 1), {Slice::of(std::string(kWindow + 1, 'x'))}),
              HasSubstr("at most 1048576 in all"));
  wire::Data cancelled = start(1, 5);
  cancelled.set_cancelled(true);
  EXPECT_THAT(fault(cancelled, {}), HasSubstr("cancelled"));
  EXPECT_THAT(fault(start(1, 10), some), HasSubstr("a piece of 5 bytes"));
  EXPECT_EQ(
      fault(start(1, LaneStream::kPieceBytes + 5), {Slice::of(std::string(LaneStream::kPieceBytes, 'x'))}),
      "fine");
  EXPECT_THAT(fault(start(2, 5), some), HasSubstr("within another"));
  EXPECT_THAT(fault(piece(2), {}), HasSubstr("a piece of 0 bytes"));
  EXPECT_EQ(fault(piece(2), some), "fine");
  EXPECT_EQ(pair.b.tell().received(), 2U);

  pair.a.send(message_of(1, "x", {}));
  (void)pair.a.next_frame();
  wire::Progress ack;
  ack.set_received(2);
  EXPECT_FALSE(pair.a.on_ack(ack).ok());
  ack.set_received(1);
  EXPECT_TRUE(pair.a.on_ack(ack).ok());
  ack.set_received(0);
  EXPECT_FALSE(pair.a.attach(ack).ok());
}

}  // namespace
}  // namespace gossamer::net
