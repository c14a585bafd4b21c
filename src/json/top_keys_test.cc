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
  EXPECT_THAT(
      top_keys(R"({"a": [{}], "b": [{}, 1], "c": [1, {}], "d": [[{}]], "e": {"f": [{}]}, "g": [], "h": {}})")
          .arrays_of_objects,
      ElementsAre("a", "b"));
  EXPECT_THAT(top_keys("{\"data\": [ {\"te").arrays_of_objects, ElementsAre("data"));
  EXPECT_THAT(top_keys("{\"data\": [" + std::string(100'000, '[')).arrays_of_objects, IsEmpty());
}

}  // namespace
}  // namespace gossamer
