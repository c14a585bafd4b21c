// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/session_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/sim/compute.h"
#include "learn/data/read/test_read_items.h"

namespace gossamer::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Sessions as "a,b" or "a,b>c".
ReadItems<std::string> read_session_text(const std::string& text, const ReadOptions& options = {}) {
  ReadItems<std::string> got;
  const auto source = memory_source("s.txt", text);
  got.report = read_sessions(*source, options, [&](const Session& session) -> Result<void> {
    std::string line = fmt::format("{}", fmt::join(session.items, ","));
    if (!session.target.empty()) line += fmt::format(">{}", session.target);
    got.items.push_back(line);
    return {};
  });
  EXPECT_TRUE(got.report.ok() || got.report.error().kind == ErrorKind::kBadData);
  return got;
}

// The format as its users write it: several blanks, a target, CRLF, blank lines, no last line end.
TEST(SessionReader, ReadsSessions) {
  const auto got =
      read_session_text("1 2 1\r\n\n  shoes   socks\tlaces \r\n \t\n\xC3\xA9t\xC3\xA9 \xE2\x82\xAC\nlone");
  ASSERT_EQ(got.message(), "ok");
  EXPECT_THAT(got.items, ElementsAre("1,2,1", "shoes,socks>laces", "\xC3\xA9t\xC3\xA9,\xE2\x82\xAC", "lone"));
  EXPECT_EQ(got.report->records, 4U);
}

// Every kind of bad line is refused with file, line, column, what was found and what was expected.
TEST(SessionReader, RefusesBadLines) {
  const auto second = [](const std::string& line) {
    return read_session_text("1 2\n" + line + "\n3\n").message();
  };
  const std::string forms = "; expected ITEM ITEM ..., or ITEM ITEM ...<TAB>ITEM" + std::string(kFix);
  EXPECT_EQ(second("\tb"), "s.txt:2:1: there is no item before the tab: got '\\x09b'" + forms);
  EXPECT_EQ(second("a\t"), "s.txt:2:3: there is not one item behind the tab: got ''" + forms);
  EXPECT_EQ(second("a b\tc d"), "s.txt:2:5: there is not one item behind the tab: got 'c d'" + forms);
  EXPECT_EQ(second("a\tb\tc"), "s.txt:2:3: there is not one item behind the tab: got 'b\\x09c'" + forms);
  EXPECT_EQ(second("a\t\tb"), "s.txt:2:3: there is not one item behind the tab: got '\\x09b'" + forms);
  EXPECT_EQ(second(std::string("a \0b", 4)),
            "s.txt:2:3: the line holds a control character: got '\\x00'; expected names of printable "
            "characters" +
                std::string(kFix));
  EXPECT_THAT(second("a\rb"), HasSubstr("s.txt:2:2: the line holds a control character: got '\\x0D'"));
  EXPECT_THAT(second("a\x7F"), HasSubstr("s.txt:2:2: the line holds a control character: got '\\x7F'"));
  EXPECT_THAT(second("ab\xFF"), HasSubstr("s.txt:2:3: the line is not UTF-8: got '\\xFF'; expected UTF-8"));
  EXPECT_THAT(second("\xE2\x82"), HasSubstr("s.txt:2:1: the line is not UTF-8: got '\\xE2'"));
}

// Files without sessions, endless lines and skipping behave as for the other readers.
TEST(SessionReader, SharedRules) {
  EXPECT_EQ(read_session_text("").message(),
            "s.txt: there is no session in the file: got an empty file; expected lines of ITEM ITEM ..., or "
            "ITEM ITEM ...<TAB>ITEM; check that this is the right file");
  EXPECT_THAT(read_session_text("\n \n").message(), HasSubstr("got blank lines"));
  EXPECT_THAT(read_session_text("\tx\n", {.skip_bad = 1}).message(), HasSubstr("got 1 bad line;"));
  EXPECT_THAT(read_session_text(std::string(200, 'a'), {.limits = {.line_bytes = 100}}).message(),
              HasSubstr("s.txt:1:1: the line is too long: got more than 100 bytes without a line end"));
  const auto got = read_session_text("a b\n\tx\n\n\ty\nc", {.skip_bad = 2});
  ASSERT_EQ(got.message(), "ok");
  EXPECT_THAT(got.items, ElementsAre("a,b", "c"));
  EXPECT_EQ(got.report->skipped, 2U);
  EXPECT_EQ(got.report->examples.at(1).where, "s.txt:4:1");
}

// The sessions do not depend on chunk size and workers.
TEST(SessionReader, SameForAllChunksAndWorkers) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k <= i % 9; ++k) text += fmt::format("item{} ", (i * k) % 13);
    text += i % 3 == 0 ? fmt::format("\ttarget{}\n", i) : "\n";
  }
  const std::vector<std::string> expected = read_session_text(text).items;
  EXPECT_EQ(expected.size(), 100U);
  for (int workers = 1; workers <= 4; ++workers) {
    for (const std::size_t size : {1U, 17U, 300U, 5000U}) {
      host::SimCompute compute({.workers = workers, .seed = size});
      EXPECT_EQ(read_session_text(text, {.limits = {.chunk_bytes = size}, .compute = &compute}).items,
                expected);
    }
  }
}

// A query is a line without a target; its mistakes have a column.
TEST(SessionReader, SplitsQueries) {
  std::vector<std::string_view> items = {"old"};
  ASSERT_TRUE(split_session(" a  b ", items).ok());
  EXPECT_THAT(items, ElementsAre("a", "b"));
  ASSERT_TRUE(split_session("", items).ok());
  EXPECT_TRUE(items.empty());
  std::size_t column = 0;
  EXPECT_EQ(split_session("a\tb", items, &column).error().message(),
            "a query has no target: got '\\x09b'; expected ITEM ITEM ...; mend the query");
  EXPECT_EQ(column, 2U);
  EXPECT_FALSE(split_session("a\xFF", items, &column).ok());
}

}  // namespace
}  // namespace gossamer::data
