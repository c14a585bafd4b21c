// SPDX-License-Identifier: Apache-2.0
#include "node/fleet/fleet_plan.h"

#include <algorithm>

#include "engines/sparse/negatives_plan.h"
#include "learn/sparse/row_order.h"

namespace gossamer::node {
namespace {

constexpr std::size_t kShardsOfNode = 16;
constexpr std::size_t kFewestShards = 64;
constexpr std::uint64_t kFloat = 4;
// Since the last snapshot that all have, while the next one is under way (sparse-step.md, "Snapshots").
constexpr std::uint64_t kLoggedSteps = 48;
// Copies of the network: the last snapshot, the next one, and what of it is on the way at both ends.
constexpr std::uint64_t kCopies = 4;

}  // namespace

Result<void> check_fleet_config(const engine::TrainConfig& config) {
  if (!engine::finds_negatives(config)) return {};
  return Error{.kind = ErrorKind::kUsage,
               .where = "train.negatives",
               .what = "several nodes cannot train this yet",
               .got = "negatives found by hash tables",
               .expected = "in-batch, uniform or frequency, without train.hard_negatives",
               .fix = "leave --nodes out to train it in one process"};
}

unsigned fleet_shard_shift(std::size_t labels, std::size_t nodes) {
  return sparse::shard_shift(labels, std::max(kFewestShards, kShardsOfNode * nodes));
}

std::uint64_t trained_bytes(const sparse::NetworkShape& shape) {
  return 3 * kFloat * engine::parameter_count(shape);
}

std::uint64_t fleet_memory_needed(const engine::TrainConfig& config, const engine::Recipe& recipe,
                                  const engine::DataShape& shape, std::size_t nodes) {
  // What one process would need without prediction: its network, and the buffers of a step.
  engine::TrainConfig training = config;
  training.predict.instances = false;
  training.data.test.clear();
  engine::Recipe all = recipe;
  all.held_out = 0;
  const std::uint64_t shared = engine::memory_needed(training, all, shape, 1);
  std::uint64_t widths = sparse::row_stride(recipe.hidden);
  for (const std::uint32_t units : recipe.dense) widths += sparse::row_stride(units);
  const std::uint64_t batch = config.train.batch;
  // h and what was added to dh of each layer, and two numbers of the partition sum.
  const std::uint64_t logged = batch * (2 * widths + 2) * kFloat;
  const std::uint64_t drawn = config.train.sampled > 0 ? shape.labels * std::uint64_t{24} : 0;
  const std::uint64_t own = logged * std::min(recipe.steps, kLoggedSteps) + 8 * widths * batch * kFloat +
                            shape.labels * 2 * kFloat + drawn + (std::uint64_t{64} << 20);
  const std::uint64_t network = trained_bytes(engine::network_shape(recipe, shape.features, shape.labels));
  return shared + (nodes > 1 ? kCopies * network : 0) + nodes * own;
}

}  // namespace gossamer::node
