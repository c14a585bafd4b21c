// SPDX-License-Identifier: Apache-2.0
#include "learn/text/dictionary.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

void put(host::Disk& disk, const std::string& path, std::string_view content) {
  ASSERT_TRUE(host::replace_file(disk, path, content).ok());
}

// Sources with a dictd entry at bytes 0+31, two synsets (one the other's hypernym) and one JSON line. Two
// synsets without a definition are broader still.
DictionarySources small_sources(host::Disk& disk) {
  put(disk, "d.index", "Widget\tA\tf\n");
  put(disk, "d.dict", "Widget \\Wid\"get\\, n.\n   A part.\n");
  put(disk, "data.noun",
      "00000001 03 n 01 thing 0 001 @ 00000003 n 0000 | something made\n"
      "00000002 03 n 02 widget 0 Small_Part 0 001 @ 00000001 n 0000 | a small part; \"lost widgets\"\n"
      "00000003 03 n 01 void 0 001 @ 00000004 n 0000 | \n"
      "00000004 03 n 01 abyss 0 000 | \n");
  put(disk, "own.jsonl", "{\"text\": \"my own word\", \"labels\": [\"Gizmo\", \"gizmo\"]}\n");
  return {
      .dictd = {{.index = "d.index", .text = "d.dict"}}, .wordnet = {"data.noun"}, .jsonl = {"own.jsonl"}};
}

// Entries of all kinds come with folded, distinct headwords; hypernyms and theirs by name; empty definitions
// stay out.
TEST(Dictionary, ReadsAllSources) {
  host::SimDisk disk;
  const auto read = read_dictionaries(disk, small_sources(disk));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->left_out, 2U);
  const std::vector<DictionaryEntry>* entries = &read->entries;
  ASSERT_EQ(entries->size(), 4U);
  EXPECT_THAT((*entries)[0].headwords, ElementsAre("widget"));
  EXPECT_EQ((*entries)[0].definition, "A part.");
  EXPECT_FALSE((*entries)[0].may_test);
  EXPECT_THAT((*entries)[2].headwords, ElementsAre("widget", "small part"));
  EXPECT_EQ((*entries)[2].definition, "a small part");
  EXPECT_THAT((*entries)[2].broader, ElementsAre("thing", "void"));
  EXPECT_THAT((*entries)[2].examples, ElementsAre("lost widgets"));
  EXPECT_TRUE((*entries)[2].may_test);
  EXPECT_THAT((*entries)[3].headwords, ElementsAre("gizmo"));
}

// Claim: what has no word of text or no headword is left out and counted. A headword may be nothing but what
// folding takes away.
TEST(Dictionary, CountsWhatItLeavesOut) {
  host::SimDisk disk;
  put(disk, "own.jsonl",
      "{\"text\": \"???\", \"labels\": [\"a\"]}\n{\"text\": \"\", \"labels\": [\"b\"]}\n"
      "{\"text\": \"some words\", \"labels\": [\"\\u00ad\"]}\n"
      "{\"text\": \"more words\", \"labels\": [\"\\u00ad\", \"c\"]}\n");
  const auto report = import_dictionary(disk, {.sources = {.jsonl = {"own.jsonl"}}, .directory = "out"});
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->definitions, 1U);
  EXPECT_EQ(report->left_out, 3U);
}

// No source is a usage error; no definition, a missing file and a record without text name their trouble.
TEST(Dictionary, Errors) {
  host::SimDisk disk;
  EXPECT_EQ(read_dictionaries(disk, {}).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(read_dictionaries(disk, {.wordnet = {"gone"}}).error().kind, ErrorKind::kFailed);
  put(disk, "data.adv", "00000003 03 r 01 void 0 000 | \n");
  EXPECT_EQ(read_dictionaries(disk, {.wordnet = {"data.adv"}}).error().kind, ErrorKind::kBadData);
  put(disk, "bad.jsonl", "{\"text\": \"a\", \"labels\": [\"b\"]}\n{\"text\": \"a\", \"labels\": [3]}\n");
  const auto bad = read_dictionaries(disk, {.jsonl = {"bad.jsonl"}});
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().where, HasSubstr("bad.jsonl:2")) << bad.error().message();
}

// 40 definitions of 10 words, four each; every other one is a near copy of its neighbour.
std::vector<DictionaryEntry> many_entries() {
  std::vector<DictionaryEntry> entries;
  for (int i = 0; i < 40; ++i) {
    std::string definition = "text number";
    for (int w = 0; w < 10; ++w) definition += " w" + std::to_string(w + 10 * (i % 4 == 3 ? i - 1 : i));
    if (i % 4 == 3) definition += " more";
    entries.push_back(
        {.headwords = {"word" + std::to_string(i % 10)}, .definition = definition, .may_test = i % 8 != 0});
  }
  return entries;
}

// The held-out entries keep the rules. They are drawn only from those that may be. None is a near copy of
// another, and every headword is still known from training. Another seed draws another set; the same seed
// draws the same.
TEST(Dictionary, SplitKeepsItsRules) {
  const std::vector<DictionaryEntry> entries = many_entries();
  std::set<std::vector<std::uint32_t>> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto split = split_dictionary(entries, {.seed = seed, .test = 6});
    ASSERT_TRUE(split.ok());
    EXPECT_EQ(split->test.size(), 6U);
    EXPECT_TRUE(std::is_sorted(split->test.begin(), split->test.end()));
    std::map<std::string, int> known;
    for (const DictionaryEntry& entry : entries) ++known[entry.headwords.front()];
    for (const std::uint32_t i : split->test) {
      EXPECT_NE(i % 8, 0U);
      EXPECT_NE(i % 4, 3U) << "a near copy, seed " << seed;
      EXPECT_NE(i % 4, 2U) << "copied, seed " << seed;
      EXPECT_GT(--known[entries[i].headwords.front()], 0) << "seed " << seed;
    }
    EXPECT_EQ(split_dictionary(entries, {.seed = seed, .test = 6})->test, split->test);
    seen.insert(split->test);
  }
  EXPECT_GT(seen.size(), 10U);
}

// No definition of a kept headword is held out, whatever the seed; those of the others still are.
TEST(Dictionary, SplitKeepsChosenHeadwords) {
  const std::vector<DictionaryEntry> entries = many_entries();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto split = split_dictionary(entries, {.seed = seed, .test = 40, .keep = {"word1", "word5"}});
    ASSERT_TRUE(split.ok());
    EXPECT_FALSE(split->test.empty());
    for (const std::uint32_t i : split->test) {
      EXPECT_NE(entries[i].headwords.front(), "word1") << "seed " << seed;
      EXPECT_NE(entries[i].headwords.front(), "word5") << "seed " << seed;
    }
  }
}

// Asking for more than qualify gives what qualifies; asking for none gives none.
TEST(Dictionary, SplitOfFew) {
  const auto all = split_dictionary(many_entries(), {.test = 1000});
  ASSERT_TRUE(all.ok());
  EXPECT_GT(all->test.size(), 6U);
  EXPECT_LE(all->test.size(), 15U);
  EXPECT_GT(all->near_copies, 0U);
  EXPECT_TRUE(split_dictionary(many_entries(), {.test = 0})->test.empty());
}

// Claim: A headword's last definition trains, however many of the others are held out.
TEST(Dictionary, SplitLeavesOneOfEachHeadword) {
  const std::vector<DictionaryEntry> entries = {
      {.headwords = {"deer"}, .definition = "a wild animal", .may_test = true},
      {.headwords = {"stag", "deer"}, .definition = "one with antlers on it", .may_test = true},
      {.headwords = {"stag"}, .definition = "the male of several kinds", .may_test = true},
      {.headwords = {"deer"}, .definition = "what the hunter is after", .may_test = true}};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto split = split_dictionary(entries, {.seed = seed, .test = 4});
    ASSERT_TRUE(split.ok());
    std::map<std::string, int> training;
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
      const bool held_out = std::binary_search(split->test.begin(), split->test.end(), i);
      for (const std::string& word : entries[i].headwords) training[word] += held_out ? 0 : 1;
    }
    EXPECT_GE(training["deer"], 1) << "seed " << seed;
    EXPECT_GE(training["stag"], 1) << "seed " << seed;
    EXPECT_GE(split->test.size(), 2U) << "seed " << seed;
  }
}

// Claim: A definition with four fifths of its 3-grams in another one is a near copy; with seven tenths it is
// none.
TEST(Dictionary, NearCopiesShareFourFifths) {
  const auto words = [](int begin, int end) {
    std::string text;
    for (int i = begin; i < end; ++i) text += " w" + std::to_string(i);
    return text;
  };
  // The first one has ten 3-grams; n words of it in the other have n - 2 of them.
  for (const auto& [same, copies] : {std::pair(10, 1U), std::pair(9, 0U)}) {
    const auto split = split_dictionary({{.headwords = {"a"}, .definition = words(0, 12), .may_test = true},
                                         {.headwords = {"a"}, .definition = words(0, same) + words(50, 60)}},
                                        {});
    ASSERT_TRUE(split.ok());
    EXPECT_EQ(split->near_copies, copies) << same;
    EXPECT_EQ(split->test.size(), 1 - copies) << same;
  }
}

// The import writes every definition once, held out or for training, and counts them.
TEST(Dictionary, ImportWritesBothParts) {
  host::SimDisk disk;
  DictionaryImport import{.sources = small_sources(disk), .directory = "out", .context = false};
  const auto report = import_dictionary(disk, import);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->definitions, 4U);
  EXPECT_EQ(report->headwords, 4U);
  EXPECT_EQ(report->train + report->test, 4U);
  const std::string train = *host::read_text(disk, "out/records.jsonl");
  EXPECT_EQ(std::count(train.begin(), train.end(), '\n'), static_cast<std::ptrdiff_t>(report->train));
  EXPECT_THAT(train, HasSubstr(R"({"labels":["widget","small part"],"text":"a small part"})"));
  EXPECT_TRUE(*disk.exists("out/test.jsonl"));
}

// Claim: A definition that is held out stands in the test set alone. It makes no training record, and teaches
// the contexts of the others nothing.
TEST(Dictionary, ImportHoldsOut) {
  host::SimDisk disk;
  std::string lines = R"({"text": "the meat of a deer", "labels": ["venison"]})"
                      "\n";
  lines += R"({"text": "a wild animal", "labels": ["deer"]})"
           "\n";
  for (int i = 0; i < 99; ++i) {
    lines += fmt::format("{{\"text\": \"{} thing\", \"labels\": [\"w{}\"]}}\n", i < 4 ? "hoofed" : "wild", i);
  }
  put(disk, "own.jsonl", lines);
  put(disk, "data.noun", "00000001 05 n 01 deer 0 000 | hoofed beast\n");
  const auto report = import_dictionary(
      disk, {.sources = {.wordnet = {"data.noun"}, .jsonl = {"own.jsonl"}}, .directory = "out"});
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->train, 101U);
  EXPECT_EQ(report->test, 1U);
  EXPECT_EQ(*host::read_text(disk, "out/test.jsonl"), R"({"labels":["deer"],"text":"hoofed beast"})"
                                                      "\n");
  const std::string train = *host::read_text(disk, "out/records.jsonl");
  EXPECT_THAT(train, Not(HasSubstr("hoofed beast")));
  EXPECT_THAT(train, HasSubstr(R"({"context":"wild","labels":["venison"],"text":"the meat of a deer"})"));
}

// Training records get a context from the other definitions, test records none. WordNet's hypernyms and
// examples come first.
TEST(Dictionary, ImportWritesContext) {
  host::SimDisk disk;
  std::string lines = R"({"text": "the meat of a deer", "labels": ["venison"]})"
                      "\n";
  lines += R"({"text": "a wild animal", "labels": ["deer"]})"
           "\n";
  for (int i = 0; i < 99; ++i)
    lines += fmt::format("{{\"text\": \"wild thing\", \"labels\": [\"w{}\"]}}\n", i);
  put(disk, "own.jsonl", lines);
  DictionaryImport import{.sources = {.jsonl = {"own.jsonl"}}, .directory = "out", .split = {.test = 10}};
  const std::string venison = R"({"context":"wild","labels":["venison"],"text":"the meat of a deer"})";
  ASSERT_TRUE(import_dictionary(disk, import).ok());
  EXPECT_THAT(*host::read_text(disk, "out/records.jsonl"), HasSubstr(venison));
  EXPECT_THAT(*host::read_text(disk, "out/test.jsonl"), Not(HasSubstr("context")));
  import.context = false;
  ASSERT_TRUE(import_dictionary(disk, import).ok());
  EXPECT_THAT(*host::read_text(disk, "out/records.jsonl"), Not(HasSubstr("context")));
  ASSERT_TRUE(import_dictionary(disk, {.sources = small_sources(disk), .directory = "out"}).ok());
  EXPECT_THAT(*host::read_text(disk, "out/records.jsonl"),
              HasSubstr(R"({"context":"thing; void; lost widgets","labels":["widget","small part"],)"));
}

}  // namespace
}  // namespace gossamer::text
