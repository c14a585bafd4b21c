// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network/network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/small_pages.h"

namespace gossamer::sparse {
namespace {

// The size of the part of [begin, end) below n.
std::size_t size_within(host::Range range, std::size_t n) {
  return std::min(range.end, n) - std::min(range.begin, n);
}

// Whether others hold shards that lie between those of `part`.
bool scattered(const NetworkPart& part) {
  for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) {
    if (!part.rows.holds(shard)) return true;
  }
  return false;
}

// The rows of each shard but the last, which may be short.
std::size_t rows_of_shard(const NetworkPart& part) {
  const host::Range first = part.rows.rows_of(0);
  return first.end - first.begin;
}

// Asks for small pages in an array with a number for each output row, where the part's shards are scattered.
void expect_scattered(std::span<float> array, const NetworkShape& shape, const NetworkPart& part) {
  if (scattered(part))
    use_small_pages_of_runs(std::as_writable_bytes(array), shape.labels, rows_of_shard(part));
}

}  // namespace

DenseLayer::DenseLayer(RowTableShape shape, Moments moments)
    : weights(shape, moments), bias(row_stride(shape.rows)) {
  CHECK(shape.rows % 16 == 0, shape.rows);
  if (moments == Moments::kNone) return;
  bias_moment1 = AlignedArray<float>(bias.size());
  bias_moment2 = AlignedArray<float>(bias.size());
}

std::uint64_t DenseLayer::bytes() const {
  return weights.bytes() + sizeof(float) * (bias.size() + bias_moment1.size() + bias_moment2.size());
}

NetworkPart whole(const NetworkShape& shape, unsigned shard_shift) {
  NetworkPart part = {
      .columns = {0, row_stride(shape.hidden)}, .units = {}, .rows = {shape.labels, shard_shift}};
  for (const std::size_t units : shape.dense) part.units.push_back({0, row_stride(units)});
  return part;
}

Network::Network(NetworkShape network_shape, NetworkPart held, TableMoments moments)
    : shape(std::move(network_shape)),
      part(std::move(held)),
      embedding({.rows = shape.features, .width = size_within(part.columns, shape.hidden)},
                moments.embedding),
      output({.rows = shape.labels, .width = shape.last_hidden()}, moments.output),
      bias(shape.labels) {
  const bool trained = moments.embedding != Moments::kNone;
  CHECK(trained == (moments.output != Moments::kNone));
  CHECK(part.columns.begin % kColumnBlock == 0 && part.columns.end % kColumnBlock == 0);
  CHECK(part.units.size() == shape.dense.size(), part.units.size(), shape.dense.size());
  if (scattered(part)) output.expect_scattered_runs(rows_of_shard(part));
  expect_scattered(bias.span(), shape, part);
  std::size_t inputs = shape.hidden;
  for (std::size_t i = 0; i < shape.dense.size(); ++i) {
    CHECK(part.units[i].begin % kUnitBlock == 0 && part.units[i].end % kUnitBlock == 0);
    dense.emplace_back(RowTableShape{.rows = size_within(part.units[i], shape.dense[i]), .width = inputs},
                       trained ? Moments::kElement : Moments::kNone);
    inputs = shape.dense[i];
  }
  if (!trained) return;
  bias_moment1 = AlignedArray<float>(shape.labels);
  bias_moment2 = AlignedArray<float>(shape.labels);
  for (AlignedArray<float>* const array : {&bias_moment1, &bias_moment2})
    expect_scattered(array->span(), shape, part);
}

std::uint64_t Network::bytes() const {
  const std::size_t scalars = bias.size() + bias_moment1.size() + bias_moment2.size();
  std::uint64_t total = embedding.bytes() + output.bytes() + sizeof(float) * scalars;
  for (const DenseLayer& layer : dense) total += layer.bytes();
  return total;
}

void Network::drop_moments() {
  embedding.drop_moments();
  output.drop_moments();
  for (DenseLayer& layer : dense) {
    layer.weights.drop_moments();
    layer.bias_moment1 = {};
    layer.bias_moment2 = {};
  }
  bias_moment1 = {};
  bias_moment2 = {};
}

void initialize(Network& network, const NetworkInit& init, std::span<const std::uint32_t> count_of_row,
                host::Compute& compute) {
  CHECK(count_of_row.size() == network.shape.labels, count_of_row.size(), network.shape.labels);
  initialize_normal(network.embedding, {0, network.embedding.rows()},
                    {.stddev = init.embedding_stddev,
                     .seed = init.seed,
                     .purpose = Purpose::kEmbeddingInit,
                     .first_column = network.part.columns.begin},
                    compute);
  for (std::size_t i = 0; i < network.dense.size(); ++i) {
    RowTable& weights = network.dense[i].weights;
    initialize_normal(weights, {0, weights.rows()},
                      {.stddev = init.dense_gain / std::sqrt(static_cast<float>(weights.width())),
                       .seed = init.seed,
                       .purpose = Purpose::kDenseInit,
                       .layer = static_cast<std::uint32_t>(i),
                       .first_row = network.part.units[i].begin},
                      compute);
  }
  const HeldRows& held = network.part.rows;
  for (std::size_t shard = 0; shard < held.shards(); ++shard) {
    if (!held.holds(shard)) continue;
    const host::Range rows = held.rows_of(shard);
    initialize_normal(network.output, rows,
                      {.stddev = init.output_stddev,
                       .seed = init.seed,
                       .purpose = Purpose::kOutputInit,
                       .streams = network.order.labels()},
                      compute);
    for (std::size_t row = rows.begin; row < rows.end; ++row) {
      if (network.output.has_moments() && network.output.last_step(row) != 0) continue;
      network.bias[row] = count_of_row[row] == 0 ? kUnseenBias : 0.0F;
    }
  }
}

void order_by_label(Network& network) {
  CHECK(!network.output.has_moments());
  const HeldRows& held = network.part.rows;
  for (std::size_t shard = 0; shard < held.shards(); ++shard) CHECK(held.holds(shard), shard);
  if (network.order.identity()) return;
  RowTable& output = network.output;
  std::vector<std::uint8_t> placed(output.rows());
  std::vector<float> kept(output.stride());
  // Goes along each cycle of the permutation: the row at `to` comes from `from`, until the first one's place.
  for (std::uint32_t first = 0; first < output.rows(); ++first) {
    if (placed[first] != 0) continue;
    std::copy_n(output.weights(first), output.stride(), kept.begin());
    const float kept_bias = network.bias[first];
    std::uint32_t to = first;
    for (;;) {
      placed[to] = 1;
      const std::uint32_t from = network.order.row_of(to);
      if (from == first) break;
      std::copy_n(output.weights(from), output.stride(), output.weights(to));
      network.bias[to] = network.bias[from];
      to = from;
    }
    std::copy_n(kept.begin(), output.stride(), output.weights(to));
    network.bias[to] = kept_bias;
  }
  network.order = {};
  network.part.rows = whole(network.shape).rows;
}

}  // namespace gossamer::sparse
