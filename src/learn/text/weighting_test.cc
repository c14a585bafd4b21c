// SPDX-License-Identifier: Apache-2.0
#include "learn/text/weighting.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "learn/data/in_memory_dataset.h"

namespace gossamer::text {
namespace {

using data::InMemoryDataset;

std::vector<float> apply(const FeatureWeighting& weighting, const std::vector<std::uint32_t>& index,
                         const std::vector<float>& value) {
  std::vector<float> out(value.size());
  weighting.apply({.index = index, .value = value}, out);
  return out;
}

// Each step alone does what the header's formula says, and all three together do them in that order.
TEST(FeatureWeighting, FollowsTheFormula) {
  const std::vector<std::uint32_t> index = {0, 1, 2};
  const std::vector<float> value = {1, 4, 0.5F};
  EXPECT_EQ(apply({.l2 = false}, index, value), value);

  const auto log = apply({.counts = CountScale::kLog, .l2 = false}, index, value);
  EXPECT_FLOAT_EQ(log[0], 1);
  EXPECT_FLOAT_EQ(log[1], 1 + std::log(4.0F));
  EXPECT_FLOAT_EQ(log[2], 0.5F);

  const auto scaled = apply({.l2 = false, .idf = {2, 0, 3}}, index, value);
  EXPECT_EQ(scaled, (std::vector<float>{2, 0, 1.5F}));

  const auto all = apply({.counts = CountScale::kLog, .l2 = true, .idf = {2, 1, 3}}, index, value);
  const std::vector<float> raw = {2, 1 + std::log(4.0F), 1.5F};
  const float norm = std::sqrt(raw[0] * raw[0] + raw[1] * raw[1] + raw[2] * raw[2]);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FLOAT_EQ(all[i], raw[i] / norm) << i;
}

// Features that training never saw weigh nothing, empty rows and rows of norm 0 stay what they are.
TEST(FeatureWeighting, UnknownFeaturesAndEmptyRows) {
  const FeatureWeighting weighting{.idf = {1.5F, 0}};
  EXPECT_EQ(apply(weighting, {0, 7}, {3, 9}), (std::vector<float>{1, 0}));
  EXPECT_EQ(apply(weighting, {1, 7}, {3, 9}), (std::vector<float>{0, 0}));
  EXPECT_TRUE(apply(weighting, {}, {}).empty());
}

// The output may overwrite the input.
TEST(FeatureWeighting, WorksInPlace) {
  const std::vector<std::uint32_t> index = {0, 1};
  std::vector<float> value = {3, 4};
  FeatureWeighting{}.apply({.index = index, .value = value}, value);
  EXPECT_FLOAT_EQ(value[0], 0.6F);
  EXPECT_FLOAT_EQ(value[1], 0.8F);
}

// With L2 every row that is not 0 has norm 1, whatever the values.
TEST(FeatureWeighting, RowsHaveLengthOne) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed, Purpose::kTest);
    std::vector<std::uint32_t> index;
    std::vector<float> value;
    for (std::uint32_t i = 0; i < 1 + rng.below(100); ++i) {
      index.push_back(i);
      value.push_back(std::exp(4 * rng.normal()) * (rng.below(2) == 0 ? 1.0F : -1.0F));
    }
    const std::vector<float> out = apply({.counts = CountScale::kLog}, index, value);
    double squares = 0;
    for (const float v : out) squares += static_cast<double>(v) * v;
    EXPECT_NEAR(squares, 1, 1e-5) << "seed " << seed;
  }
}

// Claim: so it is for the smallest and the largest values, and where idf leaves the floats.
TEST(FeatureWeighting, ExtremeRowsHaveLengthOne) {
  for (const float size : {1e-45F, 1e-40F, 1e-20F, 1e20F, 1.5e38F}) {
    EXPECT_EQ(apply({}, {5}, {size}), (std::vector<float>{1})) << size;
    const auto two = apply({.idf = {1, 1}}, {0, 1}, {size, -size});
    EXPECT_FLOAT_EQ(two[0], std::sqrt(0.5F)) << size;
    EXPECT_FLOAT_EQ(two[1], -std::sqrt(0.5F)) << size;
  }
  EXPECT_EQ(apply({.idf = {7, 0}}, {0, 1}, {3e38F, 3e38F}), (std::vector<float>{1, 0}));
}

// 1 + ln(1 + ln v), by hand, and below 1 as it is.
TEST(FeatureWeighting, DoubleLog) {
  const std::vector<std::uint32_t> index = {0, 1, 2};
  const std::vector<float> value = {1, 0.5F, 20};
  const auto out = apply({.counts = CountScale::kDoubleLog, .l2 = false}, index, value);
  EXPECT_FLOAT_EQ(out[0], 1);
  EXPECT_FLOAT_EQ(out[1], 0.5F);
  EXPECT_FLOAT_EQ(out[2], 1 + std::log(1 + std::log(20.0F)));
}

// Counts with idf are compared by other rules than they are learnt from; values that somebody weighted are
// not.
TEST(NeighbourWeighting, FollowsWhatIsLearnt) {
  const FeatureWeighting counts{.counts = CountScale::kLog, .idf = {0, 1, 4}};
  const NeighbourWeighting of_counts = neighbour_weighting(counts);
  EXPECT_EQ(of_counts.counts, CountScale::kDoubleLog);
  const FeatureWeighting compared = comparison_weighting(counts, of_counts);
  EXPECT_TRUE(compared.l2);
  ASSERT_EQ(compared.idf.size(), 3U);
  EXPECT_FLOAT_EQ(compared.idf[0], 0);
  EXPECT_FLOAT_EQ(compared.idf[1], 1);
  EXPECT_FLOAT_EQ(compared.idf[2], std::pow(4.0F, 0.6F));  // docs/recipe.md
  EXPECT_FLOAT_EQ(of_counts.pivot, 0.7F);
  EXPECT_EQ(neighbour_weighting({.idf = {1}}).counts, CountScale::kLinear);
  const NeighbourWeighting of_values = neighbour_weighting({});
  EXPECT_EQ(of_values, NeighbourWeighting{});
  EXPECT_TRUE(comparison_weighting({.l2 = false}, of_values).l2);
}

// Whole numbers are counts: log, idf = ln(N/df) over records with a value other than 0, L2.
TEST(FitWeighting, CountsBecomeTfIdf) {
  InMemoryDataset set({.features = 4, .labels = 1});
  set.add({0, 1}, {1, 3}, {0});
  set.add({0}, {2}, {0});
  set.add({0, 2}, {1, 0}, {});
  const FittedWeighting fitted = fit_weighting(set);
  EXPECT_EQ(fitted.weighting.counts, CountScale::kLog);
  EXPECT_TRUE(fitted.weighting.l2);
  ASSERT_EQ(fitted.weighting.idf.size(), 4U);
  EXPECT_FLOAT_EQ(fitted.weighting.idf[0], 0);
  EXPECT_FLOAT_EQ(fitted.weighting.idf[1], std::log(3.0F));
  EXPECT_FLOAT_EQ(fitted.weighting.idf[2], 0);
  EXPECT_FLOAT_EQ(fitted.weighting.idf[3], 0);
  EXPECT_NE(fitted.reason.find("up to 3"), std::string::npos) << fitted.reason;
}

// Zeros and ones carry no counts: idf without the logarithm.
TEST(FitWeighting, BinaryGetsIdf) {
  InMemoryDataset set({.features = 2, .labels = 1});
  set.add({0}, {1}, {0});
  set.add({0, 1}, {0, 1}, {0});
  const FittedWeighting fitted = fit_weighting(set);
  EXPECT_EQ(fitted.weighting.counts, CountScale::kLinear);
  EXPECT_EQ(fitted.weighting.idf.size(), 2U);
}

// Fractions or negative numbers have been weighted by somebody: only L2, and the sentence counts them.
TEST(FitWeighting, RealValuesAreKept) {
  for (const float odd : {0.5F, -1.0F}) {
    InMemoryDataset set({.features = 2, .labels = 1});
    set.add({0, 1}, {1, 2}, {0});
    set.add({0}, {odd}, {0});
    const FittedWeighting fitted = fit_weighting(set);
    EXPECT_EQ(fitted.weighting.counts, CountScale::kLinear);
    EXPECT_TRUE(fitted.weighting.idf.empty());
    EXPECT_TRUE(fitted.weighting.l2);
    EXPECT_NE(fitted.reason.find("1 of 3"), std::string::npos) << fitted.reason;
  }
}

// Data without values is no special case for the caller.
TEST(FitWeighting, EmptyData) {
  EXPECT_TRUE(fit_weighting(InMemoryDataset({.features = 3, .labels = 1})).weighting.idf.empty());
}

}  // namespace
}  // namespace gossamer::text
