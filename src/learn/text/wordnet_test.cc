// SPDX-License-Identifier: Apache-2.0
#include "learn/text/wordnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gossamer::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kDog =
    "02084071 05 n 02 dog 0 domestic_dog 0 003 @ 02083346 n 0000 @i 00000042 n 0000 ~ 01322604 n 0000 | a "
    "member "
    "of the genus Canis; barks; \"the dog barked; all night\"; \"a dog\"  \n";

Result<std::vector<Synset>> read_synsets(const std::string& content) {
  const auto source = data::memory_source("data.noun", content);
  std::vector<Synset> synsets;
  const Result<std::uint64_t> count = read_wordnet(*source, synsets);
  if (!count.ok()) return count.error();
  EXPECT_EQ(*count, synsets.size());
  return synsets;
}

// Lemmas, definition, examples and broader synsets of a line; licence lines and blank lines are left out.
TEST(WordNet, Synset) {
  const auto synsets = read_synsets("  1 This software is free.  \n\n" + std::string(kDog));
  ASSERT_TRUE(synsets.ok()) << synsets.error().message();
  ASSERT_EQ(synsets->size(), 1U);
  const Synset& dog = synsets->front();
  EXPECT_EQ(dog.key, (SynsetKey{'n', 2084071}));
  EXPECT_THAT(dog.lemmas, ElementsAre("dog", "domestic dog"));
  EXPECT_EQ(dog.definition, "a member of the genus Canis; barks");
  EXPECT_THAT(dog.examples, ElementsAre("the dog barked; all night", "a dog"));
  EXPECT_THAT(dog.broader, ElementsAre(SynsetKey{'n', 2083346}, SynsetKey{'n', 42}));
}

// Satellites count as adjectives, syntactic markers go, the verbs' frames behind the pointers are no matter,
// word counts are hexadecimal.
TEST(WordNet, Details) {
  const auto synsets = read_synsets(
      "00000003 00 s 01 galore(ip) 0 000 | existing in abundance\n"
      "00000004 00 a 01 awash(p) 0 000 | flooded\r\n"
      "00000005 29 v 01 breathe 0 000 02 + 02 00 + 08 00 | draw air into");
  ASSERT_TRUE(synsets.ok()) << synsets.error().message();
  ASSERT_EQ(synsets->size(), 3U);
  EXPECT_EQ((*synsets)[0].key.part_of_speech, 'a');
  EXPECT_THAT((*synsets)[0].lemmas, ElementsAre("galore"));
  EXPECT_THAT((*synsets)[1].lemmas, ElementsAre("awash"));
  EXPECT_EQ((*synsets)[1].definition, "flooded");
  EXPECT_EQ((*synsets)[2].definition, "draw air into");
  std::string many = "00000003 00 n 1a";
  for (int i = 0; i < 26; ++i) many += " w 0";
  const auto long_one = read_synsets(many + " 000 | x");
  ASSERT_TRUE(long_one.ok()) << long_one.error().message();
  EXPECT_EQ(long_one->front().lemmas.size(), 26U);
}

// A broken line names file, line, column and what should have been there.
TEST(WordNet, BrokenLines) {
  struct Case {
    std::string line;
    std::string where;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"x0001740 03 n 01 entity 0 000 | d", "data.noun:2:1", "offset"},
      {"00001740 03 q 01 entity 0 000 | d", "data.noun:2:13", "part of speech"},
      {"00001740 03 n zz entity 0 000 | d", "data.noun:2:15", "number of words"},
      {"00001740 03 n 00 000 | d", "data.noun:2:15", "at least one word"},
      {"00001740 03 n 02 entity 0 | d", "data.noun:2:27", "a word"},
      {"00001740 03 n 01 entity 0 | d", "data.noun:2:27", "number of pointers"},
      {"00001740 03 n 01 entity 0 001 @ 0x n 0000 | d", "data.noun:2:33", "offset"},
      {"00001740 03 n ffffffff entity 0 001 | d", "data.noun:2:37", "a lexical id"},
      {"00001740 03 n 01 entity 0 000 ", "data.noun:2:31", "'|' and a gloss"},
      {"00001740 03 n 01 entity 0 000", "data.noun:2:30", "'|' and a gloss"},
      {"00001740 03 n 01 entity 0 000 | \xFF", "data.noun:2:33", "UTF-8"},
  };
  for (const Case& c : cases) {
    const auto synsets = read_synsets(std::string(kDog) + c.line);
    ASSERT_FALSE(synsets.ok()) << c.line;
    EXPECT_EQ(synsets.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(synsets.error().where, c.where) << synsets.error().message();
    EXPECT_THAT(synsets.error().expected, HasSubstr(c.expected)) << synsets.error().message();
  }
  EXPECT_FALSE(read_synsets("").ok());
  EXPECT_FALSE(read_synsets("  only a licence\n").ok());
}

// A line cut anywhere is an error or a synset with a shorter gloss, never a crash.
TEST(WordNet, EveryPrefix) {
  for (std::size_t n = 1; n < kDog.size(); ++n) {
    const auto synsets = read_synsets(std::string(kDog.substr(0, n)));
    if (!synsets.ok()) continue;
    EXPECT_THAT(synsets->front().lemmas, ElementsAre("dog", "domestic dog")) << n;
  }
}

// No gloss, no definition: that is for the caller to leave out.
TEST(WordNet, EmptyGloss) {
  const auto synsets = read_synsets("00000003 00 n 01 a 0 000 | ");
  ASSERT_TRUE(synsets.ok()) << synsets.error().message();
  EXPECT_EQ(synsets->front().definition, "");
  EXPECT_THAT(synsets->front().examples, IsEmpty());
}

}  // namespace
}  // namespace gossamer::text
