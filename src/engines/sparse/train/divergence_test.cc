// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/train/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace gossamer::sparse_engine {
namespace {

// Claim: a weight of any table, or a bias of any layer, that is no number or infinite is found.
TEST(Divergence, LooksAtEveryTable) {
  sparse::Network network({.features = 5, .labels = 7, .hidden = 16, .dense = {16}}, sparse::Moments::kNone);
  EXPECT_TRUE(has_finite_weights(network));
  const std::vector<std::span<float>> all = {network.embedding.all_weights(), network.output.all_weights(),
                                             network.bias.span(), network.dense[0].weights.all_weights(),
                                             network.dense[0].bias.span()};
  for (std::size_t table = 0; table < all.size(); ++table) {
    for (const float bad : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
      for (float* const at : {&all[table].front(), &all[table].back()}) {
        const float before = std::exchange(*at, bad);
        EXPECT_FALSE(has_finite_weights(network)) << "table " << table;
        *at = before;
      }
    }
  }
  network.bias.span()[0] = -std::numeric_limits<float>::max();
  EXPECT_TRUE(has_finite_weights(network));
}

}  // namespace
}  // namespace gossamer::sparse_engine
