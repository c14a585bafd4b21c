// SPDX-License-Identifier: Apache-2.0
#include "learn/text/gcide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "learn/text/gcide_sense.h"

namespace gossamer::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> definitions(std::vector<std::string_view> headwords, std::string_view text) {
  std::vector<std::string> out;
  for (const Definition& d : entry_definitions({.headwords = headwords, .text = text})) {
    std::string line;
    for (const std::string& word : d.headwords) line += (line.empty() ? "" : ", ") + word;
    out.push_back(line + ": " + d.text);
  }
  return out;
}

// Named and accented letters become plain; other brackets stay for later rules.
TEST(Gcide, PlainLetters) {
  EXPECT_EQ(plain_letters("caf['e] alaud[ae] na[\"i]ve [=oo]ze g[asl] k[a^]t [imac]"),
            "cafe alaudae naive ooze g kat i");
  EXPECT_EQ(plain_letters("[Obs.] [R.] [1913 Webster] [ [] ]["), "[Obs.] [R.] [1913 Webster] [ [] ][");
}

// Numbers and letters mark senses at the start only.
TEST(Gcide, SenseMarks) {
  EXPECT_EQ(sense_mark("1. To dig"), 2U);
  EXPECT_EQ(sense_mark("12. To dig"), 3U);
  EXPECT_EQ(sense_mark("(b) Such a cap"), 3U);
  EXPECT_EQ(sense_mark("1913 was"), 0U);
  EXPECT_EQ(sense_mark("(Bot.) A tree"), 0U);
  EXPECT_EQ(sense_mark(""), 0U);
}

// What is cut off a sense and what stays.
TEST(Gcide, SenseText) {
  EXPECT_EQ(sense_text("2. (Naut. & Mil.) A small {boat}. [Obs.] --Sir T. Browne. [1913 Webster] Next"),
            "A small boat.");
  EXPECT_EQ(sense_text("1. (a) (Bot.) A tree [so [called]] here"), "A tree here");
  EXPECT_EQ(sense_text("(of a person) tall"), "(of a person) tall");
  EXPECT_EQ(sense_text("In a calm way; -- {Calm\"ly}, adv. -- {Calmness}, n."), "In a calm way;");
  EXPECT_EQ(sense_text("A fish; -- called also {angel fish}."), "A fish; -- called also angel fish.");
  EXPECT_EQ(sense_text("See {Calk}, v. t."), "");
  EXPECT_EQ(sense_text("See the sights of a town and describe them to somebody else later."),
            "See the sights of a town and describe them to somebody else later.");
  EXPECT_EQ(sense_text("[Obs.]"), "");
  EXPECT_EQ(sense_text(""), "");
}

// A whole entry: heading over two lines, senses, lettered senses, quotation, note, collocation with two
// names.
TEST(Gcide, WholeEntry) {
  constexpr std::string_view kEntry =
      "Widget \\Wid\"get\\ (w[i^]d\"j[e^]t), Wodget \\Wod\"get\\, n. [OE.\n"
      "   wigete, a thing. See {Thing}.]\n"
      "   1. (Mach.) A small part\n"
      "      of a machine. [Colloq.] --Shak.\n"
      "      [1913 Webster]\n"
      "\n"
      "            He lost a widget.   --Milton.\n"
      "      [1913 Webster]\n"
      "\n"
      "   2. One of two things:\n"
      "      (a) A ring of iron.\n"
      "      (b) A ring of wood.\n"
      "          [1913 Webster]\n"
      "\n"
      "   Note: Widgets are rare.\n"
      "\n"
      "   {Widget maker}, or {Widget smith} (Mach.), one who makes\n"
      "      widgets. [1913 Webster] Wien\n";
  EXPECT_THAT(definitions({"Widget", "Wodget", "Widget maker", "Widget smith", "Widgets"}, kEntry),
              ElementsAre("Widget, Wodget: A small part of a machine.", "Widget, Wodget: One of two things:",
                          "Widget, Wodget: A ring of iron.", "Widget, Wodget: A ring of wood.",
                          "Widget maker, Widget smith: one who makes widgets."));
}

// A heading may end at its pronunciation, at a respelling on the next line, or have none at all.
TEST(Gcide, Headings) {
  EXPECT_THAT(definitions({"Calpe"}, "Calpe \\Calpe\\ n.\n   the Rock of Gibraltar.\n"),
              ElementsAre("Calpe: the Rock of Gibraltar."));
  EXPECT_THAT(definitions({"Heat"}, "Heat \\Heat\\\n   (h[=e]t), n. [AS.]\n   Warmth of things.\n"),
              ElementsAre("Heat: Warmth of things."));
  EXPECT_THAT(definitions({"plain"}, "plain\n   Not fancy.\n\n   Also: simple.\n"),
              ElementsAre("plain: Not fancy.", "plain: Also: simple."));
  EXPECT_THAT(definitions({"other"}, "plain\n   Not fancy.\n"), ElementsAre("other: Not fancy."));
}

// Nothing usable gives nothing, and no text makes it stumble: every prefix of an entry is fine.
TEST(Gcide, NothingAndPrefixes) {
  EXPECT_THAT(definitions({"a"}, ""), IsEmpty());
  EXPECT_THAT(definitions({"a"}, "\n\n"), IsEmpty());
  EXPECT_THAT(definitions({"a"}, "a \\a\\, n. [unclosed"), IsEmpty());
  constexpr std::string_view kEntry =
      "A \\A\\, {b} [c\n   d]. (e)\n   1. f {g} [h] --I. -- {J}, n.\n\n   {K}, or {L}, m. [1913 Webster]\n";
  for (std::size_t n = 0; n <= kEntry.size(); ++n) {
    for (const Definition& d :
         entry_definitions({.headwords = std::vector<std::string_view>{"A"}, .text = kEntry.substr(0, n)})) {
      EXPECT_FALSE(d.text.empty());
      EXPECT_FALSE(d.headwords.empty());
    }
  }
}

}  // namespace
}  // namespace gossamer::text
