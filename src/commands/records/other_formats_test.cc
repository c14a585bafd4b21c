// SPDX-License-Identifier: Apache-2.0
#include "commands/records/other_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_EQ(named_format("PK\x03\x04z"), "a zip archive");
  EXPECT_EQ(named_format("\xff\xfe{\0"), "UTF-16 text");
}

// Claim: what a reader takes, or might report better, is left to it.
TEST(OtherFormat, LeavesOurs) {
  for (const std::string_view ours :
       {"", "\n", "3 10 2\n0 1:1\n", "0,1 1:1\n", "0 1:1\n", " 1:1\n", "\t1:1,2\n", "1:1 2:1\n", "7\n",
        "\x01\x02\t\x03,\n", "\xff,\xfe,a\n", "{\"text\": \"a, b\"}\n", "\n{broken, \n", "word\n"})
    EXPECT_EQ(named_format(ours), "") << ours;
}

// Claim: the command names the columns that sound like text and labels, else the first and the last.
TEST(OtherFormat, ConvertsByLikelyColumns) {
  const auto fix = [](std::string_view begin) { return other_format(begin, "a file.csv")->fix; };
  EXPECT_THAT(fix("id,tags,title,when\n"), HasSubstr("\"text\": r[\"title\"], \"labels\": [r[\"tags\"]]"));
  EXPECT_THAT(fix("q\tkind\n"), HasSubstr("\"text\": r[\"q\"], \"labels\": [r[\"kind\"]]"));
  EXPECT_THAT(fix("q\tkind\n"), HasSubstr("delimiter=\"\\t\""));
  EXPECT_THAT(fix("a'b;c\n"), HasSubstr("r[\"ab\"]"));
  EXPECT_THAT(fix("a,b\n"), HasSubstr("< 'a file.csv' > NEW.jsonl"));
}

// Claim: whatever a file is called and its columns say, a shell gets one word for each.
TEST(OtherFormat, GivesAShellWords) {
  EXPECT_THAT(other_format("PAR1", "a$(x).parquet")->fix, HasSubstr("lines=True)' 'a$(x).parquet'"));
  EXPECT_THAT(other_format("BZh", "-c")->fix, HasSubstr("bzip2 -dc ./-c |"));
  EXPECT_THAT(other_format("a'\\b,c\n", "f")->fix, HasSubstr("r[\"ab\"]"));
  EXPECT_EQ(rename_keys(R"({"a'b": 1, "q": "a", "r\"": 1})", "f"),
            R"(jq -c '{text: .["q"], labels: .["q"]}' f > NEW.jsonl)");
  EXPECT_FALSE(rename_keys(R"({"a'b": 1})", "f"));
}

// Claim: JSON lines of other keys get a command that names their keys. Records do not.
TEST(OtherFormat, RenamesKeys) {
  EXPECT_EQ(rename_keys(R"({"id": 1, "title": "a", "tags": ["b"]})", "f"),
            R"(jq -c '{text: .["title"], labels: .["tags"]}' f > NEW.jsonl)");
  for (const char* line : {R"({"text": "a"})", R"({"features": {}})", "[1]", "{", "{}"})
    EXPECT_FALSE(rename_keys(line, "f")) << line;
}

}  // namespace
}  // namespace gossamer::commands
