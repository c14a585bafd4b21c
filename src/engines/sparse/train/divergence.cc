// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/train/divergence.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace gossamer::sparse_engine {
namespace {

constexpr std::string_view kDiverged = "the network has diverged";
constexpr std::uint32_t kBitsOfInfinity = 0x7f800000;

// A maximum of whole numbers, which compilers make vectors of. Infinity and NaN have the largest bits.
bool all_finite(std::span<const float> values) {
  std::uint32_t most = 0;
  for (const float value : values) most = std::max(most, std::bit_cast<std::uint32_t>(value) & 0x7fffffffU);
  return most < kBitsOfInfinity;
}

}  // namespace

Error network_diverged(Divergence seen) {
  return {
      .kind = ErrorKind::kFailed,
      .where = std::move(seen.where),
      .what = std::string(kDiverged),
      .got = std::move(seen.got),
      .expected = std::move(seen.expected),
      .fix =
          "start a new run with a smaller train.lr, with data.weighting=auto, or without the huge values in "
          "the data"};
}

bool tells_of_divergence(const Error& error) {
  return error.what == kDiverged || error.got.find(kDiverged) != std::string::npos;
}

bool has_finite_weights(sparse::Network& network) {
  bool finite = all_finite(network.embedding.all_weights()) && all_finite(network.output.all_weights()) &&
                all_finite(network.bias.span());
  for (sparse::DenseLayer& layer : network.dense)
    finite = finite && all_finite(layer.weights.all_weights()) && all_finite(layer.bias.span());
  return finite;
}

}  // namespace gossamer::sparse_engine
