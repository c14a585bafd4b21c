// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/embedding_update.h"

#include <gtest/gtest.h>

#include <vector>

namespace gossamer::sparse {
namespace {

const NetworkShape kSmallNetwork = {.features = 5, .labels = 4, .hidden = 64};
constexpr std::size_t kPaddedSamples = 16;

// The gradient of the test at a sample and a column of the whole layer.
float dh_at(std::size_t sample, std::size_t column) { return static_cast<float>(sample * 10 + column % 7); }

// A row becomes what the sum over its samples says, for nodes that hold all columns and for those that hold
// some; other rows stay as they are.
TEST(EmbeddingUpdate, SumsOverSamples) {
  const std::vector<std::uint32_t> begin{0, 2, 3, 4};
  const std::vector<std::uint32_t> index{1, 3, 3, 0};  // sample 0: features 1 and 3, sample 1: 3, sample 2: 0
  const std::vector<float> value{1, 2, 4, 1};
  for (const host::Range columns : {host::Range{0, 64}, host::Range{16, 48}}) {
    NetworkPart part = whole(kSmallNetwork);
    part.columns = columns;
    Network network(kSmallNetwork, part, {.embedding = Moments::kElement, .output = Moments::kElement});
    RowOptimizer optimizer({.kind = OptimizerKind::kSgd});
    optimizer.begin_step(StepNumber{0}, 0.5F);
    const LayerColumns first{.stride = 64, .own = columns};
    EmbeddingUpdate embedding(
        {.network = network, .optimizer = optimizer, .kernels = kernels::kernels_for(kernels::best_isa())},
        first, {.padded = kPaddedSamples, .workers = 1});
    const bool all = columns.begin == 0;
    EXPECT_EQ(embedding.gathers(), !all);
    EXPECT_EQ(embedding.bytes(), all ? 0 : kPaddedSamples * 32 * sizeof(float));
    LayerState layer(kPaddedSamples, first);
    for (std::size_t sample = 0; sample < kPaddedSamples; ++sample) {
      for (std::size_t column = 0; column < 64; ++column)
        layer.dh[sample * 64 + column] = dh_at(sample, column);
    }
    InvertedLists features(Ownership{});
    features.build({begin, index, value}, kSmallNetwork.features);
    embedding.gather(layer, {0, kPaddedSamples});
    embedding.update(0, features, layer);
    const auto expect = [&](std::size_t row, std::size_t column, float gradient) {
      EXPECT_FLOAT_EQ(network.embedding.weights(row)[column - columns.begin], -0.5F * gradient)
          << row << " " << column;
    };
    for (std::size_t column = columns.begin; column < columns.end; ++column) {
      expect(0, column, dh_at(2, column));
      expect(1, column, dh_at(0, column));
      expect(2, column, 0);
      expect(3, column, 2 * dh_at(0, column) + 4 * dh_at(1, column));
      expect(4, column, 0);
    }
  }
}

}  // namespace
}  // namespace gossamer::sparse
