// SPDX-License-Identifier: Apache-2.0
#include "commands/records/weighting_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "learn/data/in_memory_dataset.h"

namespace gossamer::commands {
namespace {

using sparse_engine::Weighting;
using ::testing::ElementsAre;
using ::testing::FloatEq;

// Each choice gives the numbers of its definition, worked out by hand.
TEST(WeightingChoice, NumbersByHand) {
  data::InMemoryDataset set({.features = 3, .labels = 1});
  set.add({0, 1}, {1, 3}, {0});
  set.add({0, 2}, {2, 1}, {0});
  const std::array<std::uint32_t, 2> index = {0, 1};
  const std::array<float, 2> value = {1, 3};
  const auto weigh = [&](std::optional<Weighting> wanted) {
    std::array<float, 2> out{};
    choose_weighting(wanted, set, {}).weighting.apply({index, value}, out);
    return out;
  };
  EXPECT_EQ(weigh(Weighting::kNone), value);
  EXPECT_FLOAT_EQ(weigh(Weighting::kL2)[1], 3 / std::sqrt(10.0F));
  // Feature 0 is in both records, so ln(2/2) = 0. Feature 1 is left alone and gets length 1.
  EXPECT_THAT(weigh(Weighting::kTfIdf), ElementsAre(FloatEq(0), FloatEq(1)));
  EXPECT_THAT(weigh({}), ElementsAre(FloatEq(0), FloatEq(1))) << "counts are weighted like tfidf";
}

// Every choice says in words what it does.
TEST(WeightingChoice, GivesReasons) {
  data::InMemoryDataset set({.features = 1, .labels = 1});
  set.add({0}, {0.5F}, {0});
  for (const auto wanted : {std::optional<Weighting>(), std::optional(Weighting::kNone),
                            std::optional(Weighting::kTfIdf), std::optional(Weighting::kL2)}) {
    EXPECT_FALSE(choose_weighting(wanted, set, {}).reason.empty());
  }
}

}  // namespace
}  // namespace gossamer::commands
