// SPDX-License-Identifier: Apache-2.0
#include "learn/text/dictd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gossamer::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Entry {
  std::vector<std::string> headwords;
  std::string text;
};

Result<std::vector<Entry>> read_entries(std::string_view index, std::string_view text) {
  const auto index_source = data::memory_source("d.index", index);
  const auto text_source = data::memory_source("d.dict", text);
  std::vector<Entry> entries;
  const Result<DictdReport> report =
      read_dictd(*index_source, *text_source, [&entries](const DictdEntry& entry) -> Result<void> {
        entries.push_back({{entry.headwords.begin(), entry.headwords.end()}, std::string(entry.text)});
        return {};
      });
  if (!report.ok()) return report.error();
  EXPECT_EQ(report->entries, entries.size());
  return entries;
}

// The digits run A-Z a-z 0-9 + /, most significant first; nothing else is a number.
TEST(Dictd, Numbers) {
  std::uint64_t number = 0;
  const std::vector<std::pair<std::string, std::uint64_t>> known = {
      {"A", 0},  {"B", 1},  {"Z", 25}, {"a", 26},  {"z", 51},           {"0", 52},
      {"9", 61}, {"+", 62}, {"/", 63}, {"BA", 64}, {"BMfzf", 0x131FCDF}};
  for (const auto& [digits, value] : known) {
    EXPECT_TRUE(parse_dictd_number(digits, number)) << digits;
    EXPECT_EQ(number, value) << digits;
  }
  for (const std::string bad : {"", "=", "A A", "\xC3", "//////////"}) {
    EXPECT_FALSE(parse_dictd_number(bad, number)) << bad;
  }
}

// Entries come in the order of the text, and headwords of one entry come together. The database's own rows, a
// fourth column, CRLF and a missing last line end are no trouble.
TEST(Dictd, EntriesWithAllTheirHeadwords) {
  const auto entries = read_entries("00-database-info\tA\tA\nb\tD\tC\r\na\tA\tD\tA b\nbb\tD\tC", "xyzuv");
  ASSERT_TRUE(entries.ok()) << entries.error().message();
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_THAT((*entries)[0].headwords, ElementsAre("a"));
  EXPECT_EQ((*entries)[0].text, "xyz");
  EXPECT_THAT((*entries)[1].headwords, ElementsAre("b", "bb"));
  EXPECT_EQ((*entries)[1].text, "uv");
}

// Every kind of broken index says its file and line and what was expected.
TEST(Dictd, BrokenIndex) {
  struct Case {
    std::string index;
    std::string where;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"a\tA\tB\nb\tA", "d.index:2", "base 64"},
      {"a\tA\t!", "d.index:1", "base 64"},
      {"\tA\tB", "d.index:1", "HEADWORD"},
      {"a\tA\tB\nb\tB\tD\n", "d.index:2", "within the 3 bytes"},
      {"b\tZZZZZZ\tB\n", "d.index:1", "within the 3 bytes"},
      {"\xFF\tA\tB", "d.index:1", "UTF-8"},
      {"", "d.index:0", "at least one"},
      {"00-database-info\tA\tA\n", "d.index:1", "at least one"},
  };
  for (const Case& c : cases) {
    const auto entries = read_entries(c.index, "xyz");
    ASSERT_FALSE(entries.ok()) << c.index;
    EXPECT_EQ(entries.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(entries.error().where, c.where) << entries.error().message();
    EXPECT_THAT(entries.error().expected, HasSubstr(c.expected)) << entries.error().message();
  }
}

// Bytes of the text that are no UTF-8 are replaced one by one, characters are kept, the entry is counted.
TEST(Dictd, InvalidTextIsRepaired) {
  const auto index = data::memory_source("i", "a\tA\tB\nb\tB\tG\n");
  const auto text = data::memory_source("t", "xa\x92\xC3\xA9\xC3z");
  std::vector<std::string> texts;
  const auto report = read_dictd(*index, *text, [&texts](const DictdEntry& entry) -> Result<void> {
    texts.emplace_back(entry.text);
    return {};
  });
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->repaired, 1U);
  EXPECT_THAT(texts, ElementsAre("x", "a\uFFFD\u00E9\uFFFDz"));
}

// The sink's error ends the read.
TEST(Dictd, SinkMayStop) {
  const auto index = data::memory_source("i", "a\tA\tB\nb\tB\tB\n");
  const auto text = data::memory_source("t", "xy");
  int calls = 0;
  const auto report = read_dictd(*index, *text, [&calls](const DictdEntry&) -> Result<void> {
    ++calls;
    return Error{.what = "enough"};
  });
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace gossamer::text
