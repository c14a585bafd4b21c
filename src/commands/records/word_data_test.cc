// SPDX-License-Identifier: Apache-2.0
#include "commands/records/word_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/records/data_import.h"
#include "commands/records/record_import.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::write;
using ::testing::ElementsAre;

// Several sources become one text of good words, and a look counts them.
TEST(WordData, ImportsAndLooks) {
  SimMachine machine;
  write(machine.disk, "a.txt", "the  deer\n\neats \x01 grass");
  write(machine.disk, "b.txt", "the owl\n");
  const auto done = import_data(
      machine.host(),
      {.kind = data::RecordFormat::kText, .sources = {"a.txt", "b.txt"}, .directory = "out", .skip_bad = 1});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(done->report.records, 6U);
  EXPECT_EQ(done->report.labels, 5U);
  EXPECT_EQ(done->report.skipped, 1U);
  EXPECT_EQ(*host::read_text(machine.disk, "out/records.text"), "the deer\neats grass\nthe owl\n");
  const auto look = inspect_data(machine.host(), "out");
  ASSERT_TRUE(look.ok()) << look.error().message();
  EXPECT_EQ(look->records, 6U);
  EXPECT_EQ(look->labels_used_once, 4U);
  EXPECT_EQ(look->frequent_labels.front(), std::pair(std::string("the"), std::uint64_t{2}));
  EXPECT_THAT(look->examples, ElementsAre("the deer", "eats grass", "the owl"));
}

// Claim: word2vec.min_count and word2vec.max_words say which words are learnt. The most frequent ones stay.
TEST(WordData, LearnsTheWordsThatTheConfigWants) {
  SimMachine machine;
  write(machine.disk, "f", "a b c a b\na b d c\na\n");
  const auto words = [&](const sparse_engine::Word2vecConfig& config) {
    const auto done =
        import_records(machine.host(), {.sources = {{.path = "f", .format = data::RecordFormat::kText}},
                                        .cache_path = "out/train.words",
                                        .words = config});
    EXPECT_TRUE(done.ok()) << done.error().message();
    return (*read_word_cache(machine.disk, "out/train.words"))->words;
  };
  EXPECT_THAT(words({.min_count = 1}), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(words({.min_count = 2}), ElementsAre("a", "b", "c"));
  EXPECT_THAT(words({.min_count = 1, .max_words = 2}), ElementsAre("a", "b"));
}

// A cache reads back as it was written. A changed byte anywhere is refused, and an
// unfinished cache counts as none. So is one of no two words in a line, or of a word that never occurs.
TEST(WordData, CacheRoundTrip) {
  SimMachine machine;
  const data::TokenText text{.token = {0, 1, data::TokenText::kLineEnd, 1, 0, 0},
                             .words = {"the", "\xC3\xA9t\xC3\xA9"},
                             .count = {3, 2}};
  EXPECT_FALSE(read_word_cache(machine.disk, "c/train.words")->has_value());
  ASSERT_TRUE(write_word_cache(machine.disk, "c/train.words", text).ok());
  const auto back = read_word_cache(machine.disk, "c/train.words");
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ((*back)->token, text.token);
  EXPECT_EQ((*back)->words, text.words);
  EXPECT_EQ((*back)->count, text.count);
  const std::string bytes = *host::read_text(machine.disk, "c/train.words");
  for (std::size_t at = 0; at < bytes.size(); at += 7) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    write(machine.disk, "c/train.words", changed);
    const auto refused = read_word_cache(machine.disk, "c/train.words");
    ASSERT_FALSE(refused.ok()) << at;
    EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
  }
  for (const data::TokenText& empty :
       {data::TokenText{.token = {}, .words = {"the"}, .count = {3}},
        data::TokenText{.token = {data::TokenText::kLineEnd}, .words = {"the"}, .count = {3}},
        data::TokenText{.token = {0, 0}, .words = {"the"}, .count = {0}}}) {
    ASSERT_TRUE(write_word_cache(machine.disk, "c/train.words", empty).ok());
    EXPECT_EQ(read_word_cache(machine.disk, "c/train.words").error().kind, ErrorKind::kBadData);
  }
  ASSERT_TRUE(machine.disk.remove_all("c/train.words.json").ok());
  EXPECT_FALSE(read_word_cache(machine.disk, "c/train.words")->has_value());
}

}  // namespace
}  // namespace gossamer::commands
