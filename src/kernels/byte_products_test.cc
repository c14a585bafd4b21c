// SPDX-License-Identifier: Apache-2.0
#include "kernels/byte_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"
#include "kernels/test_inputs.h"

namespace gossamer::kernels {
namespace {

class ByteProductsOnIsa : public OnIsa {};

// Random bytes with the extremes among them, and one row and one query of extremes alone: the largest sums.
struct Case {
  explicit Case(PanelShape of)
      : shape(of), rows(kPanelRows * shape.hidden), queries(shape.batch * shape.hidden) {
    Rng rng(shape.hidden, Purpose::kTest, shape.batch);
    for (auto& x : rows) x = static_cast<std::int8_t>(static_cast<int>(rng.below(256)) - 128);
    for (auto& x : queries) x = static_cast<std::uint8_t>(rng.below(256));
    std::fill_n(rows.begin(), shape.hidden, std::int8_t{-128});
    std::fill_n(queries.begin(), shape.hidden, std::uint8_t{255});
  }
  [[nodiscard]] std::int32_t product(std::size_t row, std::size_t query) const {
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < shape.hidden; ++i) {
      sum += int{rows[row * shape.hidden + i]} * int{queries[query * shape.hidden + i]};
    }
    return sum;
  }

  PanelShape shape;
  std::vector<std::int8_t> rows;
  std::vector<std::uint8_t> queries;
};

// All products are exact, also where sums are largest, for widths and batches around all blocks; what was in
// s does not matter.
TEST_P(ByteProductsOnIsa, AreExact) {
  for (const std::size_t hidden : {16U, 48U, 128U, 256U, 1024U, 2064U}) {
    for (const std::size_t batch : {32U, 64U, 96U, 256U}) {
      SCOPED_TRACE(testing::Message() << hidden << " x " << batch);
      const Case c({.hidden = hidden, .batch = batch});
      const ByteProducts products(GetParam(), c.shape);
      ByteProducts::Queries packed = products.queries();
      products.pack(c.queries.data(), packed);
      AlignedArray<std::int16_t> scratch(products.scratch_size());
      std::vector<std::int32_t> s(kPanelRows * batch, 99);
      products.scores(c.rows.data(), packed, scratch.data(), s.data());
      for (std::size_t r = 0; r < kPanelRows; ++r) {
        for (std::size_t b = 0; b < batch; ++b) ASSERT_EQ(s[r * batch + b], c.product(r, b)) << r << " " << b;
      }
    }
  }
}

// LIBXSMM serves wherever the CPU has the instructions.
TEST_P(ByteProductsOnIsa, GeneratedWhereKnown) {
  const bool vnni = __builtin_cpu_supports("avx512vnni") != 0;
  EXPECT_EQ(ByteProducts(GetParam(), {.hidden = 128, .batch = 256}).generated(),
            GetParam() >= Isa::kAvx512 && vnni);
}

INSTANTIATE_TEST_SUITE_P(, ByteProductsOnIsa, testing::ValuesIn(kAllIsas), isa_word);

}  // namespace
}  // namespace gossamer::kernels
