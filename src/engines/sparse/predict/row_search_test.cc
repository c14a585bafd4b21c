// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/row_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/aligned_array.h"
#include "base/rng.h"
#include "host/sim/compute.h"
#include "kernels/products.h"

namespace gossamer::sparse_engine {
namespace {

// A matrix, queries and the scores of all rows. Numbers are small integers, so every product is exact in f32
// and in bf16, and ties are many.
struct Case {
  Case(std::size_t rows, std::size_t width, std::size_t queries, std::uint64_t seed)
      : stride(kernels::padded_to_panel(width)),
        weights(rows * stride),
        compact(rows * width),
        bias(rows),
        values(kQueryBlock * stride),
        scores(queries, std::vector<Scored>(rows)) {
    Rng rng(seed, Purpose::kTest);
    const auto draw = [&rng] { return static_cast<float>(rng.below(5)) - 2; };
    const kernels::Kernels& k = kernels::kernels_for(kernels::Isa::kScalar);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t i = 0; i < width; ++i) weights[r * stride + i] = draw();
      k.to_bf16(weights.data() + r * stride, compact.data() + r * width, width);
      bias[r] = draw();
    }
    for (std::size_t q = 0; q < queries; ++q) {
      for (std::size_t i = 0; i < width; ++i) values[q * stride + i] = draw();
      for (std::size_t r = 0; r < rows; ++r) {
        float sum = 0;
        for (std::size_t i = 0; i < width; ++i) sum += weights[r * stride + i] * values[q * stride + i];
        scores[q][r] = {static_cast<std::uint32_t>(r), sum};
      }
    }
  }
  [[nodiscard]] std::vector<Scored> best(std::size_t q, std::size_t k, const float* added) const {
    std::vector<Scored> list = scores[q];
    if (added != nullptr) {
      for (Scored& entry : list) entry.score += added[entry.id];
    }
    std::sort(list.begin(), list.end(), ranks_before);
    list.resize(std::min(k, list.size()));
    return list;
  }

  std::size_t stride;
  AlignedArray<float> weights;
  AlignedArray<kernels::Bf16> compact;
  AlignedArray<float> bias;
  AlignedArray<float> values;
  std::vector<std::vector<Scored>> scores;
};

// The lists equal those from sorting all scores, ties by id included. This holds for rows of floats and of
// bf16, and for every instruction set of this machine. Rows lie around the panel's edges; query blocks have
// all sizes, and there are several workers.
TEST(RowSearch, FindsTheBestRows) {
  std::uint64_t seed = 0;
  for (const kernels::Isa isa : kernels::kAllIsas) {
    if (!kernels::supported(isa)) continue;
    for (const std::size_t rows : {1U, 63U, 64U, 65U, 700U}) {
      for (const std::size_t queries : {1U, 5U, 33U, 65U, 256U}) {
        const std::size_t width = queries == 33 ? 48 : 32;
        SCOPED_TRACE(::testing::Message()
                     << kernels::name(isa) << " rows " << rows << " queries " << queries << " seed " << seed);
        const Case c(rows, width, queries, seed++);
        const RowMatrix weights{.rows = rows,
                                .width = width,
                                .weights = c.weights.data(),
                                .stride = c.stride,
                                .bias = c.bias.data()};
        const RowMatrix compact{.rows = rows, .width = width, .compact = c.compact.data()};
        host::SimCompute compute({.workers = 1 + static_cast<int>(seed % 3), .seed = seed});
        for (const RowMatrix& matrix : {weights, compact}) {
          RowSearch search(matrix, kernels::kernels_for(isa), compute);
          for (const std::size_t k : {1U, 10U, 100U}) {
            search.search({c.values.data(), c.stride, queries}, k);
            for (std::size_t q = 0; q < queries; ++q) {
              const auto found = search.found(q);
              ASSERT_EQ(std::vector<Scored>(found.begin(), found.end()), c.best(q, k, matrix.bias))
                  << "query " << q << " k " << k;
            }
          }
        }
      }
    }
  }
}

// A search among some rows of a matrix, wherever they stand, equals a search in a matrix of these rows alone.
TEST(RowSearch, FindsAmongTheRowsThatTakePart) {
  const Case c(700, 32, 40, 77);
  std::vector<std::uint32_t> at;
  for (std::uint32_t row = 0; row < 700; row += 1 + row % 3) at.push_back(699 - row);
  std::vector<float> weights;
  std::vector<kernels::Bf16> compact;
  std::vector<float> bias;
  for (const std::size_t row : at) {
    weights.insert(weights.end(), c.weights.data() + row * c.stride, c.weights.data() + (row + 1) * c.stride);
    compact.insert(compact.end(), c.compact.data() + row * 32, c.compact.data() + (row + 1) * 32);
    bias.push_back(c.bias[row]);
  }
  host::SimCompute compute({.workers = 2, .seed = 1});
  const kernels::Kernels& kernels = kernels::kernels_for(kernels::best_isa());
  RowMatrix all{.rows = at.size(), .width = 32, .stride = c.stride, .bias = c.bias.data(), .at = at};
  RowMatrix alone{.rows = at.size(), .width = 32, .stride = c.stride, .bias = bias.data()};
  for (const bool rounded : {false, true}) {
    all.weights = rounded ? nullptr : c.weights.data();
    all.compact = rounded ? c.compact.data() : nullptr;
    alone.weights = rounded ? nullptr : weights.data();
    alone.compact = rounded ? compact.data() : nullptr;
    RowSearch search(all, kernels, compute);
    RowSearch other(alone, kernels, compute);
    search.search({c.values.data(), c.stride, 40}, 30);
    other.search({c.values.data(), c.stride, 40}, 30);
    for (std::size_t q = 0; q < 40; ++q) {
      const auto got = search.found(q);
      const auto want = other.found(q);
      ASSERT_EQ(std::vector<Scored>(got.begin(), got.end()), std::vector<Scored>(want.begin(), want.end()));
    }
  }
}

// Rows that bytes cannot tell apart are found as sorting all of Kernels::dot's scores finds them, bit for
// bit. Weights are as training leaves them, with scores that lie close together. Queries have negative
// elements or not.
TEST(RowSearch, FindsWhatBytesCannotTell) {
  constexpr std::size_t kRows = 3000;
  constexpr std::size_t kRowWidth = 48;
  constexpr std::size_t kQueries = 40;
  for (const kernels::Isa isa : kernels::kAllIsas) {
    if (!kernels::supported(isa)) continue;
    const kernels::Kernels& kernels = kernels::kernels_for(isa);
    for (const bool negative : {false, true}) {
      SCOPED_TRACE(::testing::Message() << kernels::name(isa) << " negative " << negative);
      Case c(kRows, kRowWidth, kQueries, 11);
      Rng rng(11, Purpose::kTest, 1);
      for (std::size_t r = 0; r < kRows; ++r) {
        for (std::size_t i = 0; i < kRowWidth; ++i) c.weights[r * c.stride + i] = 1 + 0.001F * rng.normal();
        c.bias[r] = 0.01F * rng.normal();
      }
      for (std::size_t q = 0; q < kQueries; ++q) {
        for (std::size_t i = 0; i < kRowWidth; ++i) {
          const float v = rng.normal();
          c.values[q * c.stride + i] = negative ? v : std::abs(v);
        }
      }
      host::SimCompute compute({.workers = 2});
      const RowMatrix matrix{.rows = kRows,
                             .width = kRowWidth,
                             .weights = c.weights.data(),
                             .stride = c.stride,
                             .bias = c.bias.data()};
      RowSearch search(matrix, kernels, compute);
      search.search({c.values.data(), c.stride, kQueries}, 20);
      for (std::size_t q = 0; q < kQueries; ++q) {
        std::vector<Scored> expected;
        for (std::uint32_t r = 0; r < kRows; ++r) {
          const float* const row = c.weights.data() + r * c.stride;
          expected.push_back({r, kernels.dot(row, c.values.data() + q * c.stride, kRowWidth) + c.bias[r]});
        }
        std::sort(expected.begin(), expected.end(), ranks_before);
        expected.resize(20);
        const auto found = search.found(q);
        ASSERT_EQ(std::vector<Scored>(found.begin(), found.end()), expected) << "query " << q;
      }
    }
  }
}

// Rows of very different lengths are found as sorting all scores finds them, though most are passed over
// without a product. Among them are short rows with a large bias, ties between ids in either order, a query
// of zeros and rows of zeros.
TEST(RowSearch, PassesOverShortRows) {
  constexpr std::size_t kRows = 20000;
  constexpr std::size_t kQueries = 9;
  Case c(kRows, 32, kQueries, 5);
  Rng rng(5, Purpose::kTest, 1);
  for (std::size_t r = 0; r < kRows; ++r) {
    // Powers of two keep the products exact. Copies of an earlier row tie with it.
    const float length = std::ldexp(1.0F, -static_cast<int>(rng.below(12)));
    const std::size_t source = r % 7 == 6 ? r - 5 : r;
    for (std::size_t i = 0; i < 32; ++i) {
      c.weights[r * c.stride + i] =
          source == r ? length * c.weights[r * c.stride + i] : c.weights[source * c.stride + i];
    }
    c.bias[r] = r % 500 == 0 ? 1 : 0;
  }
  std::fill_n(c.weights.data() + 77 * c.stride, 32, 0.0F);
  c.bias[77] = 1000;
  for (std::size_t q = 0; q < kQueries; ++q) {
    for (std::size_t r = 0; r < kRows; ++r) {
      float sum = 0;
      for (std::size_t i = 0; i < 32; ++i) sum += c.weights[r * c.stride + i] * c.values[q * c.stride + i];
      c.scores[q][r].score = sum;
    }
  }
  for (const int workers : {1, 3}) {
    host::SimCompute compute({.workers = workers});
    RowSearch search(
        {.rows = kRows, .width = 32, .weights = c.weights.data(), .stride = c.stride, .bias = c.bias.data()},
        kernels::kernels_for(kernels::best_isa()), compute);
    for (const std::size_t k : {1U, 5U, 50U}) {
      search.search({c.values.data(), c.stride, kQueries}, k);
      for (std::size_t q = 0; q < kQueries; ++q) {
        const auto found = search.found(q);
        ASSERT_EQ(std::vector<Scored>(found.begin(), found.end()), c.best(q, k, c.bias.data()))
            << "query " << q << " k " << k << " workers " << workers;
      }
      EXPECT_LT(search.screened_share(), 0.6) << k;
    }
  }
  // For a query of zeros only the biases decide, and long rows have ordinary biases.
  std::fill_n(c.values.data(), 32, 0.0F);
  host::SimCompute compute({});
  RowSearch search(
      {.rows = kRows, .width = 32, .weights = c.weights.data(), .stride = c.stride, .bias = c.bias.data()},
      kernels::kernels_for(kernels::best_isa()), compute);
  search.search({c.values.data(), c.stride, 1}, 3);
  const auto found = search.found(0);
  EXPECT_EQ(std::vector<Scored>(found.begin(), found.end()),
            (std::vector<Scored>{{77, 1000}, {0, 1}, {500, 1}}));
}

// The first k rows are found although all rows score alike and outgrow every list.
TEST(RowSearch, ManyEqualRows) {
  Case c(5000, 32, 1, 3);
  std::fill_n(c.weights.data(), c.weights.size(), 0.3F);
  host::SimCompute compute({.workers = 2});
  RowSearch search({.rows = 5000, .width = 32, .weights = c.weights.data(), .stride = c.stride},
                   kernels::kernels_for(kernels::best_isa()), compute);
  search.search({c.values.data(), c.stride, 1}, 7);
  ASSERT_EQ(search.found(0).size(), 7U);
  for (std::uint32_t i = 0; i < 7; ++i) EXPECT_EQ(search.found(0)[i].id, i);
}

// The search begins again if the sample promises more high scores than there are, as some queries see it and
// others do not. It still finds what sorting finds, also if the sample promises too few. (The sample is every
// 16th row of equal length, from the 9th on.)
TEST(RowSearch, SampleMisleads) {
  constexpr std::size_t kRows = 20000;
  constexpr std::size_t kQueries = 5;
  Case c(kRows, 32, kQueries, 9);
  std::fill_n(c.weights.data(), c.weights.size(), 0.0F);
  std::fill_n(c.values.data(), c.values.size(), 0.0F);
  for (std::size_t r = 0; r < kRows; ++r) {
    // Rows have length 2. Coordinate 0 is high in 40 rows of the sample, coordinate 1 in 1000 rows beside it.
    const bool sampled = r % 16 == 8;
    const std::size_t axis = sampled && r < 640 ? 0 : !sampled && r < 1066 ? 1 : 2 + r % 20;
    c.weights[r * c.stride + axis] = 2;
    c.bias[r] = static_cast<float>(r % 50) / 64;
  }
  for (std::size_t q = 0; q < kQueries; ++q) {
    c.values[q * c.stride + q % 3] = 1;
    for (std::size_t r = 0; r < kRows; ++r) c.scores[q][r].score = c.weights[r * c.stride + q % 3];
  }
  for (const int workers : {1, 2}) {
    host::SimCompute compute({.workers = workers});
    RowSearch search(
        {.rows = kRows, .width = 32, .weights = c.weights.data(), .stride = c.stride, .bias = c.bias.data()},
        kernels::kernels_for(kernels::best_isa()), compute);
    for (const std::size_t k : {1U, 20U, 100U, 3000U}) {
      search.search({c.values.data(), c.stride, kQueries}, k);
      for (std::size_t q = 0; q < kQueries; ++q) {
        const auto found = search.found(q);
        ASSERT_EQ(std::vector<Scored>(found.begin(), found.end()), c.best(q, k, c.bias.data()))
            << "query " << q << " k " << k << " workers " << workers;
      }
      EXPECT_LE(search.screened_share(), 1.0);
    }
  }
}

// NaN and minus infinity are never found, and do not keep others from being found.
TEST(RowSearch, NeverFindsWhatHasNoOrder) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Case c(130, 32, 3, 7);
  for (std::size_t r = 0; r < 130; r += 2) c.bias[r] = kNan;
  c.bias[1] = -kInfinity;
  for (std::size_t i = 0; i < 32; ++i) {
    c.values[i] = 1;
    c.weights[3 * c.stride + i] = i == 4 ? kNan : 1;
    c.weights[5 * c.stride + i] = i == 4 ? kInfinity : 1;
    c.weights[7 * c.stride + i] = i == 4 ? -kInfinity : 1;
  }
  c.values[2 * c.stride + 9] = kNan;
  host::SimCompute compute({});
  RowSearch search(
      {.rows = 130, .width = 32, .weights = c.weights.data(), .stride = c.stride, .bias = c.bias.data()},
      kernels::kernels_for(kernels::best_isa()), compute);
  search.search({c.values.data(), c.stride, 3}, 100);
  ASSERT_EQ(search.found(0).size(), 62U);
  EXPECT_EQ(search.found(0)[0], (Scored{5, kInfinity}));
  for (const Scored& entry : search.found(0)) {
    EXPECT_TRUE(entry.id % 2 == 1 && entry.id != 1 && entry.id != 3 && entry.id != 7) << entry.id;
  }
  EXPECT_GE(search.found(1).size(), 61U);
  EXPECT_TRUE(search.found(2).empty());
}

}  // namespace
}  // namespace gossamer::sparse_engine
