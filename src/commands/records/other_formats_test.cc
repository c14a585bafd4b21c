// SPDX-License-Identifier: Apache-2.0
#include "commands/records/other_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/records/conversion.h"

namespace gossamer::commands {
namespace {

using ::testing::HasSubstr;

SeenFile seen_file(std::string_view begin, const std::string& path = "f") {
  return {.begin = begin, .path = path};
}

std::string named_format(std::string_view begin) {
  const auto error = other_format(seen_file(begin));
  return error ? error->got : "";
}

// Claim: formats that no reader takes are named by the beginning of the file.
TEST(OtherFormat, IsNamed) {
  EXPECT_EQ(named_format("title,tags\n\"a, b\",x\n"), "CSV");
  EXPECT_EQ(named_format("\xef\xbb\xbftitle;tags\r\na;x\r\n"), "CSV");
  EXPECT_EQ(named_format("\"a, b\",x\n"), "CSV");
  EXPECT_EQ(named_format("5,0.5,0.25\n"), "CSV");
  EXPECT_EQ(named_format("\n\ntitle\ttags\na\tx\n"), "TSV");
  EXPECT_EQ(named_format("text|labels\nit barks, loudly|dog\n"), "a table with '|' between its cells");
  EXPECT_EQ(named_format("[{\"text\": \"a\"}]"), "a JSON array");
  EXPECT_EQ(named_format("\n [\n"), "a JSON array");
  EXPECT_THAT(named_format("__label__x some words\n"), HasSubstr("fastText"));
  EXPECT_THAT(named_format("some words, __label__x\n"), HasSubstr("fastText"));
  EXPECT_EQ(named_format(std::string_view("PAR1\x15\0\x15", 7)), "Parquet");
  EXPECT_EQ(named_format("1\tfoo bar\n"), "TSV");
  EXPECT_EQ(named_format("\x89PNG\r\n"), "a PNG image");
  EXPECT_EQ(named_format("<svg xmlns=\"x\">"), "an SVG image");
  EXPECT_EQ(named_format("\xef\xbb\xbf\n<?xml version=\"1.0\"?>"), "XML");
  EXPECT_EQ(named_format("PAR16 PAR38,lamp\n"), "CSV");
  EXPECT_EQ(named_format("\n\nsep=;\ntitle;tags\n"), "CSV");
  EXPECT_EQ(named_format("\x01\x02\t\x03,\n"), "a binary file");
  EXPECT_EQ(named_format(std::string_view("\0{\0\"\0a", 6)), "UTF-16 text");
  EXPECT_EQ(named_format("\xff\xfe{\0"), "UTF-16 text");
  EXPECT_EQ(named_format(std::string_view("{\0\"\0a\0", 6)), "UTF-16 text");
  EXPECT_EQ(named_format(std::string_view("\0\0\1\0\0\0", 6)), "a binary file");
  EXPECT_EQ(named_format("\xef\xbb\xbf[1]"), "a JSON array");
  EXPECT_EQ(named_format("{\n  \"text\": \"a\"\n}\n"), "JSON with line ends within its objects");
  for (const char* text :
       {"word\n", "it purrs\nit barks at 3:15\n", "2 dogs bark\n", "a mouse at 12:30\n12 mice\n"})
    EXPECT_EQ(named_format(text), "plain text") << text;
  EXPECT_EQ(named_format("Well, it barks.\nNo.\nSo, it, purrs.\n"),
            "plain text, or CSV of one column or uneven rows");
  for (const char* latin : {"caf\xe9\n", "title,tags\ncaf\xe9,a\n", "[{\"text\": \"caf\xe9\"}]",
                            "__label__a caf\xe9\n", "\xff,\xfe,a\n", "caf\xe9,na\xefve,\xc3\xa9\n"})
    EXPECT_EQ(named_format(latin), "text that is not UTF-8") << latin;
}

// Claim: where most characters are UTF-8, no command makes Latin-1 of them: the bad line is named.
TEST(OtherFormat, LeavesUtf8) {
  const auto error =
      other_format(seen_file("\n\ntitle,tags\ncaf\xc3\xa9,a\n\xe6\x97\xa5\xe6\x9c\xac,b\nna\xefve,c\n"));
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message(), HasSubstr("mend line 6, in which byte 3 is "));
  EXPECT_THAT(error->message(), ::testing::Not(HasSubstr("iconv")));
}

// Claim: a record behind lines that are none is left to its reader, which counts them as bad.
TEST(OtherFormat, LeavesRecordsBehindOtherLines) {
  EXPECT_EQ(named_format("# comment\n# other\n0,1 1:1\n"), "");
  EXPECT_EQ(named_format("It barks.\nIt purrs.\nNo.\nLunch 12:30 in the hall\n{sic} they say\n"),
            "plain text");
  EXPECT_EQ(named_format("# comment\n# other\n{\"text\": \"a\"}\n"), "");
}

// Claim: UTF-16 without a mark is converted by the order of its bytes. What holds no records is not.
TEST(OtherFormat, ConvertsBytesThatHoldRecords) {
  const auto fix = [](std::string_view begin) { return other_format(seen_file(begin, "f"))->fix; };
  EXPECT_THAT(fix(std::string_view("\0{\0\"\0a", 6)), HasSubstr("iconv -f utf-16be -t utf-8 < f"));
  EXPECT_THAT(fix(std::string_view("{\0\"\0a\0", 6)), HasSubstr("iconv -f utf-16le -t utf-8 < f"));
  EXPECT_EQ(fix("\x89PNG\r\n"), "check that this is the right file");
}

// Claim: what a reader takes, or might report better, is left to it.
TEST(OtherFormat, LeavesOurs) {
  for (const std::string_view ours : {"",
                                      "\n",
                                      "3 10 2\n0 1:1\n",
                                      "0,1 1:1\n",
                                      "0 1:1\n",
                                      " 1:1\n",
                                      "\t1:1,2\n",
                                      "1:1 2:1\n",
                                      "7\n",
                                      "{\"text\": \"a, b\"}\n",
                                      "\n{broken, \n",
                                      "0\t1:1 2:1\n",
                                      "3\t10\t2\n0 1:1\n",
                                      "7\t\n",
                                      "\tfoo bar\n",
                                      "{\x01\x02\x03}\n",
                                      "eats \x01 grass\n",
                                      "a slip\n0 1:1\n",
                                      "caf\xe9\n0 1:1\n",
                                      "{\"text\": \"caf\xe9\"}\n",
                                      "cat 1:1\n",
                                      "0 a 1:1\n"})
    EXPECT_EQ(named_format(ours), "") << ours;
  const std::string words(400, 'a');
  EXPECT_EQ(named_format(words + "\x01\x02\x03\n"), "");
}

// Claim: the command takes the columns that sound like text and labels, else the longest cells and those that
// come again. Its words say which, and whether the first line counts as a record.
TEST(OtherFormat, ConvertsByLikelyColumns) {
  const auto fix = [](std::string_view begin) { return other_format(seen_file(begin, "a file.csv"))->fix; };
  EXPECT_THAT(fix("id,tags,title,when\n1,a,b,c\n"),
              HasSubstr(R"("text": r[2], "labels": [w.strip() for w in [r[1]])"));
  EXPECT_THAT(fix("id,tags,title,when\n1,a,b,c\n"), HasSubstr("next(rows)"));
  EXPECT_THAT(fix("id,tags,title,when\n1,a,b,c\n"), HasSubstr("the text is column 3 ('title')"));
  EXPECT_THAT(fix("q\tfoo bar\n"), HasSubstr(R"("text": r[1], "labels": [w.strip() for w in [r[0]])"));
  EXPECT_THAT(fix("q\tfoo bar\n"), ::testing::Not(HasSubstr("next(rows)")));
  EXPECT_THAT(fix("q\tfoo bar\n"), HasSubstr("column 2 (such as 'foo bar')"));
  EXPECT_THAT(fix("text,text,label\na,b,c\n"),
              HasSubstr(R"("text": r[0], "labels": [w.strip() for w in [r[2]])"));
  EXPECT_THAT(fix("q\tfoo bar\n"), HasSubstr("not split; the first row is taken for a record"));
  EXPECT_THAT(fix("id, review, stars\n"), HasSubstr("the first row names the columns"));
  EXPECT_THAT(fix("id,review,stars\n1,good and long,5\n2,bad and long,1\n3,bad,1\n"),
              HasSubstr(R"("text": r[1], "labels": [w.strip() for w in [r[2]])"));
  EXPECT_THAT(fix("title,genres\nx,a|b\n"), HasSubstr("split at '|'"));
  EXPECT_THAT(fix("id,tags,title,when\n1,a,b,c\n"), HasSubstr("; the columns 'id', 'when' are not used"));
  EXPECT_THAT(fix("7,q,foo bar\n"), HasSubstr("; the column 1 is not used"));
  EXPECT_THAT(fix("tags,text\na,b\n"), ::testing::Not(HasSubstr("not used")));
  EXPECT_THAT(fix("a,b\n"), HasSubstr("< 'a file.csv' || ! rm -f 'a file.jsonl'; })"));
  EXPECT_THAT(fix("a,b\n"), HasSubstr("strict=True"));  // a quote that never ends is no cell of many rows
}

// Claim: the separator of labels is looked for in all rows, also in one that ends with the file, but not in
// one that is cut off.
TEST(OtherFormat, LooksAtAllRows) {
  std::string rows = "title,genres\n";
  for (int i = 0; i < 300; ++i) rows += "some words,a\n";
  rows += "more words,b|c";
  EXPECT_THAT(other_format(seen_file(rows))->fix, HasSubstr("split at '|'"));
  EXPECT_THAT(other_format({.begin = rows, .path = "f", .whole = false})->fix, HasSubstr("not split"));
}

// Claim: a table in which text and labels cannot be told apart gets no command, but words.
TEST(OtherFormat, HasNoCommandForOddTables) {
  for (const std::string_view odd :
       {"\"hello, world\"\n\"foo, bar\"", "\"x\",\"y\"\n\"1\",2,3\n\"2\",3,4\n"}) {
    const auto error = other_format(seen_file(odd));
    ASSERT_TRUE(error) << odd;
    EXPECT_THAT(error->got, HasSubstr("CSV")) << odd;
    EXPECT_THAT(error->fix, ::testing::Not(HasSubstr("python"))) << odd;
  }
}

// Claim: a list in the cell of a label is read as one, and gets no command where nothing reads it.
TEST(OtherFormat, ReadsListsOfLabels) {
  const auto fix = [](std::string_view begin) { return other_format(seen_file(begin))->fix; };
  EXPECT_THAT(fix("text,tags\nit purrs,\"['a', 'b']\"\n"), HasSubstr("for w in ast.literal_eval(r[1]"));
  EXPECT_THAT(fix("text,tags\nit purrs,\"[\"\"a\"\", \"\"b\"\"]\"\n"), HasSubstr("for w in json.loads(r[1]"));
  EXPECT_THAT(fix("text,tags\nit purrs,['a' 'b']\n"), HasSubstr("lists in column 2 ('tags')"));
  EXPECT_THAT(fix("text,tags\nit purrs,['a' 'b']\n"), ::testing::Not(HasSubstr("python")));
}

// Claim: rows are cut as Python's csv cuts them.
TEST(TableRows, CutsAsPythonDoes) {
  using Rows = std::vector<std::vector<std::string>>;
  const auto rows = [](std::string_view begin, char separator) {
    return table_rows(seen_file(begin), separator);
  };
  EXPECT_EQ(rows("5\" pan,x\nd e f,y", ','), (Rows{{"5\" pan", "x"}, {"d e f", "y"}}));
  EXPECT_EQ(rows("\"a \"\"b\"\", c\",\"d\r\ne\"\r\n", ','), (Rows{{"a \"b\", c", "d\r\ne"}}));
  EXPECT_EQ(rows("\"a\"b\"c,d\re,\n , \n\n", ','), (Rows{{"ab\"c", "d"}, {"e", ""}}));
  EXPECT_EQ(rows("x, \"y, z\"\n", ','), (Rows{{"x", "y, z"}}));
  EXPECT_EQ(rows("sep=;\r\na;b\r\n", ';'), (Rows{{"a", "b"}}));
  EXPECT_EQ(rows("an 8\" pan\tq\r\n\t\n\"r\t", '\t'), (Rows{{"an 8\" pan", "q"}, {"\"r", ""}}));
  for (const char separator : {',', '\t'})
    EXPECT_EQ(table_rows({.begin = "a\nb", .path = "f", .whole = false}, separator), (Rows{{"a"}}));
}

// Claim: no command writes over a file: the shell refuses, and the new name comes from the old one. What
// comes through a pipe is piped through it. What is packed is unpacked.
TEST(OtherFormat, NeverWritesOverAFile) {
  const auto words = [](const std::string& path, data::Packing packing = data::Packing::kPlain,
                        Makes makes = Makes::kRecords) {
    return convert_words("C", {.path = path, .packing = packing}, makes);
  };
  const auto made = [](const std::string& name, const std::string& command) {
    return "convert it:\n  (set -C; exec > " + name + " && { " + command + " || ! rm -f " + name + "; })";
  };
  EXPECT_EQ(words("d/train.csv"), made("train.jsonl", "C < d/train.csv"));
  EXPECT_EQ(words("a.b.jsonl"), made("a.b.records.jsonl", "C < a.b.jsonl"));
  EXPECT_EQ(words("a.d/.csv"), made(".csv.jsonl", "C < a.d/.csv"));
  EXPECT_EQ(words("./-r.csv"), made("./-r.jsonl", "C < ./-r.csv"));
  EXPECT_EQ(words("a.csv", data::Packing::kPlain, Makes::kText), made("a.utf-8.csv", "C < a.csv"));
  EXPECT_EQ(words("a.jsonl.gz", data::Packing::kGzip), made("a.records.jsonl", "gzip -dc < a.jsonl.gz | C"));
  EXPECT_EQ(words("stdin", data::Packing::kZstd), "pipe it through:\n  zstd -dc | C");
  EXPECT_EQ(other_format(seen_file("[{}]", "stdin"))->fix, "pipe it through:\n  jq -c '.[]'");
}

// Claim: whatever a file is called and its keys say, a shell gets one word for each, and no key is taken
// twice.
TEST(OtherFormat, GivesAShellWords) {
  EXPECT_THAT(other_format(seen_file("a,b", "a$(x).csv"))->fix, HasSubstr("exec > 'a$(x).jsonl' && { "));
  EXPECT_THAT(*rename_keys(R"({"it's": 1, "tags": "a"})", seen_file("")),
              HasSubstr(R"({text: .["it'\''s"], labels: (.["tags"] // [])}][]' < f ||)"));
  EXPECT_FALSE(rename_keys(R"({"data": []})", seen_file("")));
}

// Claim: JSON lines of other keys get a command that names their keys. Records do not.
TEST(OtherFormat, RenamesKeys) {
  EXPECT_THAT(*rename_keys(R"({"id": 1, "title": "a", "tags": ["b"]})", seen_file("")),
              HasSubstr(R"(jq -cn '[inputs | {text: .["title"], labels: (.["tags"] // [])}][]' < f ||)"));
  for (const char* line : {R"({"text": "a"})", R"({"features": {}})", "[1]", "{", "{}"})
    EXPECT_FALSE(rename_keys(line, seen_file(""))) << line;
  EXPECT_THAT(*name_labels({"id", "Genre"}, seen_file("")), HasSubstr(R"(.labels = (.["Genre"] //)"));
  EXPECT_FALSE(name_labels({"id", "day"}, seen_file("")));
}

// Claim: lines of names that surely are another format are refused. Honest ones are not, and the user's word
// is believed, but for bytes that no text has.
TEST(NoLines, RefusesWhatIsSurelyAnotherFormat) {
  const auto seen = [](std::string_view begin, bool as_is, bool whole = true) {
    const auto error =
        no_lines({.begin = begin, .path = "f", .whole = whole}, {.lines = "lines", .as_is = as_is});
    if (!error) return std::string();
    EXPECT_EQ(error->expected, "lines");
    return error->got;
  };
  for (const std::string_view other :
       {"__label__a b c\n", "2 10 3\n0 1:1\n1 2:1\n", "0,1 1:0.5 2:1\n3 1:1\n", "title,tags\na,b\nc,d\n",
        "userId\tmovieId\n1\t2\n", "[{\"text\": 1}]", "[[1, 2],\n[", "[\"a\", \"b\"]", "{\"text\": \"a\"}\n{",
        "\n{\n  \"text\": \"a\"\n}\n"}) {
    EXPECT_NE(seen(other, false), "") << other;
    EXPECT_EQ(seen(other, true), "") << other;
  }
  for (const std::string_view bytes : {std::string_view("PAR1\x15\0\x15", 7),
                                       std::string_view("\xff\xfe{\0", 4), std::string_view("\x89PNG\r\n")})
    for (const bool as_is : {false, true}) EXPECT_NE(seen(bytes, as_is), "") << bytes;
  for (const std::string_view ours : {"1 2 3\n4 5 6\n",
                                      "shoes socks\tlaces\nhat coat\tscarf\n",
                                      "[Music] plays, then stops\n",
                                      "{{Infobox}}\n",
                                      "Title, text and tags\nare words, too\n",
                                      "12:30 13:40\n",
                                      "a,b\nc,d\n",
                                      "7\n",
                                      "[[Category:Dogs]] a dog barks\n",
                                      "[\"Hello,\" she said.\n",
                                      "[\"Hello\", she said.\n",
                                      "{\"quoted\" words}\n",
                                      "[1] a note\n",
                                      "PAR16 PAR38 LED5\n",
                                      "GIF89a PNG24 JPG\n",
                                      "%PDF is a name\n",
                                      "<html> tags are words here\n",
                                      "title,tags\n",
                                      "title,tags\ntitle,b\n",
                                      "title,tags\na,b,c\n",
                                      "2 10 3\n4 5 6\n0 1:1\n",
                                      "0 1:1\nsome words\n"})
    EXPECT_EQ(seen(ours, false), "") << ours;
  // A first value may be longer than what is looked at.
  EXPECT_EQ(seen("[{\"text\": \"a long", false, /*whole=*/false), "a JSON array");
  EXPECT_EQ(seen("[{\"text\": \"a long", false), "");
}

}  // namespace
}  // namespace gossamer::commands
