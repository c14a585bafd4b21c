// SPDX-License-Identifier: Apache-2.0
#include "json/top_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Claim: the keys of the top are found, in a text that is cut off, too, and none of what is within or behind.
TEST(TopKeys, FindsKeysOfTheTop) {
  EXPECT_THAT(top_keys(R"({"n": 1, "data": [{"text": "a"}, {}], "m": {"x": [{}]}} {"y": 1})").all,
              ElementsAre("n", "data", "m"));
  EXPECT_THAT(top_keys("{\"n\": 1, \"data\": [ {\"te").all, ElementsAre("n", "data"));
  EXPECT_THAT(top_keys(R"([{"a": 1}])").all, IsEmpty());
  EXPECT_THAT(top_keys("text").all, IsEmpty());
}

// Claim: an array counts by its first element, and at the top alone. Brackets without end are given up.
TEST(TopKeys, FindsArraysOfObjects) {
  const auto keys = [](std::string_view text) {
    std::vector<std::string> found;
    for (const TopKeys::Array& array : top_keys(text).arrays) found.push_back(array.key);
    return found;
  };
  EXPECT_THAT(
      keys(R"({"a": [{}], "b": [{}, 1], "c": [1, {}], "d": [[{}]], "e": {"f": [{}]}, "g": [], "h": {}})"),
      ElementsAre("a", "b"));
  EXPECT_THAT(keys("{\"data\": [ {\"te"), ElementsAre("data"));
  EXPECT_THAT(keys("{\"data\": [" + std::string(100'000, '[')), IsEmpty());
}

// Claim: of an array, the keys of its first element are told, and whether its end was read.
TEST(TopKeys, FindsTheFirstElement) {
  const TopKeys cut = top_keys(R"({"a": [{"x": {"in": 1}, "y": [{"z": 1}]}, {"w": 1}], "b": [{"v": 1}, {"u)");
  ASSERT_EQ(cut.arrays.size(), 2U);
  EXPECT_THAT(cut.arrays[0].first, ElementsAre("x", "y"));
  EXPECT_TRUE(cut.arrays[0].whole);
  EXPECT_THAT(cut.arrays[1].first, ElementsAre("v"));
  EXPECT_FALSE(cut.arrays[1].whole);
}

}  // namespace
}  // namespace gossamer
