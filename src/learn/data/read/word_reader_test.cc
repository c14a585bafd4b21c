// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/word_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "learn/data/read/test_read_items.h"

namespace gossamer::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Words, and "" for a line end.
ReadItems<std::string> read_word_text(const std::string& text, const ReadOptions& options = {}) {
  ReadItems<std::string> got;
  const auto source = memory_source("t.txt", text);
  got.report = read_words(*source, options, [&](std::string_view word) -> Result<void> {
    got.items.emplace_back(word);
    return {};
  });
  EXPECT_TRUE(got.report.ok() || got.report.error().kind == ErrorKind::kBadData);
  return got;
}

// Words between blanks of any kind, line ends, no last line end, UTF-8; whatever the buffer's size.
TEST(WordReader, ReadsWords) {
  const std::string text = "one  two\tthree\r\n\n\xC3\xA9t\xC3\xA9 last";
  for (const std::size_t size : {1U, 2U, 3U, 5U, 100U}) {
    const auto got = read_word_text(text, {.limits = {.chunk_bytes = size}});
    ASSERT_EQ(got.message(), "ok");
    EXPECT_THAT(got.items, ElementsAre("one", "two", "three", "", "", "\xC3\xA9t\xC3\xA9", "last"));
    EXPECT_EQ(got.report->records, 5U);
    EXPECT_EQ(got.report->bytes, text.size());
  }
}

// A byte order mark before the text is no part of its first word; anywhere else it is.
TEST(WordReader, ByteOrderMark) {
  for (const std::size_t size : {1U, 4U, 100U}) {
    const ReadOptions options{.limits = {.chunk_bytes = size}};
    EXPECT_THAT(read_word_text("\xEF\xBB\xBFone \xEF\xBB\xBFone", options).items,
                ElementsAre("one", "\xEF\xBB\xBFone"));
    EXPECT_THAT(read_word_text("\xEF\xBB\xBF", options).message(), HasSubstr("there is no word in the file"));
  }
}

// Every kind of bad word is refused with file, line and column, or left out and counted, whatever the buffer.
TEST(WordReader, RefusesBadWords) {
  for (const std::size_t size : {1U, 7U, 5000U}) {
    const auto second = [size](const std::string& word) {
      return read_word_text("a b\nc " + word + " d", {.limits = {.chunk_bytes = size}}).message();
    };
    EXPECT_THAT(second("x\xFF"), HasSubstr("t.txt:2:4: the line is not UTF-8: got '\\xFF'; expected UTF-8"));
    EXPECT_THAT(second(std::string("\0", 1)), HasSubstr("t.txt:2:3: the line holds a control character"));
    EXPECT_EQ(second(std::string(1000, 'w')), "ok");
    EXPECT_THAT(second(std::string(1001, 'w')), HasSubstr("t.txt:2:3: the word is too long: got 'www"));
    EXPECT_THAT(second(std::string(3000, 'w') + " \xFF"), HasSubstr("t.txt:2:3: the word is too long"));
    const auto got = read_word_text("a \x01 " + std::string(3000, 'w') + " b\n\xFF c",
                                    {.limits = {.chunk_bytes = size}, .skip_bad = 3});
    ASSERT_EQ(got.message(), "ok");
    EXPECT_THAT(got.items, ElementsAre("a", "b", "", "c"));
    EXPECT_EQ(got.report->skipped, 3U);
    EXPECT_EQ(got.report->examples.at(2).where, "t.txt:2:1");
  }
  EXPECT_THAT(read_word_text("").message(), HasSubstr("there is no word in the file: got an empty file"));
  EXPECT_THAT(read_word_text(" \n").message(), HasSubstr("got blanks"));
  EXPECT_THAT(read_word_text("\x01", {.skip_bad = 1}).message(), HasSubstr("got 1 bad word;"));
}

}  // namespace
}  // namespace gossamer::data
