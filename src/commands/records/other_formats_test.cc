// SPDX-License-Identifier: Apache-2.0
#include "commands/records/other_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/records/conversion.h"

namespace gossamer::commands {
namespace {

using ::testing::HasSubstr;

std::string named_format(std::string_view begin) {
  const auto error = other_format(begin, "f");
  return error ? error->got : "";
}

// Claim: formats that no reader takes are named by the beginning of the file.
TEST(OtherFormat, IsNamed) {
  EXPECT_EQ(named_format("title,tags\n\"a, b\",x\n"), "CSV");
  EXPECT_EQ(named_format("\xef\xbb\xbftitle;tags\r\na;x\r\n"), "CSV");
  EXPECT_EQ(named_format("\"a, b\",x\n"), "CSV");
  EXPECT_EQ(named_format("5,0.5,0.25\n"), "CSV");
  EXPECT_EQ(named_format("\n\ntitle\ttags\na\tx\n"), "TSV");
  EXPECT_EQ(named_format("[{\"text\": \"a\"}]"), "a JSON array");
  EXPECT_EQ(named_format("\n [\n"), "a JSON array");
  EXPECT_THAT(named_format("__label__x some words\n"), HasSubstr("fastText"));
  EXPECT_THAT(named_format("some words, __label__x\n"), HasSubstr("fastText"));
  EXPECT_EQ(named_format("PAR1\x15"), "Parquet");
  EXPECT_EQ(named_format("1\tfoo bar\n"), "TSV");
  EXPECT_EQ(named_format("\x89PNG\r\n"), "a PNG image");
  EXPECT_EQ(named_format("<svg xmlns=\"x\">"), "an SVG image");
  EXPECT_EQ(named_format("\x01\x02\t\x03,\n"), "a binary file");
  EXPECT_EQ(named_format(std::string_view("\0{\0\"\0a", 6)), "UTF-16 text");
  EXPECT_EQ(named_format("\xff\xfe{\0"), "UTF-16 text");
}

// Claim: what a reader takes, or might report better, is left to it.
TEST(OtherFormat, LeavesOurs) {
  for (const std::string_view ours :
       {"", "\n", "3 10 2\n0 1:1\n", "0,1 1:1\n", "0 1:1\n", " 1:1\n", "\t1:1,2\n", "1:1 2:1\n", "7\n",
        "\xff,\xfe,a\n", "{\"text\": \"a, b\"}\n", "\n{broken, \n", "word\n"})
    EXPECT_EQ(named_format(ours), "") << ours;
}

// Claim: the command takes the columns that sound like text and labels, else the longest cells and those that
// come again. Its words say which, and whether the first line counts as a record.
TEST(OtherFormat, ConvertsByLikelyColumns) {
  const auto fix = [](std::string_view begin) { return other_format(begin, "a file.csv")->fix; };
  EXPECT_THAT(fix("id,tags,title,when\n1,a,b,c\n"), HasSubstr(R"("text": r[2], "labels": [r[1]])"));
  EXPECT_THAT(fix("id,tags,title,when\n1,a,b,c\n"), HasSubstr("next(rows)"));
  EXPECT_THAT(fix("id,tags,title,when\n1,a,b,c\n"), HasSubstr("the text is column 3 ('title')"));
  EXPECT_THAT(fix("q\tfoo bar\n"), HasSubstr(R"("text": r[1], "labels": [r[0]])"));
  EXPECT_THAT(fix("q\tfoo bar\n"), ::testing::Not(HasSubstr("next(rows)")));
  EXPECT_THAT(fix("q\tfoo bar\n"), HasSubstr("line 1 is taken for a record"));
  EXPECT_THAT(fix("text,text,label\na,b,c\n"), HasSubstr(R"("text": r[0], "labels": [r[2]])"));
  EXPECT_THAT(fix("id, review, stars\n"), HasSubstr("line 1"));
  EXPECT_THAT(fix("id,review,stars\n1,good and long,5\n2,bad and long,1\n3,bad,1\n"),
              HasSubstr(R"("text": r[1], "labels": [r[2]])"));
  EXPECT_THAT(fix("title,genres\nx,a|b\n"), HasSubstr("split at '|'"));
  EXPECT_THAT(fix("a,b\n"), HasSubstr("< 'a file.csv' > NEW.jsonl"));
}

// Claim: no command writes to the file that it reads. What comes through a pipe is piped through it.
TEST(OtherFormat, NeverWritesToItsInput) {
  EXPECT_THAT(other_format("[1]", "d/NEW.jsonl")->fix, HasSubstr("< d/NEW.jsonl > NEW-2.jsonl"));
  EXPECT_THAT(*rename_keys(R"({"title": "a", "tags": ["b"]})", "NEW.jsonl"),
              HasSubstr("< NEW.jsonl > NEW-2.jsonl"));
  EXPECT_EQ(other_format("[1]", "stdin")->fix, "pipe it through: jq -c '.[]'");
}

// Claim: whatever a file is called and its keys say, a shell gets one word for each, and no key is taken
// twice.
TEST(OtherFormat, GivesAShellWords) {
  EXPECT_THAT(other_format("PAR1", "a$(x).parquet")->fix, HasSubstr("< 'a$(x).parquet' >"));
  EXPECT_THAT(*rename_keys(R"({"it's": 1, "tags": "a"})", "f"),
              HasSubstr(R"(jq -c '{text: .["it'\''s"], labels: .["tags"]}' < f)"));
  EXPECT_FALSE(rename_keys(R"({"data": []})", "f"));
}

// Claim: JSON lines of other keys get a command that names their keys. Records do not.
TEST(OtherFormat, RenamesKeys) {
  EXPECT_THAT(*rename_keys(R"({"id": 1, "title": "a", "tags": ["b"]})", "f"),
              HasSubstr(R"(jq -c '{text: .["title"], labels: .["tags"]}' < f > NEW.jsonl)"));
  for (const char* line : {R"({"text": "a"})", R"({"features": {}})", "[1]", "{", "{}"})
    EXPECT_FALSE(rename_keys(line, "f")) << line;
}

// Claim: lines of names that surely are another format are refused. Honest ones are not, and the user's word
// is believed, but for JSON.
TEST(NoLines, RefusesWhatIsSurelyAnotherFormat) {
  const auto seen = [](std::string_view begin, bool as_is) {
    const auto error = no_lines(begin, "f", {.lines = "lines", .as_is = as_is});
    return error ? error->got : "";
  };
  for (const std::string_view json : {"[{\"text\": 1}]", "[\n  {", "{\"text\": \"a\"}\n"})
    for (const bool as_is : {false, true}) EXPECT_NE(seen(json, as_is), "") << json;
  for (const std::string_view other : {"__label__a b c\n", "2 10 3\n0 1:1\n1 2:1\n", "0,1 1:0.5 2:1\n3 1:1\n",
                                       "title,tags\na,b\nc,d\n", "userId\tmovieId\n1\t2\n"}) {
    EXPECT_NE(seen(other, false), "") << other;
    EXPECT_EQ(seen(other, true), "") << other;
  }
  for (const std::string_view ours :
       {"1 2 3\n4 5 6\n", "shoes socks\tlaces\nhat coat\tscarf\n", "[Music] plays, then stops\n",
        "{{Infobox}}\n", "Title, text and tags\nare words, too\n", "12:30 13:40\n", "a,b\nc,d\n", "7\n"})
    EXPECT_EQ(seen(ours, false), "") << ours;
}

}  // namespace
}  // namespace gossamer::commands
