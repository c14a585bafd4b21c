// SPDX-License-Identifier: Apache-2.0
#include "learn/data/token_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace gossamer::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "a b | c": words between blanks, | for a line end.
Result<TokenText> build(const std::string& text, const VocabularyLimits& limits) {
  TokenTextBuilder builder;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word == "|") {
      builder.end_line();
    } else {
      builder.add(word);
    }
  }
  return builder.finish(limits);
}

// Numbers by falling count, ties by first appearance; rare words leave the text, and lines that become empty.
TEST(TokenText, NumbersByCountAndDropsRareWords) {
  const auto text = build("| b a b | rare | | a c b c |", {.min_count = 2});
  ASSERT_TRUE(text.ok()) << text.error().message();
  EXPECT_THAT(text->words, ElementsAre("b", "a", "c"));
  EXPECT_THAT(text->count, ElementsAre(3, 2, 2));
  EXPECT_THAT(text->token, ElementsAre(0, 1, 0, TokenText::kLineEnd, 1, 2, 0, 2));
}

// The most frequent words are kept first; a text without a frequent word is refused with what it has.
TEST(TokenText, Limits) {
  const auto most = build("a b b c c c", {.min_count = 1, .max_words = 2});
  ASSERT_TRUE(most.ok());
  EXPECT_THAT(most->words, ElementsAre("c", "b"));
  EXPECT_THAT(most->token, ElementsAre(1, 1, 0, 0, 0));
  const auto none = build("a b b", {.min_count = 3});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kBadData);
  EXPECT_THAT(none.error().message(), HasSubstr("the same word at most 2 times"));
  EXPECT_FALSE(build("", {.min_count = 1}).ok());
}

}  // namespace
}  // namespace gossamer::data
