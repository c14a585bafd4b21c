// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/rng.h"
#include "engines/sparse/fleet/recovery/recovery_plan.h"

namespace gossamer::sparse_engine {
namespace {

FleetShape tiny_shape() {
  return {.network = {.features = 60, .labels = 150, .hidden = 250, .dense = {96, 64}}, .shard_shift = 2};
}

void expect_whole(const Cut& cut, std::size_t width, std::size_t block) {
  std::vector<host::Range> runs;
  for (const auto& [node, range] : cut) runs.push_back(range);
  std::ranges::sort(runs, {}, &host::Range::begin);
  std::size_t at = 0;
  for (const host::Range& run : runs) {
    ASSERT_EQ(run.begin, at);
    ASSERT_GT(run.end, run.begin);
    ASSERT_EQ(run.end % block, 0U);
    at = run.end;
  }
  ASSERT_EQ(at, width);
}

// Claim: the runs are the whole layer, in blocks, whatever members come and go. No run is a block more than a
// quarter above its work share. A member without weight has nothing.
TEST(Recut, IsWholeAndBalanced) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed, Purpose::kTest);
    const std::size_t block = rng.below(2) == 0 ? 16 : 32;
    const std::size_t width = block * (1 + rng.below(40));
    Cut cut;
    std::map<NodeId, std::size_t> weights;
    for (int change = 0; change < 8; ++change) {
      std::erase_if(weights, [&](const auto&) { return rng.below(4) == 0; });
      for (std::uint64_t i = 0; i <= rng.below(3); ++i) weights[NodeId(2 + rng.below(12))] = rng.below(30);
      weights[NodeId(20)] = 1 + rng.below(30);
      cut = recut(width, block, cut, weights);
      ASSERT_NO_FATAL_FAILURE(expect_whole(cut, width, block)) << "seed " << seed;
      std::size_t whole = 0;
      for (const auto& [node, weight] : weights) whole += weight;
      for (const auto& [node, range] : cut) {
        const double share = static_cast<double>(width * weights.at(node)) / static_cast<double>(whole);
        EXPECT_LE(static_cast<double>(range.end - range.begin), 1.25 * share + static_cast<double>(block));
        EXPECT_GT(weights.at(node), 0U);
      }
      // Runs that are balanced stay.
      EXPECT_TRUE(std::ranges::equal(recut(width, block, cut, weights), cut,
                                     [](const auto& a, const auto& b) {
                                       return a.first == b.first && a.second.begin == b.second.begin &&
                                              a.second.end == b.second.end;
                                     }))
          << "seed " << seed;
    }
  }
}

// Claim: two members with the same columns divide them. They have the same if one had finished a change, and
// the other had not, when the next came.
TEST(Recut, OverlappingRuns) {
  const Cut cut =
      recut(256, 16, {{NodeId(2), {0, 256}}, {NodeId(3), {128, 256}}}, {{NodeId(2), 1}, {NodeId(3), 1}});
  ASSERT_NO_FATAL_FAILURE(expect_whole(cut, 256, 16));
  EXPECT_EQ(cut.at(NodeId(2)).end, 128U);
}

// Claim: when one of four equal members goes, its neighbours alone take over.
TEST(Recut, NeighboursTakeOver) {
  std::map<NodeId, std::size_t> weights;
  for (std::uint64_t node = 2; node < 6; ++node) weights[NodeId(node)] = 16;
  const Cut before = recut(1024, 16, {}, weights);
  weights.erase(NodeId(3));
  const Cut after = recut(1024, 16, before, weights);
  EXPECT_EQ(after.at(NodeId(2)).end, 384U);
  EXPECT_EQ(after.at(NodeId(4)).begin, 384U);
  EXPECT_EQ(after.at(NodeId(5)).begin, before.at(NodeId(5)).begin);
}

Layout random_layout(const FleetShape& shape, std::size_t members, Rng& rng) {
  Layout layout;
  std::map<NodeId, std::size_t> weights;
  std::vector<std::set<std::size_t>> shards(members);
  for (std::size_t shard = 0; shard < shape.shards(); ++shard) shards[rng.below(members)].insert(shard);
  for (std::size_t rank = 0; rank < members; ++rank) {
    LayoutMember& member = layout.members.emplace_back();
    member.node = NodeId(2 + rank);
    member.after = with_shards(no_part(shape), shape, shards[rank]);
    weights[member.node] = shards[rank].size();
  }
  for (std::size_t layer = 0; layer < shape.layers(); ++layer) {
    for (const auto& [node, range] : recut(shape.width(layer), shape.block(layer), {}, weights))
      columns_of(layout.members[*layout.rank_of(node)].after, layer) = range;
  }
  return layout;
}

// Claim: every piece has as many keepers as are wanted and possible, and its holder is none of them. Members
// that had a copy keep it. No member keeps many more copies than others.
TEST(AssignCopies, SpreadsAndStays) {
  const FleetShape shape = tiny_shape();
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed, Purpose::kTest);
    const std::size_t members = 2 + rng.below(6);
    const std::size_t copies = 1 + rng.below(3);
    Layout layout = random_layout(shape, members, rng);
    assign_copies(layout, shape, copies);
    std::map<PieceId, std::size_t> keepers;
    std::size_t most = 0;
    for (const LayoutMember& member : layout.members) {
      const Pieces own = pieces_of(shape, member.after);
      most = std::max(most, member.copies_after.size());
      for (const PieceId& piece : member.copies_after) {
        EXPECT_FALSE(own.contains(piece));
        ++keepers[piece];
      }
    }
    std::size_t pieces = shape.shards();
    for (std::size_t layer = 0; layer < shape.layers(); ++layer)
      pieces += shape.width(layer) / shape.block(layer);
    EXPECT_EQ(keepers.size(), pieces);
    std::size_t whole = 0;
    for (const auto& [piece, count] : keepers) {
      EXPECT_EQ(count, std::min(copies, members - 1));
      whole += count;
    }
    EXPECT_LE(most, 2 * whole / members + 4) << "seed " << seed;
    const Layout before = layout;
    for (LayoutMember& member : layout.members) member.copies_before = member.copies_after;
    assign_copies(layout, shape, copies);
    for (std::size_t rank = 0; rank < members; ++rank)
      EXPECT_EQ(layout.members[rank].copies_after, before.members[rank].copies_after) << "seed " << seed;
  }
}

// Claim: a member that holds nothing keeps copies only where no other member is left for them, even if it had
// all of them before.
TEST(AssignCopies, IdleMembersComeLast) {
  const FleetShape shape = tiny_shape();
  Rng rng(1, Purpose::kTest);
  Layout layout = random_layout(shape, 3, rng);
  LayoutMember& idle = layout.members.emplace_back();
  idle.node = NodeId(9);
  idle.after = no_part(shape);
  idle.copies_before = pieces_of(shape, sparse::whole(shape.network, shape.shard_shift));
  for (const std::size_t copies : {1U, 2U}) {
    assign_copies(layout, shape, copies);
    EXPECT_TRUE(layout.members.back().copies_after.empty()) << copies;
  }
  assign_copies(layout, shape, 3);
  EXPECT_EQ(layout.members.back().copies_after.size(), all_pieces(shape));
}

// Claim: a layout comes back from its bytes as it was. Bytes that are no layout are refused.
TEST(Layout, SurvivesItsBytes) {
  const FleetShape shape = tiny_shape();
  Rng rng(1, Purpose::kTest);
  Layout layout = random_layout(shape, 4, rng);
  layout.resume = StepNumber(31);
  layout.base = StepNumber(16);
  layout.members[1].before = layout.members[2].after;
  layout.members[1].applied = StepNumber(30);
  layout.members[3].copies_before = {{0, 3}, {2, 1}, {3, 37}};
  assign_copies(layout, shape, 2);
  const std::string bytes = write_layout(layout);
  const auto read = read_layout(bytes, shape);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(write_layout(*read), bytes);
  EXPECT_EQ(read->members[3].copies_before, layout.members[3].copies_before);
  EXPECT_FALSE(read_layout("no layout", shape).ok());
  FleetShape smaller = shape;
  smaller.network.labels = 100;
  EXPECT_FALSE(read_layout(bytes, smaller).ok());
  // Layouts that no workload decides.
  const auto refused = [&](auto spoil) {
    Layout spoilt = layout;
    spoil(spoilt);
    return !read_layout(write_layout(spoilt), shape).ok();
  };
  EXPECT_TRUE(refused([](Layout& one) { std::swap(one.resume, one.base); }));
  EXPECT_TRUE(refused([](Layout& one) { std::swap(one.members[0], one.members[1]); }));
  EXPECT_TRUE(refused([](Layout& one) { one.members[1].applied = StepNumber(29); }));
  EXPECT_TRUE(refused([](Layout& one) { one.members[1].applied = StepNumber(32); }));
  EXPECT_TRUE(refused([](Layout& one) { one.members[0].after = one.members[1].after; }));
  EXPECT_TRUE(refused([&](Layout& one) { one.members[2].after = no_part(shape); }));
}

// Claim: every piece that a member is to hold is either kept, moved or computed anew. Lost pieces are fetched
// from where copies are; the member's own copy comes first.
TEST(RecoveryPlan, AccountsForEveryPiece) {
  const FleetShape shape = tiny_shape();
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed, Purpose::kTest);
    const std::size_t members = 2 + rng.below(5);
    Layout layout = random_layout(shape, members, rng);
    const Layout old = random_layout(shape, members + rng.below(2), rng);
    layout.resume = StepNumber(20);
    layout.base = StepNumber(16);
    for (std::size_t rank = 0; rank < members; ++rank) {
      if (rng.below(3) != 0) layout.members[rank].before = old.members[rank].after;
      layout.members[rank].applied = StepNumber(19 + rng.below(2));
      for (std::size_t shard = 0; shard < shape.shards(); ++shard) {
        if (rng.below(2) == 0) layout.members[rank].copies_before.insert({shape.layers(), shard});
      }
    }
    const RecoveryPlan plan = plan_recovery(layout, shape);
    std::vector<Pieces> got(members);
    const auto add = [&](std::size_t rank, const sparse::NetworkPiece& piece) {
      for (const PieceId& id : pieces_of(shape, part_of(shape, piece)))
        EXPECT_TRUE(got[rank].insert(id).second) << "seed " << seed;
    };
    for (const RecoveryPlan::Lost& lost : plan.lost) add(lost.rank, lost.piece);
    for (const RecoveryPlan::Move& move : plan.moves) {
      EXPECT_NE(move.from, move.to);
      add(move.to, move.piece);
    }
    for (std::size_t rank = 0; rank < members; ++rank) {
      const LayoutMember& member = layout.members[rank];
      Pieces want = pieces_of(shape, member.after);
      if (member.before) {
        for (const PieceId& piece : pieces_of(shape, *member.before)) want.erase(piece);
      }
      EXPECT_EQ(got[rank], want) << "seed " << seed;
      EXPECT_EQ(plan.behind[rank], member.before && member.applied < layout.resume);
    }
    for (const RecoveryPlan::Fetch& fetch : plan.fetches) {
      EXPECT_TRUE(layout.members[fetch.from].copies_before.contains(fetch.piece));
      EXPECT_EQ(fetch.from == fetch.to, layout.members[fetch.to].copies_before.contains(fetch.piece));
    }
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
