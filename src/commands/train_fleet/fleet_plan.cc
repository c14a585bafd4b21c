// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/fleet_plan.h"

#include <algorithm>

#include "engines/sparse/config/negatives_plan.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "learn/sparse/network/row_order.h"
#include "net/codec/codec.h"

namespace gossamer::commands {
namespace {

constexpr std::size_t kShardsOfNode = 16;
constexpr std::size_t kFewestShards = 64;
constexpr std::uint64_t kFloatBytes = 4;
constexpr std::uint64_t kFewestSteps = 16;
// The time to compute a part anew grows with its samples, so a limit is a number of samples. But snapshots
// must not cost too much beside the steps. So large batches get at least kLargeSteps steps. A network gets
// steps until one value of h was exchanged for every kParametersOfValue parameters.
constexpr std::uint64_t kMostSamples = std::uint64_t{96} * 1024;
constexpr std::uint64_t kLargeSteps = 96;
constexpr std::uint64_t kParametersOfValue = 4;
// A step of a small batch costs more beside its samples, so steps have a limit too.
constexpr std::uint64_t kMostSteps = 1024;
// The log may be 1 / kLoggedPart of the network with moments before the next snapshot.
constexpr std::uint64_t kLoggedPart = 4;
// Intervals between snapshots that the log covers: since the last snapshot that all have, and since the next
// one, which is under way. A third one waits for it.
constexpr std::uint64_t kLoggedIntervals = 2;
// Networks in memory for each copy: the last snapshot, the next one, and what of
// it is on the way at both ends.
constexpr std::uint64_t kForEachCopy = 4;
// Bytes of a row that is searched, beside its elements.
constexpr std::uint64_t kForEachRow = 32;
// Bytes of a score that is kept, and of three more with row numbers.
constexpr std::uint64_t kForEachScore = 4 + 3 * 8;
// One more network while a checkpoint is written.
constexpr std::uint64_t kWritten = 1;

// Columns of all hidden layers.
std::uint64_t hidden_columns(const sparse::NetworkShape& shape) {
  std::uint64_t columns = sparse::row_stride(shape.hidden);
  for (const std::size_t units : shape.dense) columns += sparse::row_stride(units);
  return columns;
}

// Bytes that a step logs: h and what was added to dh of each layer, as they travel, and
// two numbers of the partition sum.
std::uint64_t logged_bytes(const sparse_engine::TrainConfig& config, const sparse::NetworkShape& shape) {
  const std::uint64_t batch = config.train.batch;
  const net::MatrixShape matrix{.rows = batch, .columns = hidden_columns(shape)};
  return 2 * net::encoded_bytes(config.cluster.codec, matrix) + 2 * batch * kFloatBytes;
}

// The most steps between two snapshots, whatever memory there is.
std::uint64_t most_steps(std::uint64_t batch, const sparse::NetworkShape& shape) {
  const std::uint64_t values = batch * hidden_columns(shape);
  const std::uint64_t steps =
      std::max(kMostSamples / batch, sparse_engine::parameter_count(shape) / (kParametersOfValue * values));
  return std::clamp(steps, kLargeSteps, kMostSteps);
}

// Bytes of a step for what hash tables found (found_records.h).
std::uint64_t found_bytes(const sparse_engine::TrainConfig& config, const sparse_engine::Recipe& recipe,
                          std::size_t labels, std::size_t nodes) {
  if (!recipe.tables) return 0;
  const sparse::HashNegativeOptions tables =
      sparse_engine::hash_negative_options(config, *recipe.tables, recipe.steps);
  const std::uint64_t shards = (labels >> fleet_shard_shift(labels, nodes)) + 1;
  return tables.queries * (2 + tables.found / tables.queries + shards) * sizeof(std::uint32_t);
}

// Bytes of a step where all outputs are exchanged: a node's own scores that it keeps, and all scores as
// they travel, written and read.
std::uint64_t output_bytes(const sparse_engine::TrainConfig& config, const sparse_engine::DataShape& shape) {
  if (config.cluster.exchange == sparse_engine::ExchangeKind::kShares) return 0;
  return sparse_engine::active_rows(config, shape) * config.train.batch * kForEachScore;
}

}  // namespace

unsigned fleet_shard_shift(std::size_t labels, std::size_t nodes) {
  return sparse::shard_shift(labels, std::max(kFewestShards, kShardsOfNode * nodes));
}

std::size_t fleet_copies(const sparse_engine::TrainConfig& config, std::size_t nodes) {
  return std::min<std::size_t>(config.cluster.copies, nodes - 1);
}

std::uint64_t trained_bytes(const sparse::NetworkShape& shape) {
  return 3 * kFloatBytes * sparse_engine::parameter_count(shape);
}

std::uint64_t snapshot_steps(const sparse_engine::TrainConfig& config, const sparse::NetworkShape& shape) {
  if (config.cluster.snapshot_every) return *config.cluster.snapshot_every;
  return std::clamp(trained_bytes(shape) / kLoggedPart / logged_bytes(config, shape), kFewestSteps,
                    most_steps(config.train.batch, shape));
}

std::uint64_t fleet_memory_needed(const sparse_engine::TrainConfig& config,
                                  const sparse_engine::Recipe& recipe, const sparse_engine::DataShape& shape,
                                  std::size_t nodes) {
  // The bytes that one process would need without prediction: its network, and the buffers of a step.
  sparse_engine::TrainConfig training = config;
  training.predict.instances = false;
  const std::uint64_t shared = sparse_engine::memory_needed(training, recipe, shape, {});
  const sparse::NetworkShape trained = sparse_engine::network_shape(recipe, shape.features, shape.labels);
  const std::uint64_t batch = config.train.batch;
  const std::uint64_t steps = std::min(recipe.steps, kLoggedIntervals * snapshot_steps(config, trained));
  const std::uint64_t drawn = config.train.sampled > 0 ? shape.labels * std::uint64_t{24} : 0;
  const std::uint64_t logged =
      logged_bytes(config, trained) + found_bytes(config, recipe, shape.labels, nodes);
  const std::uint64_t own = logged * steps + output_bytes(config, shape) +
                            8 * hidden_columns(trained) * batch * kFloatBytes +
                            shape.labels * (2 * kFloatBytes) + drawn + (std::uint64_t{64} << 20);
  // Members that measure what they have trained have the rows as bytes.
  const bool measured = sparse_engine::answers_at_the_end(config, recipe.held_out);
  const std::uint64_t search =
      measured ? shape.labels * (sparse::row_stride(trained.last_hidden()) + kForEachRow) : 0;
  return shared + search + (kWritten + kForEachCopy * fleet_copies(config, nodes)) * trained_bytes(trained) +
         nodes * own;
}

}  // namespace gossamer::commands
