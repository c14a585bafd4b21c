// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/instance_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "engines/sparse/model/test_random_model.h"
#include "host/sim/compute.h"

namespace gossamer::sparse_engine {
namespace {

using testing::best_kernels;
using testing::OwnedRows;
using testing::random_instances;
using testing::random_rows;

double dot(const data::SparseRow& a, const data::SparseRow& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.index.size(); ++i) {
    for (std::size_t j = 0; j < b.index.size(); ++j) {
      if (a.index[i] == b.index[j]) sum += static_cast<double>(a.value[i]) * static_cast<double>(b.value[j]);
    }
  }
  return sum;
}

// Cosines of one query.
void cosines_of(const InstanceIndex& index, const data::SparseRow& query, std::span<float> out) {
  InstanceIndex::Scratch scratch;
  index.cosines({&query, 1}, scratch, out);
}

// Cosines are the dot products with every row, whether columns are dense, sparse or both. Places past the
// last row are 0.
TEST(InstanceIndex, CosinesAreDotProducts) {
  // features 3: all columns dense; 50: some; 2000: none.
  for (const std::uint32_t features : {3U, 50U, 2000U}) {
    for (const std::uint32_t rows : {1U, 2U, 255U, 256U, 257U, 1024U, 1025U, 2500U}) {
      SCOPED_TRACE(::testing::Message() << features << " features, " << rows << " rows");
      Rng rng(rows, Purpose::kTest, features);
      const Instances instances =
          random_instances(rng, {.features = features, .labels = 20, .hidden = 16, .rows = rows});
      host::SimCompute compute({.workers = 2});
      const InstanceIndex index(instances, {.features = features, .labels = 20}, best_kernels(), compute);
      const OwnedRows queries = random_rows(rng, features, 6);
      std::vector<float> cosines(index.padded_rows());
      for (std::size_t q = 0; q < 6; ++q) {
        std::fill(cosines.begin(), cosines.end(), 99.0F);
        cosines_of(index, queries.view().row(q), cosines);
        for (std::size_t r = 0; r < cosines.size(); ++r) {
          const double expected = r < rows ? dot(queries.view().row(q), instances.features().row(r)) : 0;
          ASSERT_NEAR(static_cast<double>(cosines[r]), expected, 1e-6) << q << " " << r;
        }
      }
    }
  }
}

// Queries that go together have, bit for bit, the cosines that each has alone. No query at all is fine, too.
TEST(InstanceIndex, QueriesTogether) {
  Rng rng(5, Purpose::kTest);
  const Instances instances =
      random_instances(rng, {.features = 80, .labels = 5, .hidden = 16, .rows = 2000});
  host::SimCompute compute({});
  const InstanceIndex index(instances, {.features = 80, .labels = 5}, best_kernels(), compute);
  const OwnedRows queries = random_rows(rng, 80, kIndexQueries);
  std::vector<data::SparseRow> rows;
  rows.reserve(kIndexQueries);
  for (std::size_t q = 0; q < kIndexQueries; ++q) rows.push_back(queries.view().row(q));
  InstanceIndex::Scratch scratch;
  std::vector<float> alone(index.padded_rows());
  for (const std::size_t count : {0UL, 1UL, 7UL, kIndexQueries}) {
    std::vector<float> together(count * index.padded_rows(), 99);
    index.cosines(std::span(rows).first(count), scratch, together);
    for (std::size_t q = 0; q < count; ++q) {
      cosines_of(index, rows[q], alone);
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(),
                             together.begin() + static_cast<std::ptrdiff_t>(q * alone.size())))
          << q << " of " << count;
    }
  }
}

// Claim: workers with some of the rows each have together, bit for bit, the cosines of one worker with all.
// There may be more workers than rows to share.
TEST(InstanceIndex, RowsOfWorkers) {
  Rng rng(6, Purpose::kTest);
  const Instances instances =
      random_instances(rng, {.features = 80, .labels = 5, .hidden = 16, .rows = 20'000});
  host::SimCompute compute({});
  const InstanceIndex index(instances, {.features = 80, .labels = 5}, best_kernels(), compute);
  const OwnedRows queries = random_rows(rng, 80, 5);
  std::vector<data::SparseRow> rows;
  for (std::size_t q = 0; q < 5; ++q) rows.push_back(queries.view().row(q));
  InstanceIndex::Scratch scratch;
  std::vector<float> whole(5 * index.padded_rows());
  index.cosines(rows, scratch, whole);
  for (const int workers : {1, 2, 3, 7, 500}) {
    std::vector<float> shared(whole.size(), 99);
    for (int w = workers - 1; w >= 0; --w)
      index.cosines(rows, index.rows_of_worker(w, workers), scratch, shared);
    ASSERT_EQ(shared, whole) << workers;
  }
}

// Cosines are right for queries with many dense columns.
TEST(InstanceIndex, ManyDenseColumns) {
  constexpr std::uint32_t kFeatures = 150;
  Instances instances;
  instances.feature_begin = {0};
  instances.label_begin = {0};
  for (std::uint32_t r = 0; r < 100; ++r) {
    for (std::uint32_t f = 0; f < kFeatures; ++f) {
      instances.feature.push_back(f);
      instances.value.push_back(static_cast<float>((r * 7 + f) % 5) / 8);
    }
    instances.feature_begin.push_back(static_cast<std::uint32_t>(instances.feature.size()));
    instances.label_begin.push_back(0);
  }
  host::SimCompute compute({});
  const InstanceIndex index(instances, {.features = kFeatures, .labels = 1}, best_kernels(), compute);
  std::vector<float> cosines(index.padded_rows());
  for (const std::size_t size : {63U, 64U, 65U, 128U, 150U}) {
    const data::SparseRow all = instances.features().row(3);
    const data::SparseRow query{all.index.first(size), all.value.first(size)};
    cosines_of(index, query, cosines);
    for (std::size_t r = 0; r < 100; ++r) {
      ASSERT_NEAR(static_cast<double>(cosines[r]), dot(query, instances.features().row(r)), 1e-5) << size;
    }
  }
}

// nearest() equals sorting, with ties by row and nothing at or below 0.
TEST(InstanceIndex, NearestIsSorting) {
  Rng rng(1, Purpose::kTest);
  const Instances instances =
      random_instances(rng, {.features = 30, .labels = 5, .hidden = 16, .rows = 1000});
  host::SimCompute compute({});
  const InstanceIndex index(instances, {.features = 30, .labels = 5}, best_kernels(), compute);
  std::vector<Scored> found;
  for (int round = 0; round < 20; ++round) {
    std::vector<float> cosines(index.padded_rows(), 0);
    std::vector<Scored> all;
    for (std::uint32_t r = 0; r < 1000; ++r) {
      cosines[r] = static_cast<float>(rng.below(40)) - 10;
      if (round % 4 == 0) cosines[r] = static_cast<float>(r);  // rising: every row beats all before
      if (cosines[r] > 0) all.push_back({r, cosines[r]});
    }
    std::sort(all.begin(), all.end(), ranks_before);
    for (const std::size_t count : {1U, 2U, 100U, 5000U}) {
      index.nearest(cosines, count, found);
      ASSERT_EQ(found, std::vector<Scored>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(
                                                                          std::min(count, all.size()))))
          << round << " " << count;
    }
  }
}

// The cosine to a centroid is the cosine to the sum of its rows, for any number of workers. A label without
// rows has 0.
TEST(InstanceIndex, CentroidCosines) {
  Rng rng(2, Purpose::kTest);
  const Instances instances = random_instances(rng, {.features = 60, .labels = 30, .hidden = 16, .rows = 80});
  const OwnedRows queries = random_rows(rng, 60, 4);
  for (const int workers : {1, 3}) {
    host::SimCompute compute({.workers = workers});
    const InstanceIndex index(instances, {.features = 60, .labels = 31}, best_kernels(), compute);
    std::vector<float> cosines(index.padded_rows());
    for (std::size_t q = 0; q < 3; ++q) {
      cosines_of(index, queries.view().row(q), cosines);
      EXPECT_EQ(index.centroid_cosine(30, cosines), 0.0F);
      for (std::uint32_t label = 0; label < 30; ++label) {
        std::vector<double> sum(60, 0);
        for (std::size_t r = 0; r < 80; ++r) {
          const auto labels = instances.labels().row(r);
          if (std::find(labels.begin(), labels.end(), label) == labels.end()) continue;
          const auto row = instances.features().row(r);
          for (std::size_t i = 0; i < row.index.size(); ++i)
            sum[row.index[i]] += static_cast<double>(row.value[i]);
        }
        double product = 0;
        double squares = 0;
        for (const double v : sum) squares += v * v;
        const auto query = queries.view().row(q);
        for (std::size_t i = 0; i < query.index.size(); ++i) {
          product += static_cast<double>(query.value[i]) * sum[query.index[i]];
        }
        const double expected = squares > 0 ? product / std::sqrt(squares) : 0;
        ASSERT_NEAR(static_cast<double>(index.centroid_cosine(label, cosines)), expected, 1e-5) << label;
      }
    }
  }
}

// Claim: rows that cancel each other out but for the smallest float have no centroid.
TEST(InstanceIndex, NoCentroidOfRowsThatCancel) {
  CentroidLengths lengths(2);
  const std::vector<std::uint32_t> index = {0, 1};
  lengths.add({index, std::vector<float>{1, 1e-42F}});
  lengths.add({index, std::vector<float>{-1, 0}});
  EXPECT_EQ(lengths.take_inverse(), 0.0F);
  lengths.add({index, std::vector<float>{0, 0.5F}});
  EXPECT_EQ(lengths.take_inverse(), 2.0F);
}

// Claim: a cosine that is not finite, or beyond 2^20, counts nothing in the sum of its label. Others count
// whole units of 2^-33.
TEST(InstanceIndex, SumsLeaveOutWhatIsNoCosine) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> told = {0.5F, nan, infinity, -infinity, -2e6F, 1048576.0F, -0.25F};
  Instances instances;
  instances.feature_begin = {0};
  instances.label_begin = {0};
  for (std::size_t r = 0; r < told.size(); ++r) {
    instances.feature.push_back(0);
    instances.value.push_back(1);
    instances.label.push_back(0);
    instances.feature_begin.push_back(static_cast<std::uint32_t>(r + 1));
    instances.label_begin.push_back(static_cast<std::uint32_t>(r + 1));
  }
  host::SimCompute compute({});
  const InstanceIndex index(instances, {.features = 1, .labels = 1}, best_kernels(), compute);
  std::vector<float> cosines(index.padded_rows(), 0);
  std::copy(told.begin(), told.end(), cosines.begin());
  constexpr std::int64_t kOne = std::int64_t{1} << 33;
  EXPECT_EQ(index.centroid_sum(0, cosines), kOne / 2 + (kOne << 20) - kOne / 4);
}

}  // namespace
}  // namespace gossamer::sparse_engine
