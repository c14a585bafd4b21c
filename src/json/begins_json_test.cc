// SPDX-License-Identifier: Apache-2.0
#include "json/begins_json.h"

#include <gtest/gtest.h>

#include <string>

#include "json/read_json.h"

namespace gossamer {
namespace {

// Claim: JSON is told by its first value. What comes far behind does not count, and words in brackets are
// none.
TEST(BeginsJson, ByTheFirstValue) {
  for (const char* json :
       {"{}", "{\"a\": [1, {}]} words", "[[1], {words", "[{\"a\": 1}]", "[\"a\"\n, 1 words", "[ \"a\" ]"})
    EXPECT_TRUE(begins_json(json, true)) << json;
  for (const char* words :
       {"", "a", "1", "\"a\"", "[]", "[1, 2]", "[null, {}]", "[\"a\" b", "[\"a\"", "[[a]] b", "[[1], words",
        "[\"a\", she said", "[[1],", "[[1]", "{a}", "{\"a\" b}", "{\"a\": 1"})
    EXPECT_FALSE(begins_json(words, true)) << words;
}

// Claim: a value that is cut off counts where the text is not whole, words do not.
TEST(BeginsJson, MayBeCutOff) {
  for (const char* json : {"{\"a\": 1", "[{\"a\": \"b", "[\"a\""})
    EXPECT_TRUE(begins_json(json, false)) << json;
  for (const char* words : {"[\"a\" b and more", "{a}, and more", "[[a and more"})
    EXPECT_FALSE(begins_json(words, false)) << words;
}

// Claim: what is nested too deeply is no JSON, and ends no stack.
TEST(BeginsJson, TooDeep) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_TRUE(begins_json(nested(kMostJsonLevels), true));
  EXPECT_FALSE(begins_json(nested(kMostJsonLevels + 1), true));
  EXPECT_FALSE(begins_json(std::string(1'000'000, '['), false));
}

}  // namespace
}  // namespace gossamer
