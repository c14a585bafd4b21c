// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/fleet_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "learn/sparse/network/row_order.h"

namespace gossamer::commands {
namespace {

std::size_t shards_at(std::size_t labels, unsigned shift) {
  return (labels + (std::size_t{1} << shift) - 1) >> shift;
}

// Shards are at least 16 for each node and 64 in all, and half as many would be too few. Few labels
// have as many shards as they can.
TEST(FleetPlan, ShardsAreAsLargeAsTheyMayBe) {
  for (const std::size_t labels : {1U, 2U, 63U, 512U, 513U, 5000U, 223'969U, 670'091U}) {
    for (std::size_t nodes = 1; nodes <= 64; ++nodes) {
      const unsigned shift = fleet_shard_shift(labels, nodes);
      const std::size_t wanted = std::max<std::size_t>(64, 16 * nodes);
      if (shards_at(labels, sparse::kSmallestShardShift) < wanted) {
        EXPECT_EQ(shift, sparse::kSmallestShardShift) << labels << " labels, " << nodes << " nodes";
        continue;
      }
      EXPECT_GE(shards_at(labels, shift), wanted) << labels << " labels, " << nodes << " nodes";
      EXPECT_LT(shards_at(labels, shift + 1), wanted) << labels << " labels, " << nodes << " nodes";
    }
  }
  EXPECT_EQ(fleet_shard_shift(670'091, 4), 13U);
}

// The network and its copies count once, however many nodes there are. Each node has a log of its own,
// of the steps since a snapshot.
TEST(FleetPlan, MemoryGrowsWithNodesByWhatEachHas) {
  sparse_engine::TrainConfig config;
  config.optimizer.moments = sparse_engine::MomentsKind::kElement;
  const sparse_engine::DataShape shape{.records = 100'000,
                                       .features = 50'000,
                                       .labels = 200'000,
                                       .feature_entries = 1'000'000,
                                       .label_entries = 300'000};
  sparse_engine::Recipe recipe{.hidden = 128, .steps = 10};
  const auto needed = [&](std::size_t nodes) { return fleet_memory_needed(config, recipe, shape, nodes); };
  const std::uint64_t network = std::uint64_t{3} * 4 * 128 * 250'000;
  EXPECT_GT(needed(1), network);
  EXPECT_GT(needed(2), 2 * network);
  EXPECT_EQ(needed(4) - needed(3), needed(3) - needed(2));
  EXPECT_LT(needed(3) - needed(2), network);
  const std::uint64_t before = needed(2);
  recipe.steps = 11;
  EXPECT_EQ(needed(2) - before, 2 * config.train.batch * (2 * 128 * 2 + 2 * 4));
  recipe.steps = 1000;
  const std::uint64_t long_run = needed(2);
  recipe.steps = 1'000'000;
  EXPECT_EQ(needed(2), long_run);
}

// A snapshot is made every 16 to 96 steps. Small batches take 98,304 samples for it, and large networks
// the steps that exchange a quarter of their parameters. The steps are fewer where the log would be more
// than a quarter of the network.
TEST(FleetPlan, SnapshotsAreRareWhereTheNetworkIsLarge) {
  const auto steps = [](std::size_t labels, std::size_t batch, net::Codec codec = net::Codec::kBf16) {
    sparse_engine::TrainConfig config;
    config.train.batch = static_cast<std::uint32_t>(batch);
    config.cluster.codec = codec;
    return snapshot_steps(config, {.features = 1000, .labels = labels, .hidden = 128});
  };
  EXPECT_EQ(steps(100, 256), 16U);
  EXPECT_EQ(steps(224'000, 256), 384U);
  EXPECT_EQ(steps(224'000, 1024), 96U);
  EXPECT_EQ(steps(800'000, 256), 788U);
  EXPECT_EQ(steps(800'000, 1024), 197U);
  EXPECT_EQ(steps(800'000, 4096), 96U);
  EXPECT_EQ(steps(800'000, 32), 1024U);
  EXPECT_EQ(steps(60'000, 256), 177U);  // 94 MB; 0.13 MB a step
  EXPECT_EQ(steps(60'000, 256, net::Codec::kF32), 89U);
  EXPECT_EQ(steps(60'000, 256, net::Codec::kInt8), 329U);
  EXPECT_EQ(steps(60'000, 512), 88U);
}

// Copies are as many as cluster.copies says, and no more than other nodes. Each takes memory, and so do
// the steps between two snapshots.
TEST(FleetPlan, CopiesAndSnapshotsTakeMemory) {
  sparse_engine::TrainConfig config;
  config.optimizer.moments = sparse_engine::MomentsKind::kElement;
  const sparse_engine::DataShape shape{.records = 100'000,
                                       .features = 50'000,
                                       .labels = 200'000,
                                       .feature_entries = 1'000'000,
                                       .label_entries = 300'000};
  const sparse_engine::Recipe recipe{.hidden = 128, .steps = 1'000'000};
  const auto needed = [&](std::uint32_t copies) {
    config.cluster.copies = copies;
    return fleet_memory_needed(config, recipe, shape, 4);
  };
  EXPECT_GT(needed(1), needed(0));
  EXPECT_EQ(needed(3) - needed(2), needed(1) - needed(0));
  EXPECT_EQ(needed(63), needed(3));
  EXPECT_EQ(fleet_copies(config, 1), 0U);
  EXPECT_EQ(fleet_copies(config, 4), 3U);
  EXPECT_EQ(fleet_copies(config, 64), 63U);
  const std::uint64_t shares = needed(1);
  config.cluster.exchange = sparse_engine::ExchangeKind::kDslide;
  // There are three labels a record. Four nodes keep and read all of their scores.
  EXPECT_GT(needed(1) - shares, std::uint64_t{4} * 3 * 256 * 256 * (4 + 8));
  config.cluster.exchange = sparse_engine::ExchangeKind::kShares;
  config.cluster.snapshot_every = 20;
  const std::uint64_t before = needed(1);
  config.cluster.snapshot_every = 21;
  EXPECT_EQ(needed(1) - before, 2 * 4 * config.train.batch * (2 * 128 * 2 + 2 * 4));
}

}  // namespace
}  // namespace gossamer::commands
