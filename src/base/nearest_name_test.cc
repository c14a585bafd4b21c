// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.h"

#include <gtest/gtest.h>

#include <vector>

namespace gossamer {
namespace {

// One typing mistake of each kind (miss, double, swap, replace) still finds the word.
TEST(NearestName, FindsOneMistake) {
  const std::vector<std::string_view> names = {"train", "eval", "predict", "doctor", "version", "data"};
  for (const std::string_view name : names) {
    for (std::size_t i = 0; i < name.size(); ++i) {
      const std::string word(name);
      EXPECT_EQ(nearest_name(std::string(word).erase(i, 1), names), name);
      EXPECT_EQ(nearest_name(std::string(word).insert(i, 1, word[i]), names), name);
      EXPECT_EQ(nearest_name(std::string(word).replace(i, 1, "z"), names), name);
      if (i == 0) continue;
      std::string swapped = word;
      std::swap(swapped[i], swapped[i - 1]);
      EXPECT_EQ(nearest_name(swapped, names), name);
    }
  }
}

// The last part of a dotted name is enough; without names there is no answer.
TEST(NearestName, LastPartCounts) {
  const std::vector<std::string_view> names = {"data.train", "train.batch", "seed"};
  EXPECT_EQ(nearest_name("batch", names), "train.batch");
  EXPECT_EQ(nearest_name("bacth", names), "train.batch");
  EXPECT_EQ(nearest_name("x", {}), "");
}

}  // namespace
}  // namespace gossamer
