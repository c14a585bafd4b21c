// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network/network.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "learn/sparse/hidden_layer.h"
#include "learn/sparse/test_random_problem.h"
#include "learn/sparse/test_reference_learner.h"

namespace gossamer::sparse {
namespace {

// Weights have the wished mean and spread, do not depend on the number of workers, and padding is zero.
TEST(Network, StartsTheSameForAnyWorkerCount) {
  const std::vector<std::uint32_t> counts(700, 1);
  std::vector<std::vector<float>> weights;
  for (const int workers : {1, 3}) {
    host::SimCompute compute({.workers = workers});
    Network network({.features = 500, .labels = 700, .hidden = 40}, Moments::kElement);
    initialize(network, {.embedding_stddev = 0.05F, .output_stddev = 0.01F, .seed = 3}, counts, compute);
    const auto all = network.embedding.all_weights();
    weights.emplace_back(all.begin(), all.end());
    double sum = 0;
    double squares = 0;
    for (std::size_t row = 0; row < 500; ++row) {
      for (std::size_t i = 0; i < 40; ++i) {
        sum += network.embedding.weights(row)[i];
        squares += std::pow(network.embedding.weights(row)[i], 2);
      }
      for (std::size_t i = 40; i < 64; ++i) ASSERT_EQ(network.embedding.weights(row)[i], 0.0F);
    }
    EXPECT_NEAR(sum / 20000, 0, 5 * 0.05 / std::sqrt(20000));
    EXPECT_NEAR(std::sqrt(squares / 20000), 0.05, 0.002);
  }
  EXPECT_EQ(weights[0], weights[1]);
}

// The mean product of two tables' weights at the same places, padding aside. Of a table with itself it is the
// mean square.
double mean_product(const RowTable& a, const RowTable& b) {
  const std::size_t rows = std::min(a.rows(), b.rows());
  const std::size_t width = std::min(a.width(), b.width());
  double sum = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < width; ++i) {
      sum += static_cast<double>(a.weights(row)[i]) * static_cast<double>(b.weights(row)[i]);
    }
  }
  return sum / static_cast<double>(rows * width);
}

// Claim: Output rows and dense layers have the spread that is wished for each, and every table has numbers of
// its own.
TEST(Network, StartsTablesIndependently) {
  host::SimCompute compute({.workers = 2});
  Network network({.features = 500, .labels = 700, .hidden = 64, .dense = {48, 48}}, Moments::kElement);
  initialize(network, {.embedding_stddev = 0.05F, .output_stddev = 0.01F, .dense_gain = 1.5F, .seed = 3},
             std::vector<std::uint32_t>(700, 1), compute);
  const std::array tables = {&network.embedding, &network.dense[0].weights, &network.dense[1].weights,
                             &network.output};
  const std::array<double, 4> spread = {0.05, 1.5 / std::sqrt(64), 1.5 / std::sqrt(48), 0.01};
  for (std::size_t a = 0; a < tables.size(); ++a) {
    // 2,304 weights or more: five standard errors of their spread are 7.4 percent, of a correlation 0.104.
    EXPECT_NEAR(std::sqrt(mean_product(*tables[a], *tables[a])) / spread[a], 1, 0.074) << a;
    for (std::size_t b = 0; b < a; ++b) {
      EXPECT_NEAR(mean_product(*tables[a], *tables[b]) / (spread[a] * spread[b]), 0, 0.104) << a << " " << b;
    }
  }
}

// Labels that training never saw start with a bias that keeps them from being predicted.
TEST(Network, PutsUnseenLabelsAside) {
  host::SimCompute compute({.workers = 1});
  Network network({.features = 2, .labels = 3, .hidden = 4}, Moments::kElement);
  const std::vector<std::uint32_t> counts = {4, 0, 1};
  initialize(network, {}, counts, compute);
  EXPECT_EQ(network.bias[0], 0.0F);
  EXPECT_EQ(network.bias[1], kUnseenBias);
  EXPECT_EQ(network.bias[2], 0.0F);
}

// A network with rows from elsewhere draws only the others.
TEST(Network, LeavesRowsThatAStepHasUpdated) {
  host::SimCompute compute({.workers = 2});
  const std::vector<std::uint32_t> counts = {0, 0, 3};
  const auto make = [] {
    return Network({.features = 3, .labels = 3, .hidden = 8},
                   {.embedding = Moments::kBlock, .output = Moments::kBlock});
  };
  Network whole_new = make();
  initialize(whole_new, {.seed = 7}, counts, compute);
  Network network = make();
  network.embedding.last_step(1) = 4;
  network.output.last_step(0) = 9;
  initialize(network, {.seed = 7}, counts, compute);
  for (std::size_t row = 0; row < 3; ++row) {
    SCOPED_TRACE(row);
    EXPECT_EQ(network.embedding.weights(row)[5], row == 1 ? 0.0F : whole_new.embedding.weights(row)[5]);
    EXPECT_EQ(network.output.weights(row)[5], row == 0 ? 0.0F : whole_new.output.weights(row)[5]);
    EXPECT_EQ(network.bias[row], row == 0 ? 0.0F : whole_new.bias[row]);
  }
}

// Labels start with the same weights wherever the order puts their rows, also in a part, which gets no
// others. Ending the order gives the network that never had one.
TEST(Network, StartsTheSameInAnyOrder) {
  const NetworkShape shape = {.features = 3, .labels = 203, .hidden = 20};
  LabelCounts counts = random_counts(shape.labels, 4);
  for (std::size_t label = 0; label < shape.labels; label += 7) counts.count[label] = 0;
  host::SimCompute compute({.workers = 2});
  const auto make = [&](unsigned shift, bool half) {
    NetworkPart part = whole(shape, shift);
    for (std::size_t shard = 0; half && shard < part.rows.shards(); shard += 2) part.rows.drop(shard);
    Network network(shape, std::move(part), {.embedding = Moments::kElement, .output = Moments::kElement});
    network.order = RowOrder(counts.count, shift);
    initialize(network, {.seed = 5}, by_row(counts, network.order).count, compute);
    network.drop_moments();
    return network;
  };
  const Network plain = make(kOneShardShift, false);
  for (unsigned shift = 0; shift <= 8; ++shift) {
    SCOPED_TRACE(shift);
    const Network part = make(shift, true);
    for (std::uint32_t row = 0; row < shape.labels; ++row) {
      const std::uint32_t label = part.order.label_of(row);
      const bool held = part.part.rows.contains(row);
      ASSERT_EQ(part.output.weights(row)[19], held ? plain.output.weights(label)[19] : 0.0F);
      ASSERT_EQ(part.bias[row], held ? plain.bias[label] : 0.0F);
    }
    Network network = make(shift, false);
    order_by_label(network);
    EXPECT_TRUE(network.order.identity());
    EXPECT_TRUE(std::ranges::equal(network.output.all_weights(), plain.output.all_weights()));
    EXPECT_TRUE(std::ranges::equal(network.bias.span(), plain.bias.span()));
  }
}

// Bytes of `array` that are in memory.
template <class T>
std::size_t resident_bytes(std::span<T> array) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto* bytes = reinterpret_cast<const std::byte*>(array.data());
  const std::byte* first = bytes - reinterpret_cast<std::uintptr_t>(bytes) % page;
  const std::size_t pages = (array.size_bytes() + page - 1) / page;
  std::vector<unsigned char> there(pages);
  EXPECT_EQ(::mincore(const_cast<std::byte*>(first), pages * page, there.data()), 0);
  return page * static_cast<std::size_t>(std::ranges::count_if(there, [](auto is) { return (is & 1) != 0; }));
}

// Shards smaller than a huge page take their own memory, and none for the shards between them.
TEST(Network, ScatteredShardsTakeTheirOwnMemory) {
  constexpr unsigned kShift = 10;
  const NetworkShape shape = {.features = 3, .labels = std::size_t{1} << 17, .hidden = 64};
  NetworkPart part = whole(shape, kShift);
  for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) {
    if (shard % 8 != 3) part.rows.drop(shard);
  }
  host::SimCompute compute({.workers = 1});
  Network network(shape, std::move(part), {.embedding = Moments::kNone, .output = Moments::kNone});
  initialize(network, {}, std::vector<std::uint32_t>(shape.labels, 1), compute);
  const auto weights = network.output.all_weights();
  EXPECT_EQ(resident_bytes(weights), weights.size_bytes() / 8);
}

// So do their moments, where a shard's weights are a huge page and its moments are less.
TEST(Network, ScatteredMomentsTakeTheirOwnMemory) {
  constexpr unsigned kShift = 13;
  const NetworkShape shape = {.features = 3, .labels = std::size_t{1} << 17, .hidden = 64};
  NetworkPart part = whole(shape, kShift);
  for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) {
    if (shard % 8 != 3) part.rows.drop(shard);
  }
  host::SimCompute compute({.workers = 1});
  Network network(shape, std::move(part), {.embedding = Moments::kBlock, .output = Moments::kBlock});
  initialize(network, {}, std::vector<std::uint32_t>(shape.labels, 1), compute);
  EXPECT_EQ(resident_bytes(network.output.all_weights()), network.output.all_weights().size_bytes() / 8);
  EXPECT_EQ(resident_bytes(network.output.all_moment1()), network.output.all_moment1().size() / 8);
  EXPECT_EQ(resident_bytes(network.output.all_moment2()), network.output.all_moment2().size_bytes() / 8);
}

// Dropping the moments frees two thirds of the memory and keeps the weights.
TEST(Network, DropsItsMoments) {
  host::SimCompute compute({.workers = 1});
  Network network({.features = 64, .labels = 64, .hidden = 32, .dense = {32}}, Moments::kElement);
  initialize(network, {}, std::vector<std::uint32_t>(64, 1), compute);
  const float weight = network.output.weights(63)[31];
  const std::uint64_t before = network.bytes();
  network.drop_moments();
  EXPECT_FALSE(network.output.has_moments());
  EXPECT_LT(network.bytes() * 100, before * 34);
  EXPECT_EQ(network.output.weights(63)[31], weight);
}

// A second moment for 16 weights, and first ones in bf16, take little more than half of the memory that both
// take for each weight.
TEST(Network, BlockMomentsTakeHalfTheMemory) {
  const NetworkShape shape = {.features = 64, .labels = 96, .hidden = 128};
  const auto bytes = [&shape](TableMoments moments) { return Network(shape, moments).bytes(); };
  const std::uint64_t element = bytes({.embedding = Moments::kElement, .output = Moments::kElement});
  const std::uint64_t block = bytes({.embedding = Moments::kBlock, .output = Moments::kBlock});
  EXPECT_NEAR(static_cast<double>(block), 0.52 * static_cast<double>(element),
              0.02 * static_cast<double>(element));
  EXPECT_EQ(element - bytes({.embedding = Moments::kBlock, .output = Moments::kElement}),
            64 * (std::uint64_t{128} * (8 - 2) - 8 * sizeof(float)));
  Network network(shape, Moments::kBlock);
  network.drop_moments();
  EXPECT_EQ(network.bytes(), Network(shape, Moments::kNone).bytes());
}

// The hidden layer is the activated weighted sum of embedding rows, also for a row without features.
TEST(HiddenLayer, IsTheActivatedSum) {
  const LabelCounts counts = random_counts(4, 1);
  const ProblemShape shape = {
      .network = {.features = 9, .labels = 4, .hidden = 37}, .samples = 12, .unlabelled = true};
  const Network network = random_network(shape.network, counts, 2);
  const OwnedBatch batch = random_batch(shape, 3);
  const HiddenLayer layer(network, kernels::Activation::kRelu, kernels::kernels_for(kernels::best_isa()));
  std::vector<float> out(12 * layer.stride(), -1.0F);
  layer.forward(batch.view().features, out);
  for (std::size_t sample = 0; sample < 12; ++sample) {
    const data::SparseRow row = batch.view().features.row(sample);
    for (std::size_t i = 0; i < layer.stride(); ++i) {
      double want = 0;
      for (std::size_t k = 0; k < row.index.size(); ++k) {
        want += static_cast<double>(row.value[k]) * network.embedding.weights(row.index[k])[i];
      }
      EXPECT_NEAR(out[sample * layer.stride() + i], std::max(want, 0.0), 1e-5) << sample << " " << i;
    }
  }
}

// Prediction's forward pass through dense layers follows the formula, and is zero beyond the last layer's
// width.
TEST(HiddenLayer, GoesThroughDenseLayers) {
  const LabelCounts counts = random_counts(4, 1);
  const ProblemShape shape = {.network = {.features = 9, .labels = 4, .hidden = 37, .dense = {32, 80, 48}},
                              .samples = 12};
  Network network = random_network(shape.network, counts, 2);
  const OwnedBatch batch = random_batch(shape, 3);
  const HiddenLayer layer(network, kernels::Activation::kTanh, kernels::kernels_for(kernels::best_isa()));
  ASSERT_EQ(layer.stride(), 64U);
  std::vector<float> out(12 * layer.stride(), -1.0F);
  layer.forward(batch.view().features, out);
  const Parameters p = parameters_of(network);
  for (std::size_t sample = 0; sample < 12; ++sample) {
    const data::SparseRow row = batch.view().features.row(sample);
    std::vector<double> h(37);
    for (std::size_t k = 0; k < row.index.size(); ++k) {
      for (std::size_t i = 0; i < 37; ++i) {
        h[i] += static_cast<double>(row.value[k]) * p.embedding[std::size_t{row.index[k]} * 37 + i];
      }
    }
    for (double& x : h) x = std::tanh(x);
    for (std::size_t l = 0; l < 3; ++l) {
      std::vector<double> z = p.dense_bias[l];
      for (std::size_t unit = 0; unit < z.size(); ++unit) {
        for (std::size_t i = 0; i < h.size(); ++i) z[unit] += p.dense[l][unit * h.size() + i] * h[i];
        z[unit] = std::tanh(z[unit]);
      }
      h = z;
    }
    h.resize(64);
    for (std::size_t i = 0; i < 64; ++i) EXPECT_NEAR(out[sample * 64 + i], h[i], 1e-5) << sample << " " << i;
  }
}

}  // namespace
}  // namespace gossamer::sparse
