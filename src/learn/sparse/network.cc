// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network.h"

#include <cmath>
#include <utility>

#include "base/check.h"

namespace gossamer::sparse {

DenseLayer::DenseLayer(RowTableShape shape, Moments moments)
    : weights(shape, moments), bias(row_stride(shape.rows)) {
  CHECK(shape.rows > 0 && shape.rows % 16 == 0, shape.rows);
  if (moments == Moments::kNone) return;
  bias_moment1 = AlignedArray<float>(bias.size());
  bias_moment2 = AlignedArray<float>(bias.size());
}

std::uint64_t DenseLayer::bytes() const {
  return weights.bytes() + sizeof(float) * (bias.size() + bias_moment1.size() + bias_moment2.size());
}

Network::Network(NetworkShape network_shape, TableMoments moments)
    : shape(std::move(network_shape)),
      embedding({.rows = shape.features, .width = shape.hidden}, moments.embedding),
      output({.rows = shape.labels, .width = shape.last_hidden()}, moments.output),
      bias(shape.labels) {
  const bool trained = moments.embedding != Moments::kNone;
  CHECK(trained == (moments.output != Moments::kNone));
  std::size_t inputs = shape.hidden;
  for (const std::size_t units : shape.dense) {
    dense.emplace_back(RowTableShape{.rows = units, .width = inputs},
                       trained ? Moments::kElement : Moments::kNone);
    inputs = units;
  }
  if (!trained) return;
  bias_moment1 = AlignedArray<float>(shape.labels);
  bias_moment2 = AlignedArray<float>(shape.labels);
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

void initialize(Network& network, const NetworkInit& init, std::span<const std::uint32_t> label_count,
                host::Compute& compute) {
  CHECK(label_count.size() == network.shape.labels, label_count.size(), network.shape.labels);
  initialize_normal(network.embedding,
                    {.stddev = init.embedding_stddev, .seed = init.seed, .purpose = Purpose::kEmbeddingInit},
                    compute);
  initialize_normal(network.output,
                    {.stddev = init.output_stddev, .seed = init.seed, .purpose = Purpose::kOutputInit},
                    compute);
  for (std::size_t i = 0; i < network.dense.size(); ++i) {
    RowTable& weights = network.dense[i].weights;
    initialize_normal(weights,
                      {.stddev = init.dense_gain / std::sqrt(static_cast<float>(weights.width())),
                       .seed = init.seed,
                       .purpose = Purpose::kDenseInit,
                       .layer = static_cast<std::uint32_t>(i)},
                      compute);
  }
  for (std::size_t label = 0; label < network.shape.labels; ++label) {
    network.bias[label] = label_count[label] == 0 ? kUnseenBias : 0.0F;
  }
}

}  // namespace gossamer::sparse
