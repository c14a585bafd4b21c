// SPDX-License-Identifier: Apache-2.0
#include "learn/data/line_bag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "base/rng.h"

namespace gossamer::data {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

// Each age weighs decay times the age before; an item that stands twice weighs the sum of both; the row has
// length 1. Items older than `last` weigh nothing.
TEST(LineBag, WeighsByAge) {
  LineBag bag({.last = 3, .decay = 0.5F});
  const std::vector<std::uint32_t> items = {9, 4, 7, 4};
  const SparseRow row = bag.row(items);
  const float length = std::sqrt(1.25F * 1.25F + 0.5F * 0.5F);
  EXPECT_THAT(row.index, ElementsAre(4, 7));
  EXPECT_THAT(row.value, ElementsAre(FloatNear(1.25F / length, 1e-6F), FloatNear(0.5F / length, 1e-6F)));
  EXPECT_TRUE(bag.row({}).index.empty());
  LineBag mean({.last = 10, .decay = 1, .scale = LineScale::kSum});
  EXPECT_THAT(mean.row(items).value, ElementsAre(0.5F, 0.25F, 0.25F));
}

// Random sessions: the definition, term by term.
TEST(LineBag, MatchesTheDefinition) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, Purpose::kTest);
    const LineShape shape{.last = 1 + static_cast<std::uint32_t>(rng.below(12)),
                          .decay = 0.05F + 0.95F * rng.uniform()};
    std::vector<std::uint32_t> items(rng.below(20));
    for (std::uint32_t& item : items) item = static_cast<std::uint32_t>(rng.below(6));
    std::map<std::uint32_t, double> expected;
    for (std::size_t age = 0; age < items.size() && age < shape.last; ++age) {
      expected[items[items.size() - 1 - age]] += std::pow(shape.decay, static_cast<double>(age));
    }
    double squares = 0;
    for (const auto& [item, value] : expected) squares += value * value;
    LineBag bag(shape);
    const SparseRow row = bag.row(items);
    ASSERT_EQ(row.index.size(), expected.size());
    std::size_t i = 0;
    for (const auto& [item, value] : expected) {
      EXPECT_EQ(row.index[i], item);
      EXPECT_NEAR(row.value[i++], value / std::sqrt(squares), 1e-5);
    }
  }
}

}  // namespace
}  // namespace gossamer::data
