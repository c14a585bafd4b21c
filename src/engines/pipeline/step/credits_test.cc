// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/credits.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/rng.h"

namespace gossamer::pipeline {
namespace {

using Grants = std::vector<GrantedCredits::Grant>;
constexpr NodeId kA{2};
constexpr NodeId kB{3};

std::vector<NodeId> nodes(std::uint64_t first, std::size_t count) {
  std::vector<NodeId> all;
  for (std::size_t i = 0; i < count; ++i) all.emplace_back(first + i);
  return all;
}

// Claim: a receiver grants what it has room for, evenly, and at most two to a sender. It grants more once a
// microbatch has come and gone.
TEST(Credits, ReceiversGrantWhatTheyHaveRoomFor) {
  GrantedCredits roomy(nodes(2, 2), {.room = 100});
  EXPECT_EQ(roomy.grant(0), (Grants{{kA, 2}, {kB, 2}}));
  EXPECT_TRUE(roomy.grant(0).empty());
  EXPECT_TRUE(roomy.take(kB));
  EXPECT_EQ(roomy.grant(1), (Grants{{kB, 3}}));

  GrantedCredits tight(nodes(2, 2), {.room = 3});
  EXPECT_EQ(tight.grant(0), (Grants{{kA, 2}, {kB, 1}}));
  EXPECT_TRUE(tight.take(kA));
  EXPECT_TRUE(tight.take(kA));
  EXPECT_TRUE(tight.grant(2).empty()) << "it holds two, and one may come";
  EXPECT_EQ(tight.grant(1), (Grants{{kA, 3}}));
  EXPECT_EQ(tight.grant(0), (Grants{{kB, 2}})) << "the one that was sent less from";
}

// Claim: what comes without a credit is not taken.
TEST(Credits, NothingComesWithoutACredit) {
  GrantedCredits granted(nodes(2, 1), {.room = 1});
  EXPECT_FALSE(granted.take(kA));
  EXPECT_EQ(granted.grant(0), (Grants{{kA, 1}}));
  EXPECT_FALSE(granted.take(kB)) << "not of the stage before";
  EXPECT_TRUE(granted.take(kA));
  EXPECT_FALSE(granted.take(kA));
}

// Claim: a sender takes the receiver with the most credits, of equal ones that to which it has sent less,
// then the lower node.
TEST(Credits, SendersChoose) {
  HeldCredits held(nodes(2, 2));
  EXPECT_TRUE(held.none());
  EXPECT_EQ(held.use(), std::nullopt);
  EXPECT_TRUE(held.granted(kA, 1));
  EXPECT_TRUE(held.granted(kB, 2));
  EXPECT_EQ(held.use(), kB);
  EXPECT_EQ(held.use(), kA) << "equal, and less was sent to it";
  EXPECT_EQ(held.use(), kB);
  EXPECT_TRUE(held.none());
  EXPECT_TRUE(held.granted(kB, 2)) << "said again";
  EXPECT_FALSE(held.granted(kB, 1));
  EXPECT_FALSE(held.granted(NodeId(9), 5));
  EXPECT_FALSE(held.granted(kB, std::uint64_t{1} << 60U)) << "all would go to it";
  EXPECT_EQ(held.use(), std::nullopt);
}

// Claim: whatever members' speeds, all microbatches of a stage come to the next one, no receiver holds more
// than it has room for, and a receiver twice as fast gets about twice as many.
TEST(Credits, FastReceiversGetMore) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed, Purpose::kTest);
    const std::vector<NodeId> senders = nodes(2, 1 + rng.below(4));
    const std::vector<NodeId> receivers = nodes(100, 2);
    const std::uint64_t room = senders.size() + rng.below(6);
    std::vector<GrantedCredits> granted(2, GrantedCredits(senders, {.room = room}));
    std::vector<HeldCredits> held(senders.size(), HeldCredits(receivers));
    std::vector<std::deque<int>> queues(2);
    std::vector<int> done(2);
    std::vector<int> left(senders.size(), 300);
    const int wanted = 300 * static_cast<int>(senders.size());
    for (int time = 0; done[0] + done[1] < wanted; ++time) {
      ASSERT_LT(time, 100'000) << "seed " << seed;
      for (std::size_t to = 0; to < 2; ++to) {
        if (!queues[to].empty() && time % (to == 0 ? 1 : 2) == 0) {
          queues[to].pop_front();
          ++done[to];
        }
        for (const auto& grant : granted[to].grant(queues[to].size()))
          ASSERT_TRUE(held[grant.to.value - 2].granted(receivers[to], grant.total));
      }
      for (std::size_t from = 0; from < senders.size(); ++from) {
        if (left[from] == 0) continue;
        const auto to = held[from].use();
        if (!to) continue;
        --left[from];
        ASSERT_TRUE(granted[to->value - 100].take(senders[from]));
        queues[to->value - 100].push_back(1);
        ASSERT_LE(queues[to->value - 100].size(), room);
      }
    }
    if (senders.size() > 1) {  // one sender alone is slower than both receivers
      EXPECT_NEAR(done[0] / static_cast<double>(done[1]), 2, 0.2) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace gossamer::pipeline
