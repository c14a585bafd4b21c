// SPDX-License-Identifier: Apache-2.0
//
// What comes early is bounded, of each peer and of all together (docs/protocols/collective.md, "The bound of
// what is kept").
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cluster/collective/collectives.h"
#include "cluster/collective/test_members.h"

namespace gossamer::cluster {
namespace {

constexpr std::uint64_t kMiBytes = 1ULL << 20;

net::Message early_part(std::uint64_t number, std::uint64_t bytes, std::uint64_t view, std::uint64_t id) {
  wire::Collective body;
  body.set_view(view);
  body.set_id(id);
  body.set_operation(wire::Collective::ALL_REDUCE);
  body.set_kind(wire::Collective::PART);
  body.set_number(number);
  return {.channel = 3, .body = body.SerializeAsString(), .payload = {Slice::of(std::string(bytes, '\0'))}};
}

// A view in which rank 0 has begun nothing. Limits are small, and those of one peer wide.
CollectiveLimits bounded(std::uint64_t of_one, std::uint64_t of_all) {
  CollectiveLimits limits = small_limits();
  limits.early_bytes = of_one;
  limits.all_early_bytes = of_all;
  return limits;
}

// Claim: many peers that each stay within their own bound make a member hold no more than the bound of all
// together. The one with most goes first, and none is blamed.
TEST(Early, AllTogetherAreBounded) {
  const std::uint64_t each = net::counted_bytes(early_part(1, 16, 6, 1));
  Members members(9, 1, bounded(6 * each, 10 * each));
  members.install(view_of(9));
  std::uint64_t most_held = 0;
  // Later views, so that nothing of it can be of use before an Install.
  for (std::uint64_t round = 0; round < 5; ++round) {
    for (std::size_t rank = 1; rank < 9; ++rank) {
      members.on(0, peer_of(rank), early_part(1 + round, 16, 6, 1));
      most_held = std::max(most_held, members.at(0).held_bytes());
    }
  }
  EXPECT_EQ(most_held, 10 * each);
  EXPECT_TRUE(members.broken.empty());
  EXPECT_FALSE(members.kept_too_much.empty());
}

// Claim: the peer with most counts as lost, also if another one has sent the last message. What others have
// sent stays, and operations fail as with any loss.
TEST(Early, TheLargestIsParted) {
  const std::uint64_t each = net::counted_bytes(early_part(1, 16, 6, 1));
  Rng rng(1, Purpose::kTest);
  const Job job = make_job(OperationKind::kAllReduce, {12, 8, 8, 8}, rng);
  Members members(4, 1, bounded(100 * each, 7 * each));
  members.install(view_of(4));
  members.begin(0, 1, job);
  for (std::uint64_t number = 0; number < 5; ++number)
    members.on(0, peer_of(2), early_part(1 + number, 16, 6, 1));
  members.on(0, peer_of(1), early_part(1, 16, 6, 1));
  members.on(0, peer_of(3), early_part(1, 16, 6, 1));
  EXPECT_TRUE(members.kept_too_much.empty());
  members.on(0, peer_of(3), early_part(1, 16, 6, 1));
  ASSERT_EQ(members.kept_too_much, std::vector<net::PeerId>{peer_of(2)});
  EXPECT_TRUE(members.broken.empty());
  EXPECT_EQ(members.at(0).held_bytes(), 3 * each);
  EXPECT_EQ(members.outcomes[0][1].times, 1);
  EXPECT_EQ(members.outcomes[0][1].lost, peer_of(2));
}

// Claim: a peer outside the view is parted likewise, and no operation of the view fails for it.
TEST(Early, StrangersCountToo) {
  const std::uint64_t each = net::counted_bytes(early_part(1, 16, 6, 1));
  Rng rng(1, Purpose::kTest);
  const Job job = make_job(OperationKind::kAllReduce, {12, 8, 8}, rng);
  Members members(3, 1, bounded(100 * each, 4 * each));
  members.install(view_of(3));
  members.begin(0, 1, job);
  const net::PeerId joins{NodeId{99}, Incarnation{900}};
  for (std::uint64_t number = 0; number < 3; ++number) members.on(0, joins, early_part(1 + number, 16, 6, 1));
  members.on(0, peer_of(1), early_part(1, 16, 6, 1));
  members.on(0, peer_of(2), early_part(1, 16, 6, 1));
  ASSERT_EQ(members.kept_too_much, std::vector<net::PeerId>{joins});
  EXPECT_EQ(members.at(0).held_bytes(), 2 * each);
  EXPECT_EQ(members.outcomes[0][1].times, 0);
}

// Claim: what an operation takes when it begins, and what is forgotten with an earlier view, makes room for
// others.
TEST(Early, RoomComesBack) {
  const std::uint64_t each = net::counted_bytes(early_part(1, 16, 6, 1));
  Rng rng(1, Purpose::kTest);
  const Job job = make_job(OperationKind::kAllReduce, {12, 8, 8}, rng);
  Members members(3, 1, bounded(100 * each, 4 * each));
  members.install(view_of(3));
  for (std::uint64_t round = 0; round < 20; ++round) {
    const std::uint64_t view = 5 + round;
    members.on(0, peer_of(1), early_part(0, 16, view, 1));
    members.on(0, peer_of(2), early_part(1, 16, view, 2));
    members.begin(0, 1, job);
    EXPECT_EQ(members.at(0).held_bytes(), each) << "the other one is added";
    members.on(0, peer_of(1), early_part(1, 16, view, 2));
    members.install(0, view_of(3, view + 1));
    EXPECT_EQ(members.at(0).held_bytes(), 0U) << round;
  }
  EXPECT_TRUE(members.kept_too_much.empty());
}

// Claim: an honest member never meets either bound: four windows of all peers fit, in a view of any size.
TEST(Early, FourWindowsOfAllFit) {
  const CollectiveLimits limits;
  for (std::size_t n = 2; n <= 2049; ++n) {
    const std::uint64_t chunk = chunk_size(limits, n);
    const std::uint64_t counted = net::counted_bytes(early_part(~0ULL, 0, ~0ULL, ~0ULL)) + chunk;
    const std::uint64_t of_one = 4 * window_chunks(limits, n) * counted;
    ASSERT_LE(of_one, limits.early_bytes) << n;
    ASSERT_LE((n - 1) * of_one, limits.all_early_bytes) << n;
    ASSERT_LE((n - 1) * window_chunks(limits, n) * chunk, 64 * kMiBytes) << n;
    ASSERT_TRUE(chunk == kMiBytes || n > 33) << n;
    ASSERT_EQ(chunk % (16U << 10), 0U) << n;
  }
  EXPECT_EQ(chunk_size(limits, 100'000), 16U << 10);
}

// Claim: members of a large view, of which one is four operations behind, end all of them, and nobody is
// parted: chunks are smaller there.
TEST(Early, OneOfManyIsBehind) {
  CollectiveLimits limits = small_limits();
  limits.chunk_bytes = 64;
  limits.waiting_bytes = 8 * 2 * 16;
  limits.early_bytes = 4 * 4 * (64 + 300);
  limits.all_early_bytes = 4 * 8 * (2 * (16 + 300) + 300);  // with a GRANT for each
  Rng rng(1, Purpose::kTest);
  const Job job = make_job(OperationKind::kAllGather, std::vector<std::uint64_t>(9, 400), rng);
  ASSERT_EQ(chunk_size(limits, 9), 16U);
  Members members(9, 1, limits);
  members.install(view_of(9));
  for (std::uint64_t id = 1; id <= 4; ++id) {
    for (std::size_t rank = 1; rank < 9; ++rank) members.begin(rank, id, job);
    members.deliver_all();
  }
  EXPECT_GT(members.at(0).held_bytes(), limits.all_early_bytes / 2);
  for (std::uint64_t id = 1; id <= 4; ++id) members.begin(0, id, job);
  members.deliver_all();
  for (std::uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(members.outcomes[0][id].result, job.expected[0]);
  EXPECT_TRUE(members.kept_too_much.empty() && members.broken.empty());
}

}  // namespace
}  // namespace gossamer::cluster
