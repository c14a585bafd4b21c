// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/frequent_labels.h"

#include <gtest/gtest.h>

namespace gossamer::sparse_engine {
namespace {

// Every query gets the most frequent labels, ties by the smaller id, without those never seen.
TEST(FrequentLabels, RanksByTrainingCount) {
  Model model;
  model.label_count = {2, 0, 7, 2, 1};
  const auto predictor = frequent_labels(model);
  const std::vector<std::uint32_t> begin = {0, 0, 0};
  PredictionBlock out;
  EXPECT_TRUE(predictor->predict({.begin = begin, .index = {}, .value = {}}, 3, out).ok());
  ASSERT_EQ(out.queries(), 2U);
  const std::vector<Scored> expected = {{2, 7}, {0, 2}, {3, 2}};
  for (std::size_t q = 0; q < 2; ++q) {
    EXPECT_EQ(std::vector<Scored>(out.row(q).begin(), out.row(q).end()), expected);
  }
  EXPECT_TRUE(predictor->predict({.begin = begin, .index = {}, .value = {}}, 10, out).ok());
  EXPECT_EQ(out.row(1).size(), 4U);
}

}  // namespace
}  // namespace gossamer::sparse_engine
