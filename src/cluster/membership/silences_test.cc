// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/silences.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>

#include "base/rng.h"

namespace gossamer::cluster {
namespace {

constexpr Duration kAfter{3'000'000'000};

// Claim: the silent peers are those that a look at every peer finds, as peers come, go, fall silent and are
// heard.
TEST(Silences, AreThoseOfAFullLook) {
  constexpr std::uint64_t kSeed = 11;
  Rng rng(kSeed, Purpose::kFault, 0);
  Silences silences(kAfter);
  std::map<NodeId, Instant> signs;
  std::set<NodeId> peers;
  std::size_t found = 0;
  for (Instant now; now < Instant{from_seconds(600).ns}; now = now + from_milliseconds(100)) {
    if (rng.below(20) == 0) {
      const NodeId node(rng.below(12));
      if (peers.erase(node) == 0) {
        peers.insert(node);
        signs[node] = now;
      }
      silences.watch(peers, now);
    }
    for (const NodeId node : peers) {
      // Some speak each second, some hardly ever.
      if (rng.below(node.value % 3 == 0 ? 60 : 10) == 0) signs[node] = now;
    }
    std::set<NodeId> expected;
    for (const NodeId node : peers) {
      if (now - signs[node] >= kAfter) expected.insert(node);
    }
    ASSERT_EQ(silences.silent(now, [&](NodeId node) { return signs.at(node); }), expected)
        << "seed " << kSeed << " at " << now.ns << " ns";
    found += expected.size();
  }
  EXPECT_GT(found, 100u);
}

// Claim: peers that are heard each second are looked at once in two seconds, not at each question.
TEST(Silences, LookSeldom) {
  Silences silences(kAfter);
  std::set<NodeId> peers;
  for (std::uint64_t i = 0; i < 1000; ++i) peers.emplace(i);
  Instant now;
  silences.watch(peers, now);
  std::size_t looks = 0;
  constexpr int kSeconds = 20;
  for (int beat = 0; beat < 10 * kSeconds; ++beat) {
    const Instant heard = now + Duration{-(now.ns % from_seconds(1).ns)};
    EXPECT_TRUE(silences
                    .silent(now,
                            [&](NodeId) {
                              ++looks;
                              return heard;
                            })
                    .empty());
    now = now + from_milliseconds(100);
  }
  EXPECT_LE(looks, peers.size() * (kSeconds / 2 + 1));
}

}  // namespace
}  // namespace gossamer::cluster
