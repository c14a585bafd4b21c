// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network.h"

#include "base/check.h"

namespace gossamer::sparse {

Network::Network(NetworkShape network_shape, Moments moments)
    : shape(network_shape),
      embedding({.rows = network_shape.features, .width = network_shape.hidden}, moments),
      output({.rows = network_shape.labels, .width = network_shape.hidden}, moments),
      bias(network_shape.labels) {
  if (moments == Moments::kNone) return;
  bias_moment1 = AlignedArray<float>(network_shape.labels);
  bias_moment2 = AlignedArray<float>(network_shape.labels);
}

std::uint64_t Network::bytes() const {
  const std::size_t scalars = bias.size() + bias_moment1.size() + bias_moment2.size();
  return embedding.bytes() + output.bytes() + sizeof(float) * scalars;
}

void Network::drop_moments() {
  embedding.drop_moments();
  output.drop_moments();
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
  for (std::size_t label = 0; label < network.shape.labels; ++label) {
    network.bias[label] = label_count[label] == 0 ? kUnseenBias : 0.0F;
  }
}

}  // namespace gossamer::sparse
