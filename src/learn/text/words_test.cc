// SPDX-License-Identifier: Apache-2.0
#include "learn/text/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"

namespace gossamer::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> words(std::string_view text) {
  WordSplitter splitter;
  std::vector<std::string> out;
  const Result<void> done = splitter.split(text, [&out](std::string_view word) { out.emplace_back(word); });
  EXPECT_TRUE(done.ok()) << done.error().message();
  return out;
}

// ASCII: case is folded, all but letters and digits separates.
TEST(Words, Ascii) {
  EXPECT_THAT(words("The meat of a DEER, 2nd-hand (1913)."),
              ElementsAre("the", "meat", "of", "a", "deer", "2nd", "hand", "1913"));
  EXPECT_THAT(words(""), IsEmpty());
  EXPECT_THAT(words(" .,;-'' "), IsEmpty());
}

// Apostrophes stay inside words only; the possessive is dropped; both apostrophes are the same.
TEST(Words, Apostrophes) {
  EXPECT_THAT(words("don't 'quoted' dogs' o'clock deer's s's 's"),
              ElementsAre("don't", "quoted", "dogs", "o'clock", "deer", "s", "s"));
  EXPECT_THAT(words("don\u2019t deer\u2019s"), ElementsAre("don't", "deer"));
}

// Compatibility forms, case and composition do not make different words; ignorable characters vanish.
TEST(Words, UnicodeNormalForm) {
  EXPECT_THAT(words("Stra\u00DFe STRASSE \uFB01n e\u0301t\u00E9 \u00C9T\u00C9 co\u00ADop"),
              ElementsAre("strasse", "strasse", "fin", "\u00E9t\u00E9", "\u00E9t\u00E9", "coop"));
  EXPECT_THAT(words("\u65E5\u672C\u8A9E\u3002\u0416\u0423\u041A"),
              ElementsAre("\u65E5\u672C\u8A9E", "\u0436\u0443\u043A"));
}

// The ASCII path and the Unicode path agree: a text that is ASCII but for its end is split alike.
TEST(Words, PathsAgree) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed, Purpose::kTest);
    std::string text;
    for (std::uint64_t i = rng.below(60); i > 0; --i) {
      constexpr std::string_view kAlphabet = "abZ9's'- .\t\n\x01\x7f";
      text += kAlphabet[rng.below(kAlphabet.size())];
    }
    std::vector<std::string> expected = words(text);
    expected.emplace_back("\u00FC");
    EXPECT_EQ(words(text + " \u00DC"), expected) << "seed " << seed << ": " << text;
  }
}

// A very long word is cut at a code point and takes nothing of the next one along.
TEST(Words, LongWordsAreCut) {
  const std::string ascii(1000, 'a');
  EXPECT_THAT(words(ascii + " b"), ElementsAre(ascii.substr(0, kMaxWordBytes), "b"));
  std::string wide = "a";
  for (int i = 0; i < 200; ++i) wide += "\u00E9";
  const std::vector<std::string> cut = words(wide + " b");
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_EQ(cut[0], wide.substr(0, kMaxWordBytes - 1));
  const std::string apostrophe = std::string(kMaxWordBytes - 1, 'a') + "'b";
  EXPECT_THAT(words(apostrophe), ElementsAre(std::string(kMaxWordBytes - 1, 'a')));
}

// Whatever the normal form makes of a code point, the text grows as needed (U+FDFA is 18 of them).
TEST(Words, NormalFormMayGrow) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "\uFDFA";
  EXPECT_GE(words(text).size(), 100U);
}

// Invalid UTF-8 is bad data with its position: a stray byte, a cut sequence, a surrogate, an overlong form.
TEST(Words, InvalidUtf8) {
  for (const std::string bad : {"\xFF", "\xC3", "\xED\xA0\x80", "\xC0\xAF", "\xF8\x88\x80\x80\x80"}) {
    WordSplitter splitter;
    const Result<void> done = splitter.split("abc \u00E9 " + bad, [](std::string_view) {});
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().kind, ErrorKind::kBadData);
    EXPECT_NE(done.error().got.find("position 8"), std::string::npos) << done.error().message();
  }
}

// Names keep their punctuation, lose case and odd blanks.
TEST(Words, FoldedName) {
  EXPECT_EQ(*folded_name("  Lark-Colored \t Bird's "), "lark-colored bird's");
  EXPECT_EQ(*folded_name("\u00C9T\u00C9"), "\u00E9t\u00E9");
  EXPECT_EQ(*folded_name(" "), "");
  EXPECT_FALSE(folded_name("\xFF").ok());
}

// Blanks of every kind and control characters become '_', everything else stays.
TEST(Words, WithoutBlanks) {
  EXPECT_EQ(without_blanks("night owl"), "night_owl");
  EXPECT_EQ(without_blanks("a\tb\r\nc\x7f"), "a_b__c_");
  EXPECT_EQ(without_blanks("a\u00A0b\u2028c\u3000d"), "a_b_c_d");
  EXPECT_EQ(without_blanks("caf\u00E9-'x'_\u4E16"), "caf\u00E9-'x'_\u4E16");
  EXPECT_EQ(without_blanks(""), "_");
}

// Equal for us: same words, whatever stands between them.
TEST(Words, NormalisedText) {
  EXPECT_EQ(*normalised_text("  The DEER's\nmeat."), "the deer meat");
  EXPECT_EQ(*normalised_text(""), "");
  EXPECT_FALSE(normalised_text("\xFF").ok());
}

}  // namespace
}  // namespace gossamer::text
