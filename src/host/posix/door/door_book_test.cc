// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/door_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "base/rng.h"
#include "host/api/question.h"

namespace gossamer::host {
namespace {

using Guests = DoorBook::State;
using Room = DoorBook::Room;

constexpr DoorLimits kSmall{.unread = 8, .unread_of_host = 4, .questions = 6, .questions_of_host = 3};
constexpr Duration kInstant{1};

PeerAddress host(std::uint8_t number) {
  PeerAddress address;
  address.bytes[0] = number;
  return address;
}

class Book : public ::testing::Test {
 protected:
  std::optional<GuestId> come(std::uint8_t from) { return book_.accept(++last_, host(from), now_); }
  DoorBook::Place ask(std::uint8_t from) {
    static_cast<void>(come(from));
    book_.asks(last_);
    return book_.asked(last_, now_);
  }

  DoorBook book_{kSmall};
  GuestId last_;
  Instant now_;
};

// One host's newcomer takes the place of that host's oldest guest, whatever state it has.
TEST_F(Book, AHostPushesOutItsOwn) {
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(come(1));
  book_.asks(GuestId{1});
  book_.handed_over(GuestId{2}, now_);
  EXPECT_EQ(come(1), GuestId{1});
  EXPECT_EQ(come(1), GuestId{2});
  EXPECT_FALSE(come(2));
}

// 20,000 newcomers of hosts that flood, and now and then one of a host that does not: it has its place until
// it has asked. A model in the test names the guest that has to go: the oldest of the host with the most.
TEST_F(Book, NoHostPushesOutOneWithFewer) {
  Rng rng(7, Purpose::kTest);
  std::map<std::uint8_t, std::deque<GuestId>> unread;
  std::size_t all = 0;
  for (int i = 0; i < 20'000; ++i) {
    const bool quiet = rng.below(50) == 0;
    const auto from = static_cast<std::uint8_t>(quiet ? 9 : 1 + rng.below(3));
    if (quiet && !unread[9].empty()) continue;
    const auto leaves = come(from);
    if (unread[from].size() == kSmall.unread_of_host) {
      ASSERT_EQ(leaves, unread[from].front());
      unread[from].pop_front();
      --all;
    } else if (all == kSmall.unread) {
      const auto most = std::ranges::max_element(unread, {}, [](const auto& u) { return u.second.size(); });
      ASSERT_EQ(leaves, most->second.front());
      ASSERT_NE(most->first, 9);
      most->second.pop_front();
      --all;
    } else {
      ASSERT_FALSE(leaves);
    }
    unread[from].push_back(last_);
    ++all;
    ASSERT_EQ(book_.size(), all);
    // The quiet host's guest asks in the end, and is known.
    if (!unread[9].empty() && rng.below(40) == 0) {
      book_.remove(unread[9].front());
      unread[9].pop_front();
      --all;
    }
  }
}

// A guest has 5 s from its accept for all that it says, and gRPC's handshake has its own 5 s. A question
// waits as long as any may, and its answer has 5 s.
TEST_F(Book, Times) {
  static_cast<void>(come(1));
  static_cast<void>(come(1));
  static_cast<void>(come(1));
  book_.asks(GuestId{2});
  now_ = now_ + from_seconds(3);
  book_.handed_over(GuestId{3}, now_);
  EXPECT_EQ(book_.next_over(), Instant{} + kReadTime);
  EXPECT_TRUE(book_.over(Instant{kReadTime.ns - 1}).empty());
  using Over = std::vector<std::pair<GuestId, Guests>>;
  EXPECT_EQ(book_.over(Instant{} + kReadTime),
            (Over{{GuestId{1}, Guests::kAccepted}, {GuestId{2}, Guests::kAsking}}));
  EXPECT_EQ(book_.over(now_ + kShowTime), (Over{{GuestId{3}, Guests::kHandedOver}}));
  EXPECT_EQ(ask(1).room, Room::kGiven);
  EXPECT_EQ(book_.next_over(), now_ + kMaxQuestionTime);
  now_ = now_ + kInstant;
  book_.answered(last_, now_);
  EXPECT_EQ(book_.next_over(), now_ + kAnswerTime);
  EXPECT_EQ(book_.over(now_ + kAnswerTime), (Over{{last_, Guests::kAnswering}}));
  EXPECT_FALSE(book_.next_over());
  EXPECT_EQ(book_.size(), 0U);
}

// A question has a place of its own: unread guests do not push it out, and it makes room for them.
TEST_F(Book, QuestionsHavePlacesOfTheirOwn) {
  EXPECT_EQ(ask(1).room, Room::kGiven);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(come(1));
  EXPECT_EQ(come(1), GuestId{2});
  EXPECT_EQ(book_.make_room(), GuestId{3});
  while (book_.make_room()) {
  }
  EXPECT_EQ(book_.size(), 1U);
}

// A host with its share of questions is told so. Where all places are taken, a host that has none gets the
// place of the oldest of the fullest host. Two hosts with as many do not push each other out in turns.
TEST_F(Book, QuestionsOfAHost) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(1).room, Room::kGiven);
  EXPECT_EQ(ask(1).room, Room::kBusy);
  book_.remove(last_);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(2).room, Room::kGiven);
  const DoorBook::Place third = ask(3);
  EXPECT_EQ(third.room, Room::kGiven);
  EXPECT_EQ(third.leaves, GuestId{1});
  EXPECT_EQ(ask(1).room, Room::kBusy);
  EXPECT_EQ(ask(2).room, Room::kBusy);
  EXPECT_EQ(ask(3).leaves, GuestId{5});
  // One that was told so is an unread guest still, and ends as one.
  EXPECT_EQ(ask(1).room, Room::kBusy);
  EXPECT_EQ(book_.over(now_ + kAnswerTime).back(), (std::pair{last_, Guests::kAnswering}));
}

// Strangers never get more than three eighths of the descriptors, of which each unread guest takes two.
TEST(DoorLimits, FollowDescriptors) {
  for (const std::uint64_t descriptors : {256U, 1024U, 4096U, 20'000U, 1U << 20U}) {
    const DoorLimits limits = door_limits(descriptors);
    EXPECT_LE(2 * limits.unread + limits.questions, descriptors * 3 / 8);
    EXPECT_GE(limits.unread_of_host, 8U) << descriptors;
    EXPECT_LT(limits.unread_of_host, limits.unread);
    EXPECT_GE(limits.questions_of_host, 8U) << descriptors;
    EXPECT_LT(limits.questions_of_host, limits.questions);
  }
  EXPECT_EQ(door_limits(20'000).questions, kMaxStrangersQuestions);
  EXPECT_EQ(door_limits(20'000).questions_of_host, kMaxFromOneHost);
}

}  // namespace
}  // namespace gossamer::host
