// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/document_line.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "json/read_json.h"

namespace gossamer::tokens {
namespace {

// The document, or "column: what: got ...; expected ..." of a bad line.
std::string read(const std::string& line) {
  std::string out = "before";
  const auto bad = read_document(line, out);
  if (!bad) return out.substr(6);
  EXPECT_EQ(out, "before");
  EXPECT_EQ(bad->error.kind, ErrorKind::kBadData);
  return fmt::format("{}: {}: got {}; expected {}", bad->column, bad->error.what, bad->error.got,
                     bad->error.expected);
}

// Claim: the string "text" of the outer object is the document, with its escapes resolved, and nothing else
// of the line is.
TEST(DocumentLine, ReadsText) {
  EXPECT_EQ(read(R"({"text": "one"})"), "one");
  EXPECT_EQ(read(R"(  {"text":"one"}  )"
                 "\r"),
            "one");
  EXPECT_EQ(read(R"({"text": ""})"), "");
  EXPECT_EQ(read(R"({"id": 5, "text": "a", "labels": null, "meta": {"text": ["x", {"text": 1}]}})"), "a");
  EXPECT_EQ(
      read(R"({"meta": [{"text": "x"}], "features": {}, "context": 5, "text": "b", "f": -1.5, "t": true})"),
      "b");
  EXPECT_EQ(read(R"({"other": 1, "other": "two", "te\u0078t": "c"})"), "c");
  EXPECT_EQ(read(R"({"text": "\u00e9 \ud83d\ude00 \" \\ \/ \b\f\n\r\t"})"),
            "\xC3\xA9 \xF0\x9F\x98\x80 \" \\ / \b\f\n\r\t");
  EXPECT_EQ(read("{\"text\": \"\xC3\xA9\xE2\x82\xAC\"}"), "\xC3\xA9\xE2\x82\xAC");
}

// Claim: a zero byte that JSON escapes is a character like others. One that stands in the line is bad.
TEST(DocumentLine, ZeroBytes) {
  EXPECT_EQ(read(R"({"text": "a\u0000b"})"), std::string("a\0b", 3));
  EXPECT_EQ(read(std::string("{\"text\": \"a\0b\"}", 15)),
            "12: the line is not valid JSON: got a zero byte; expected one JSON object a line");
  EXPECT_EQ(read(std::string("{\"text\": \"a\"}\0", 14)).substr(0, 3), "14:");
}

// Claim: a line that is no object with one string "text" is bad at the value, or at the key, that is wrong.
TEST(DocumentLine, RefusesOtherValues) {
  constexpr const char* kWanted = "; expected an object with a string \"text\"";
  EXPECT_EQ(read("5"), fmt::format("1: the line is not a document: got 5{}", kWanted));
  EXPECT_EQ(read(" \"text\""), fmt::format("2: the line is not a document: got a string{}", kWanted));
  EXPECT_EQ(read("[]"), fmt::format("1: the line is not a document: got a list{}", kWanted));
  EXPECT_EQ(read("null"), fmt::format("1: the line is not a document: got null{}", kWanted));
  EXPECT_EQ(read("false"), fmt::format("1: the line is not a document: got false{}", kWanted));
  EXPECT_EQ(read(R"({"text": 5})"), fmt::format("10: cannot use \"text\": got 5{}", kWanted));
  EXPECT_EQ(read(R"({"text":-5})"), fmt::format("9: cannot use \"text\": got -5{}", kWanted));
  EXPECT_EQ(read(R"({"text" : 0.5})"), fmt::format("11: cannot use \"text\": got '0.5'{}", kWanted));
  EXPECT_EQ(read(R"({"text": null})"), fmt::format("10: cannot use \"text\": got null{}", kWanted));
  EXPECT_EQ(read(R"({"text": ["a"]})"), fmt::format("10: cannot use \"text\": got a list{}", kWanted));
  EXPECT_EQ(read(R"({"text": {"a": 1}})"), fmt::format("10: cannot use \"text\": got an object{}", kWanted));
  EXPECT_EQ(read("{}"), fmt::format("1: a line has no \"text\": got no key{}", kWanted));
  EXPECT_EQ(read(R"({"title": "a", "m": {"text": "b"}})"),
            fmt::format("1: a line has no \"text\": got the keys 'title', 'm'{}", kWanted));
  EXPECT_EQ(read(R"({"text": "a", "text": "b"})"),
            "15: a key stands twice in one line: got 'text'; expected each key once");
}

// Claim: what is no JSON or no UTF-8 is bad at its first wrong byte.
TEST(DocumentLine, RefusesBrokenJson) {
  EXPECT_EQ(read(R"({"text": "a")"),
            "13: the line is not valid JSON: got the end of the line; expected one JSON object a line");
  EXPECT_EQ(read(R"({"text": "a)"),
            "12: the line is not valid JSON: got the end of the line; expected one JSON object a line");
  EXPECT_EQ(read("one"), "1: the line is not valid JSON: got 'one'; expected one JSON object a line");
  EXPECT_EQ(read(R"({"text": "a"} {})"),
            "15: the line is not valid JSON: got '{}'; expected one JSON object a line");
  EXPECT_EQ(read("{\"text\": \"a\tb\"}").find("12: the line is not valid JSON: got '"), 0U);
  EXPECT_EQ(read("{\"text\": \"a\xFF\"}"), "12: the text is not UTF-8: got '\\xFF'; expected UTF-8");
  EXPECT_EQ(read("{\"text\": \"a\xE2(b\"}"), "12: the text is not UTF-8: got '\\xE2'; expected UTF-8");
  EXPECT_EQ(read("{\"text\": \"\xC3\xA9\xF0\x9F\x98\"}"),
            "13: the text is not UTF-8: got '\\xF0'; expected UTF-8");
  EXPECT_EQ(read(R"({"x": "\udc00", "text": "a"})").find("half of a surrogate pair is no character"), 4U);
  for (const char* half : {R"(\ud83d)", R"(\ud83d x)", R"(\ud83d\n)", R"(\ud83d\ud83d)", R"(\ude00)"}) {
    const std::string got = read(fmt::format(R"({{"text": "a{}"}})", half));
    EXPECT_NE(got.find(": half of a surrogate pair is no character: got "), std::string::npos) << got;
  }
}

// Claim: ignored values may be nested as deeply as any JSON of ours, and no deeper.
TEST(DocumentLine, RefusesDeepValues) {
  const auto nested = [](std::size_t levels) {
    return read("{\"text\": \"a\", \"x\": " + std::string(levels - 1, '[') + std::string(levels - 1, ']') +
                "}");
  };
  EXPECT_EQ(nested(kMostJsonLevels), "a");
  EXPECT_EQ(nested(kMostJsonLevels + 1),
            "51: JSON that is nested too deeply: got more levels; expected at most 32 levels");
}

}  // namespace
}  // namespace gossamer::tokens
