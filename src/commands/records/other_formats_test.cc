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
  EXPECT_EQ(named_format(std::string_view("{\0\"\0a\0", 6)), "UTF-16 text");
  EXPECT_EQ(named_format(std::string_view("\0\0\1\0\0\0", 6)), "a binary file");
  EXPECT_EQ(named_format("\xef\xbb\xbf[1]"), "a JSON array");
}

// Claim: UTF-16 without a mark is converted by the order of its bytes. What holds no records is not.
TEST(OtherFormat, ConvertsBytesThatHoldRecords) {
  const auto fix = [](std::string_view begin) { return other_format(begin, "f")->fix; };
  EXPECT_THAT(fix(std::string_view("\0{\0\"\0a", 6)), HasSubstr("iconv -f utf-16be -t utf-8 < f"));
  EXPECT_THAT(fix(std::string_view("{\0\"\0a\0", 6)), HasSubstr("iconv -f utf-16le -t utf-8 < f"));
  EXPECT_EQ(fix("\x89PNG\r\n"), "check that this is the right file");
}

// Claim: what a reader takes, or might report better, is left to it.
TEST(OtherFormat, LeavesOurs) {
  for (const std::string_view ours :
       {"", "\n", "3 10 2\n0 1:1\n", "0,1 1:1\n", "0 1:1\n", " 1:1\n", "\t1:1,2\n", "1:1 2:1\n", "7\n",
        "\xff,\xfe,a\n", "{\"text\": \"a, b\"}\n", "\n{broken, \n", "word\n", "0\t1:1 2:1\n",
        "3\t10\t2\n0 1:1\n", "7\t\n", "\tfoo bar\n", "{\x01\x02\x03}\n", "eats \x01 grass\n"})
    EXPECT_EQ(named_format(ours), "") << ours;
  const std::string words(400, 'a');
  EXPECT_EQ(named_format(words + "\x01\x02\x03\n"), "");
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
  EXPECT_THAT(fix("id, review, stars\n"), HasSubstr(R"("text": r[1], "labels": [r[2]])"));
  EXPECT_THAT(fix("id,review,stars\n1,good and long,5\n2,bad and long,1\n3,bad,1\n"),
              HasSubstr(R"("text": r[1], "labels": [r[2]])"));
  EXPECT_THAT(fix("Tags,Title\na long label,b\n"), HasSubstr(R"("text": r[1], "labels": [r[0]])"));
  EXPECT_THAT(fix("label,q\na very long label,w\n"), HasSubstr(R"("text": r[1], "labels": [r[0]])"));
  EXPECT_THAT(fix("a description at length,q,label\nx,some words,y\n"),
              HasSubstr(R"("text": r[1], "labels": [r[2]])"));
  // The labels come again in the most rows; of two such columns it is the last.
  EXPECT_THAT(fix("some words,A,1\nother words,A,2\nmore words,B,3\n"),
              HasSubstr(R"("text": r[0], "labels": [r[1]])"));
  EXPECT_THAT(fix("some words,A,1\nother words,B,2\n"), HasSubstr(R"("text": r[0], "labels": [r[2]])"));
  EXPECT_THAT(fix("title,genres\nx,a|b\n"), HasSubstr("split at '|'"));
  EXPECT_THAT(fix("title\tgenres\nx\ta, b\n"), HasSubstr("split at ','"));
  EXPECT_THAT(fix("text,a|b\nsome words,c\nmore words,c\n"),
              HasSubstr(R"("labels": [r[1]] if r[1] else [])"));
  EXPECT_THAT(fix("a,b\n"), HasSubstr("< 'a file.csv' > NEW.jsonl"));
}

// Claim: no command writes to the file that it reads. What comes through a pipe is piped through it.
TEST(OtherFormat, NeverWritesToItsInput) {
  EXPECT_THAT(other_format("[1]", "d/NEW.jsonl")->fix, HasSubstr("< d/NEW.jsonl > NEW-2.jsonl"));
  EXPECT_THAT(*rename_keys(R"({"title": "a", "tags": ["b"]})", "NEW.jsonl"),
              HasSubstr("< NEW.jsonl > NEW-2.jsonl"));
  for (const char* pipe : {"stdin", "-", "/dev/stdin"})
    EXPECT_EQ(other_format("[1]", pipe)->fix, "pipe it through: jq -c '.[]'") << pipe;
}

// Claim: tables are read by their own rules. What may be the half of a row is no row, and no more than 100
// rows are read.
TEST(TableRows, AreReadByTheirRules) {
  using Rows = std::vector<std::vector<std::string>>;
  EXPECT_EQ(table_rows("a,\"b, c\"\r\n\r\n\n\"d\ne\",f\ng", ','), (Rows{{"a", "b, c"}, {"d\ne", "f"}}));
  EXPECT_EQ(table_rows("q\tan 8\" pan\nr\tb\n", '\t'), (Rows{{"q", "an 8\" pan"}, {"r", "b"}}));
  EXPECT_EQ(table_rows("a;b", ';'), (Rows{{"a", "b"}}));
  std::string many;
  for (int row = 0; row < 150; ++row) many += "a,b\n";
  EXPECT_EQ(table_rows(many, ',').size(), 100U);
}

// Claim: a first row names the columns if it has a usual name, and none of its cells comes again below.
TEST(TableRows, HaveAHeader) {
  EXPECT_TRUE(has_header({{"Text", ""}, {"a", ""}}));
  EXPECT_FALSE(has_header({{"words", "more"}, {"a", "b"}}));
  EXPECT_FALSE(has_header({{"text", "label"}, {"some text", "label"}}));
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
  EXPECT_THAT(*rename_keys(R"({"tags": ["b"], "q": "a"})", "f"),
              HasSubstr(R"({text: .["q"], labels: .["tags"]})"));
  EXPECT_THAT(*rename_keys(R"({"q": ["b"], "title": "a"})", "f"),
              HasSubstr(R"({text: .["title"], labels: .["q"]})"));
  for (const char* line : {R"({"text": "a", "tags": []})", R"({"features": {}, "tags": []})",
                           R"({"data": []})", "[1]", "{", "{}"})
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
  EXPECT_EQ(seen("[{\"text\": 1}]", false), "a JSON array");
  EXPECT_EQ(seen("{\"text\": 1}\n", false), "JSON lines");
  for (const std::string_view other :
       {"__label__a b c\n", "2 10 3\n0 1:1\n1 2:1\n", "0,1 1:0.5 2:1\n3 1:1\n", "0 1:1\r\n1 2:1\r\n",
        "0 1:1\n1 2:1\n0", "title,tags\na,b\nc,d\n", "userId\tmovieId\n1\t2\n"}) {
    EXPECT_NE(seen(other, false), "") << other;
    EXPECT_EQ(seen(other, true), "") << other;
  }
  for (const std::string_view ours :
       {"1 2 3\n4 5 6\n", "shoes socks\tlaces\nhat coat\tscarf\n", "[Music] plays, then stops\n",
        "{{Infobox}}\n", "Title, text and tags\nare words, too\n", "12:30 13:40\n", "a,b\nc,d\n", "7\n",
        "title,tags\n", "title,tags\ntitle,b\n", "title,tags\na,b,c\n", "2 10 3\n4 5 6\n0 1:1\n",
        "0 1:1\nsome words\n"})
    EXPECT_EQ(seen(ours, false), "") << ours;
  // No flag makes lines of names of JSON, so none is told.
  EXPECT_THAT(no_lines("__label__a b\n", "f", {.lines = "lines"})->fix, HasSubstr("--as-is"));
  EXPECT_THAT(no_lines("[[1]]", "f", {.lines = "lines"})->fix, ::testing::Not(HasSubstr("--as-is")));
}

}  // namespace
}  // namespace gossamer::commands
