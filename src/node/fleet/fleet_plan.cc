// SPDX-License-Identifier: Apache-2.0
#include "node/fleet/fleet_plan.h"

#include <algorithm>

#include "engines/sparse/fleet/fleet_job.h"
#include "engines/sparse/negatives_plan.h"
#include "learn/sparse/row_order.h"

namespace gossamer::node {
namespace {

constexpr std::size_t kShardsOfNode = 16;
constexpr std::size_t kFewestShards = 64;
constexpr std::uint64_t kFloat = 4;
constexpr std::uint64_t kFewestSteps = 16;
// What takes time when a part is computed anew are samples: so many at most. But snapshots must not cost too
// much beside the steps: those of large batches, and those of networks with more than kParametersOfValue
// parameters for each value of h that is exchanged before the next.
constexpr std::uint64_t kMostSamples = 96 * 1024;
constexpr std::uint64_t kLargeSteps = 96;
constexpr std::uint64_t kParametersOfValue = 4;
// A step of a small batch has more beside its samples.
constexpr std::uint64_t kMostSteps = 1024;
// Of the network, before the next snapshot.
constexpr std::uint64_t kLoggedPart = 4;
// Intervals between snapshots: since the last one that all have, and since the next one, which is under way;
// a third one waits for it.
constexpr std::uint64_t kLoggedIntervals = 2;
// For each copy of the network: the last snapshot, the next one, and what of it is on the way at both ends.
constexpr std::uint64_t kForEachCopy = 4;
// Of a row that is searched, beside its bytes.
constexpr std::uint64_t kForEachRow = 32;
// A score that is kept, three of them with row numbers.
constexpr std::uint64_t kForEachScore = 4 + 3 * 8;
// One more while a checkpoint is written.
constexpr std::uint64_t kWritten = 1;

// Columns of all hidden layers.
std::uint64_t hidden_columns(const sparse::NetworkShape& shape) {
  std::uint64_t columns = sparse::row_stride(shape.hidden);
  for (const std::size_t units : shape.dense) columns += sparse::row_stride(units);
  return columns;
}

// Of a step: h and what was added to dh of each layer, as they travel, and two numbers of the partition sum.
std::uint64_t logged_bytes(const engine::TrainConfig& config, const sparse::NetworkShape& shape) {
  const std::uint64_t batch = config.train.batch;
  const net::MatrixShape matrix{.rows = batch, .columns = hidden_columns(shape)};
  return 2 * net::encoded_bytes(engine::exchange_codec(config.cluster.codec), matrix) + 2 * batch * kFloat;
}

// Between two snapshots, whatever memory there is.
std::uint64_t most_steps(std::uint64_t batch, const sparse::NetworkShape& shape) {
  const std::uint64_t values = batch * hidden_columns(shape);
  const std::uint64_t steps =
      std::max(kMostSamples / batch, engine::parameter_count(shape) / (kParametersOfValue * values));
  return std::clamp(steps, kLargeSteps, kMostSteps);
}

// Of a step: what hash tables found (found_records.h).
std::uint64_t found_bytes(const engine::TrainConfig& config, const engine::Recipe& recipe, std::size_t labels,
                          std::size_t nodes) {
  if (!recipe.tables) return 0;
  const sparse::HashNegativeOptions tables =
      engine::hash_negative_options(config, *recipe.tables, recipe.steps);
  const std::uint64_t shards = (labels >> fleet_shard_shift(labels, nodes)) + 1;
  return tables.queries * (2 + tables.found / tables.queries + shards) * sizeof(std::uint32_t);
}

// Where all outputs are exchanged: what a node keeps of its own scores, and all of them as they travel,
// written and read.
std::uint64_t output_bytes(const engine::TrainConfig& config, const engine::DataShape& shape) {
  if (config.cluster.exchange == engine::ExchangeKind::kShares) return 0;
  return engine::active_rows(config, shape) * config.train.batch * kForEachScore;
}

}  // namespace

unsigned fleet_shard_shift(std::size_t labels, std::size_t nodes) {
  return sparse::shard_shift(labels, std::max(kFewestShards, kShardsOfNode * nodes));
}

std::size_t fleet_copies(const engine::TrainConfig& config, std::size_t nodes) {
  return std::min<std::size_t>(config.cluster.copies, nodes - 1);
}

std::vector<std::string_view> codec_names() {
  std::vector<std::string_view> names;
  for (const auto kind : {engine::CodecKind::kF32, engine::CodecKind::kBf16, engine::CodecKind::kInt8})
    names.push_back(net::name(engine::exchange_codec(kind)));
  return names;
}

std::uint64_t trained_bytes(const sparse::NetworkShape& shape) {
  return 3 * kFloat * engine::parameter_count(shape);
}

std::uint64_t snapshot_steps(const engine::TrainConfig& config, const sparse::NetworkShape& shape) {
  if (config.cluster.snapshot_every) return *config.cluster.snapshot_every;
  return std::clamp(trained_bytes(shape) / kLoggedPart / logged_bytes(config, shape), kFewestSteps,
                    most_steps(config.train.batch, shape));
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
  const sparse::NetworkShape trained = engine::network_shape(recipe, shape.features, shape.labels);
  const std::uint64_t batch = config.train.batch;
  const std::uint64_t steps = std::min(recipe.steps, kLoggedIntervals * snapshot_steps(config, trained));
  const std::uint64_t drawn = config.train.sampled > 0 ? shape.labels * std::uint64_t{24} : 0;
  const std::uint64_t logged =
      logged_bytes(config, trained) + found_bytes(config, recipe, shape.labels, nodes);
  const std::uint64_t own = logged * steps + output_bytes(config, shape) +
                            8 * hidden_columns(trained) * batch * kFloat + shape.labels * 2 * kFloat + drawn +
                            (std::uint64_t{64} << 20);
  // The rows as bytes, where members measure what they have trained.
  const bool measured = engine::stays_in_parts(config) && !config.data.test.empty();
  const std::uint64_t search =
      measured ? shape.labels * (sparse::row_stride(trained.last_hidden()) + kForEachRow) : 0;
  return shared + search + (kWritten + kForEachCopy * fleet_copies(config, nodes)) * trained_bytes(trained) +
         nodes * own;
}

}  // namespace gossamer::node
