// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/room_tree.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/rng.h"

namespace gossamer::placement {
namespace {

struct Leaf {
  double room;
  std::uint64_t free_bytes;
};

// A member that is found has the memory and the room asked for, and kNowhere means that no member has them.
// In trees of fewer nodes than the patience, it has the most room. This holds for every size up to 33 and any
// sequence of updates and questions.
TEST(RoomTree, AgreesWithLookingAtAll) {
  for (std::size_t members = 1; members <= 33; ++members) {
    Rng rng(members, Purpose::kTest);
    RoomTree tree(members);
    std::vector<Leaf> leaves(members);
    for (Index i = 0; i < members; ++i) {
      leaves[i] = {static_cast<double>(rng.below(20)), rng.below(10)};
      tree.preset(i, leaves[i].room, leaves[i].free_bytes);
    }
    tree.build();
    for (int round = 0; round < 300; ++round) {
      const auto work = static_cast<double>(rng.below(20));
      const std::uint64_t bytes = rng.below(12);
      double most = -1;
      for (const Leaf& leaf : leaves) {
        if (leaf.room >= work && leaf.free_bytes >= bytes) most = std::max(most, leaf.room);
      }
      const Index found = tree.most_room(work, bytes);
      ASSERT_EQ(found == kNowhere, most < 0) << members << " members, round " << round;
      if (found != kNowhere) {
        ASSERT_GE(leaves[found].free_bytes, bytes) << members << " members, round " << round;
        ASSERT_GE(leaves[found].room, work) << members << " members, round " << round;
        ASSERT_TRUE(members > 32 || leaves[found].room == most) << members << " members, round " << round;
      }
      const auto changed = static_cast<Index>(rng.below(members));
      leaves[changed] = {static_cast<double>(rng.below(20)), rng.below(10)};
      tree.set(changed, leaves[changed].room, leaves[changed].free_bytes);
    }
  }
}

// A question looks at no more than two nodes a level if memory is plenty.
TEST(RoomTree, QuestionsAreCheapWhereMemoryIsPlenty) {
  RoomTree tree(1000);
  Rng rng(1, Purpose::kTest);
  for (Index i = 0; i < 1000; ++i) tree.preset(i, static_cast<double>(rng.below(1'000'000)), 9);
  tree.build();
  (void)tree.most_room(1, 9);
  EXPECT_LE(tree.probes(), 2U * 10 + 1);
}

}  // namespace
}  // namespace gossamer::placement
