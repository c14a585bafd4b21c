// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/byte_vectors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "kernels/kernels.h"

namespace gossamer::sparse_engine {
namespace {

// Vectors of many shapes: even, with outliers, sparse, tiny, huge, zero.
std::vector<float> random_vector(Rng& rng, std::size_t width, bool negative) {
  const float size = std::pow(10.0F, 20 * rng.uniform() - 10);
  const auto kind = rng.below(6);
  std::vector<float> x(width);
  for (float& v : x) {
    v = size * rng.normal();
    if (kind == 1 && rng.below(30) == 0) v *= 100;
    if (kind == 2 && rng.below(4) != 0) v = 0;
    if (kind == 3) v *= 1e-28F;
    if (kind == 4) v = 0;
    if (!negative) v = std::abs(v);
  }
  return x;
}

// The score of a row, as every kernel sums it up, lies within the bound around the product of the bytes.
TEST(ByteVectors, BoundHoldsForEveryKernel) {
  double closest = 0;
  for (std::uint64_t round = 0; round < 3000; ++round) {
    Rng rng(round, Purpose::kTest);
    const std::size_t width = 16 * (1 + rng.below(20));
    const bool negative = round % 2 == 0;
    const std::vector<float> row = random_vector(rng, width, true);
    const std::vector<float> query = random_vector(rng, width, negative);
    std::vector<std::int8_t> row_bytes(width);
    std::vector<std::uint8_t> query_bytes(width);
    const std::int32_t zero = negative ? 128 : 0;
    const ByteScale r = round_row(row, row_bytes);
    const ByteScale q = round_query(query, zero, query_bytes);
    std::int32_t product = 0;
    for (std::size_t i = 0; i < width; ++i) product += (int{query_bytes[i]} - zero) * int{row_bytes[i]};
    const double screened =
        static_cast<double>(r.scale) * static_cast<double>(q.scale) * static_cast<double>(product);
    const double bound = static_cast<double>(r.norm) * static_cast<double>(q.error) +
                         static_cast<double>(r.error) * static_cast<double>(q.norm) +
                         static_cast<double>(kUnderflow);
    for (const kernels::Isa isa : kernels::kAllIsas) {
      if (!kernels::supported(isa)) continue;
      const float score = kernels::kernels_for(isa).dot(row.data(), query.data(), width);
      const double difference = std::abs(static_cast<double>(score) - screened);
      ASSERT_LE(difference, bound) << "round " << round << " " << kernels::name(isa);
      closest = std::max(closest, difference / bound);
    }
  }
  EXPECT_GT(closest, 0.3);  // a bound is useful only if it is not too wide
}

// Sums are the sums of the bytes, so that the zero of a query can be taken out of a product.
TEST(ByteVectors, SumsOfBytes) {
  Rng rng(1, Purpose::kTest);
  const std::vector<float> x = random_vector(rng, 64, true);
  std::vector<std::int8_t> bytes(64);
  std::int32_t sum = 0;
  const ByteScale scale = round_row(x, bytes);
  for (const std::int8_t b : bytes) sum += b;
  EXPECT_EQ(scale.sum, sum);
}

// A row with NaN or infinity has no bound.
TEST(ByteVectors, NoBoundWithoutNumbers) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> x(32, 1);
    x[5] = bad;
    std::vector<std::int8_t> bytes(32);
    EXPECT_TRUE(std::isinf(round_row(x, bytes).error));
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
