// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gossamer::commands {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<LmQuery> read_line(std::string line, const TextWanted& otherwise = {}) {
  return read_lm_query({.text = std::move(line), .place = "stdin:3"}, otherwise);
}

// Claim: a line is the prompt itself, to the byte, but for a byte order mark.
TEST(LmQuery, ALineIsAPrompt) {
  for (const char* line : {"Once upon", "", "  two blanks", "[1, 2]", "caf\xC3\xA9", "\"quoted\""})
    EXPECT_EQ(read_line(line)->prompt, line);
  EXPECT_EQ(read_line("\xEF\xBB\xBFOnce")->prompt, "Once");
}

// Claim: an object says what it says, and the rest is as otherwise.
TEST(LmQuery, AnObjectSaysMore) {
  const TextWanted otherwise{.tokens = 9, .temperature = 0.5, .top_k = 4, .seed = 8};
  const auto all =
      read_line(R"( {"text": "{x", "tokens": 3, "temperature": 2, "top_k": 0, "seed": 7})", otherwise);
  ASSERT_TRUE(all.ok()) << all.error().message();
  EXPECT_EQ(all->prompt, "{x");
  EXPECT_EQ(all->wanted.tokens, 3U);
  EXPECT_EQ(all->wanted.temperature, 2);
  EXPECT_EQ(all->wanted.top_k, 0U);
  EXPECT_EQ(all->wanted.seed, 7U);
  const auto some = read_line(R"({"text": "", "seed": 1, "token": 5, "max": 2})", otherwise);
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->wanted.tokens, 9U);
  EXPECT_EQ(some->wanted.temperature, 0.5);
  EXPECT_EQ(some->wanted.seed, 1U);
  EXPECT_THAT(some->ignored, ElementsAre("token", "max"));
}

// Claim: every value out of range, and every line that is no query, is an error with the query's place.
TEST(LmQuery, RefusesWhatIsNoQuery) {
  for (const char* line :
       {"{", "{}", R"({"tokens": 3})", R"({"text": 5})", R"({"text": null})", R"({"text": "a"} more)",
        R"({"text": "a", "text": "b"})", R"({"text": "a", "tokens": 0})",
        R"({"text": "a", "tokens": 1000001})", R"({"text": "a", "tokens": -1})",
        R"({"text": "a", "tokens": 1.5})", R"({"text": "a", "tokens": "3"})",
        R"({"text": "a", "temperature": -0.1})", R"({"text": "a", "temperature": 1001})",
        R"({"text": "a", "temperature": "hot"})", R"({"text": "a", "top_k": 4294967296})",
        R"({"text": "a", "seed": 9007199254740992})", "caf\xE9", "{\"text\": \"\xE9\"}"}) {
    const auto refused = read_line(line);
    ASSERT_FALSE(refused.ok()) << line;
    EXPECT_EQ(refused.error().kind, ErrorKind::kBadData) << line;
    EXPECT_EQ(refused.error().where, "stdin:3") << line;
    EXPECT_FALSE(refused.error().fix.empty()) << line;
  }
  EXPECT_THAT(read_line("caf\xE9").error().what, HasSubstr("byte 4"));
  EXPECT_THAT(read_line(R"({"text": "a", "tokens": "3"})").error().what, HasSubstr("\"tokens\""));
}

}  // namespace
}  // namespace gossamer::commands
