// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/row_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/aligned_array.h"
#include "base/rng.h"
#include "host/sim/compute.h"
#include "kernels/products.h"

namespace gossamer::engine {
namespace {

using kernels::Element;

// A matrix, queries and the scores of all rows. Small integers: every product is exact in f32 and in bf16,
// and ties are many.
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

// The lists are those of sorting all scores, ties by id included, for both element types, every instruction
// set of this machine, rows around the panel's edges, both sizes of block and several workers.
TEST(RowSearch, FindsTheBestRows) {
  std::uint64_t seed = 0;
  for (const kernels::Isa isa : kernels::kAllIsas) {
    if (!kernels::supported(isa)) continue;
    for (const std::size_t rows : {1U, 63U, 64U, 65U, 700U}) {
      for (const std::size_t queries : {1U, 32U, 33U, 256U}) {
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
        for (const Element element : {Element::kF32, Element::kBf16}) {
          const int workers = 1 + static_cast<int>(seed % 3);
          host::SimCompute compute({.workers = workers, .seed = seed});
          for (const RowMatrix& matrix : {weights, compact}) {
            const auto search = RowSearch::create(matrix, kernels::kernels_for(isa), element, workers);
            for (const std::size_t k : {1U, 10U, 100U}) {
              search->search({c.values.data(), queries}, k, compute);
              for (std::size_t q = 0; q < queries; ++q) {
                const auto found = search->found(q);
                ASSERT_EQ(std::vector<Scored>(found.begin(), found.end()), c.best(q, k, matrix.bias))
                    << "query " << q << " k " << k;
              }
            }
          }
        }
      }
    }
  }
}

// NaN and minus infinity are never found, and do not keep others from being found.
TEST(RowSearch, NeverFindsWhatHasNoOrder) {
  Case c(130, 32, 2, 7);
  for (std::size_t r = 0; r < 130; r += 2) c.bias[r] = std::numeric_limits<float>::quiet_NaN();
  c.bias[1] = -std::numeric_limits<float>::infinity();
  host::SimCompute compute({});
  const auto search = RowSearch::create(
      {.rows = 130, .width = 32, .weights = c.weights.data(), .stride = c.stride, .bias = c.bias.data()},
      kernels::kernels_for(kernels::best_isa()), Element::kF32, 1);
  search->search({c.values.data(), 2}, 100, compute);
  for (std::size_t q = 0; q < 2; ++q) {
    ASSERT_EQ(search->found(q).size(), 64U);
    for (const Scored& entry : search->found(q)) EXPECT_TRUE(entry.id % 2 == 1 && entry.id != 1) << entry.id;
  }
}

}  // namespace
}  // namespace gossamer::engine
