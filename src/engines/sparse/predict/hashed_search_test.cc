// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/hashed_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "engines/sparse/model/test_random_model.h"
#include "engines/sparse/predict/predictor.h"
#include "host/sim/compute.h"

namespace gossamer::sparse_engine {
namespace {

using testing::best_kernels;

constexpr std::size_t kLabels = 6000;
constexpr std::size_t kHidden = 32;

// Rows in clusters of ten about random centres, so that rows near a query exist.
sparse::Network clustered(host::Compute& compute) {
  sparse::Network network({.features = 1, .labels = kLabels, .hidden = kHidden}, sparse::Moments::kNone);
  const std::vector<std::uint32_t> seen(kLabels, 1);
  sparse::initialize(network, {.output_stddev = 0.3F, .seed = 1}, seen, compute);
  for (std::size_t row = 0; row < kLabels; ++row) {
    Rng rng(5, Purpose::kTest, row / 10);
    for (std::size_t i = 0; i < kHidden; ++i) network.output.weights(row)[i] += rng.normal();
    network.bias[row] = 0.1F * rng.normal();
  }
  return network;
}

std::vector<float> centres(std::size_t count) {
  std::vector<float> queries;
  for (std::size_t q = 0; q < count; ++q) {
    Rng rng(5, Purpose::kTest, q);
    for (std::size_t i = 0; i < kHidden; ++i) queries.push_back(rng.normal());
  }
  return queries;
}

std::vector<std::vector<Scored>> answers(auto& search, const std::vector<float>& queries, std::size_t k) {
  const QueryMatrix matrix{queries.data(), kHidden, queries.size() / kHidden};
  search.search(matrix, k);
  std::vector<std::vector<Scored>> all;
  for (std::size_t q = 0; q < matrix.count; ++q)
    all.emplace_back(search.found(q).begin(), search.found(q).end());
  return all;
}

// Near rows are found almost always, with the scores and in the order of the exact search. Lists are never
// longer than asked for.
TEST(HashedSearch, FindsNearRows) {
  host::SimCompute compute({.workers = 2});
  const sparse::Network network = clustered(compute);
  RowSearch exact({.rows = kLabels,
                   .width = kHidden,
                   .weights = network.output.all_weights().data(),
                   .stride = network.output.stride(),
                   .bias = network.bias.data()},
                  best_kernels(), compute);
  auto hashed = HashedSearch::create(network, best_kernels(), compute);
  ASSERT_TRUE(hashed.ok());
  const auto queries = centres(200);
  const auto want = answers(exact, queries, 10);
  const auto got = answers(**hashed, queries, 10);
  std::size_t found = 0;
  for (std::size_t q = 0; q < want.size(); ++q) {
    EXPECT_LE(got[q].size(), 10U);
    EXPECT_TRUE(std::ranges::is_sorted(got[q], ranks_before));
    for (const Scored& label : want[q]) found += std::ranges::count(got[q], label) > 0 ? 1 : 0;
    for (const Scored& label : got[q]) {
      EXPECT_EQ(label.score,
                best_kernels().dot(network.output.weights(label.id), queries.data() + q * kHidden, kHidden) +
                    network.bias[label.id]);
    }
  }
  EXPECT_GT(found, 2000 * 9 / 10);
}

// Answers depend neither on workers nor on the other queries of the block.
TEST(HashedSearch, DependsOnTheQueryAlone) {
  host::SimCompute one({.workers = 1});
  host::SimCompute three({.workers = 3});
  const sparse::Network network = clustered(one);
  const auto queries = centres(20);
  auto first = HashedSearch::create(network, best_kernels(), one);
  auto second = HashedSearch::create(network, best_kernels(), three);
  const auto want = answers(**first, queries, 10);
  EXPECT_EQ(answers(**second, queries, 10), want);
  for (std::size_t q = 0; q < 20; ++q) {
    const auto at = queries.begin() + static_cast<std::ptrdiff_t>(q * kHidden);
    EXPECT_EQ(answers(**second, {at, at + kHidden}, 10)[0], want[q]);
  }
}

// A query that is not finite neither crashes nor finds a row whose score is NaN.
TEST(HashedSearch, TakesQueriesThatAreNotFinite) {
  host::SimCompute compute({.workers = 1});
  const sparse::Network network = clustered(compute);
  auto hashed = HashedSearch::create(network, best_kernels(), compute);
  std::vector<float> query(kHidden, 1.0F);
  query[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(answers(**hashed, query, 10)[0].empty());
}

// The measured predictor answers as the hashed one does. It also tells the fraction of the exact lists that
// was found, as lists compared by hand give it. The exact predictor measures nothing.
TEST(Predictor, MeasuresHashedRetrieval) {
  host::SimCompute compute({.workers = 2});
  Model model;
  model.network = clustered(compute);
  model.network.embedding = sparse::RowTable({.rows = 40, .width = kHidden}, sparse::Moments::kNone);
  model.network.shape.features = 40;
  model.activation = kernels::Activation::kIdentity;
  model.label_count.assign(kLabels, 1);
  const auto queries = centres(40);
  std::vector<std::uint32_t> begin = {0};
  std::vector<std::uint32_t> index;
  for (std::uint32_t q = 0; q < 40; ++q) {
    std::copy_n(queries.begin() + static_cast<std::ptrdiff_t>(q * kHidden), kHidden,
                model.network.embedding.weights(q));
    index.push_back(q);
    begin.push_back(q + 1);
  }
  const std::vector<float> value(40, 1.0F);
  const data::SparseRows rows{begin, index, value};
  const auto predict = [&](Retrieval retrieval, PredictionBlock& out, std::size_t top_k = 10) {
    auto predictor =
        Predictor::create(model, best_kernels(), compute, {.parts = kNetAlone, .retrieval = retrieval});
    EXPECT_TRUE(predictor.ok());
    EXPECT_TRUE((*predictor)->predict(rows, top_k, out).ok());
    return (*predictor)->recall();
  };
  const auto percent_found = [&](std::size_t top_k) {
    PredictionBlock exact;
    PredictionBlock hashed;
    predict(Retrieval::kExact, exact, top_k);
    predict(Retrieval::kHashed, hashed, top_k);
    std::size_t found = 0;
    for (std::size_t q = 0; q < 40; ++q) {
      for (const Scored& label : exact.row(q))
        found += std::ranges::count(hashed.row(q), label.id, &Scored::id) > 0 ? 1 : 0;
    }
    return 100 * static_cast<double>(found) / static_cast<double>(40 * top_k);
  };
  PredictionBlock exact;
  PredictionBlock hashed;
  PredictionBlock measured;
  EXPECT_FALSE(predict(Retrieval::kExact, exact).has_value());
  EXPECT_FALSE(predict(Retrieval::kHashed, hashed).has_value());
  const auto recall = predict(Retrieval::kHashedMeasured, measured);
  EXPECT_EQ(measured.entries, hashed.entries);
  ASSERT_TRUE(recall.has_value());
  EXPECT_DOUBLE_EQ(recall->at10, percent_found(10));
  EXPECT_DOUBLE_EQ(recall->at100, percent_found(100));
  EXPECT_GT(recall->at10, 90);
  EXPECT_LT(recall->at100, recall->at10);
}

}  // namespace
}  // namespace gossamer::sparse_engine
