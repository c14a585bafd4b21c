// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/text_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "learn/text/words.h"

namespace gossamer::tokens {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The pieces of a text, and "line:column: what" of its fault.
struct Pieces {
  std::vector<std::string> pieces;
  std::string fault;
  std::uint64_t lines = 0;

  [[nodiscard]] std::string text() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }
};

Pieces pieces_of(const std::string& text, std::size_t most) {
  Pieces got;
  const auto source = data::memory_source("t.txt", text);
  PlainText plain(*source, most);
  for (;;) {
    const auto piece = plain.next();
    EXPECT_TRUE(piece.ok());
    if (piece->empty()) break;
    got.pieces.emplace_back(*piece);
  }
  EXPECT_TRUE(plain.next()->empty());
  if (plain.fault()) {
    got.fault = std::to_string(plain.fault()->line) + ":" + std::to_string(plain.fault()->bad.column) + ": " +
                plain.fault()->bad.error.what;
  }
  got.lines = plain.lines();
  return got;
}

// Lines of up to `most` characters of one to four bytes, some of them empty, with both kinds of line ends.
std::string random_text(Rng& rng, std::uint64_t lines, std::uint64_t most) {
  static constexpr const char* kCharacters[] = {"a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\r"};
  std::string text;
  for (std::uint64_t line = 0; line < lines; ++line) {
    for (std::uint64_t left = rng.below(most + 1); left > 0; --left) text += kCharacters[rng.below(5)];
    text += rng.below(3) == 0 ? "\r\n" : "\n";
  }
  if (rng.below(2) == 0) text += "no end \xE2\x82\xAC";
  return text;
}

// Claim: the pieces together are the text, whatever the most bytes of a piece. Each is valid UTF-8, has at
// most so many bytes, and ends behind a "\n" unless the rest of its line does not fit, or it is the last one.
TEST(TextPieces, PiecesAreTheText) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, Purpose::kTest);
    const std::string text = random_text(rng, 1 + rng.below(20), rng.below(30));
    const auto lines = std::count(text.begin(), text.end(), '\n') + (text.ends_with('\n') ? 0 : 1);
    for (std::size_t most = 4; most <= text.size() + 3; most += 1 + most / 8) {
      const Pieces got = pieces_of(text, most);
      ASSERT_EQ(got.fault, "");
      ASSERT_EQ(got.text(), text);
      EXPECT_EQ(got.lines, static_cast<std::uint64_t>(lines));
      std::size_t begin = 0;
      for (const std::string& piece : got.pieces) {
        ASSERT_LE(piece.size(), most);
        ASSERT_EQ(text::valid_utf8_prefix(piece), piece.size());
        const std::size_t end = text.find('\n', begin);
        const std::size_t line = (end == std::string::npos ? text.size() : end + 1) - begin;
        begin += piece.size();
        if (line <= most) {
          ASSERT_TRUE(piece.ends_with('\n') || begin == text.size());
        } else {
          ASSERT_GT(piece.size() + kCharacterBytes, most);
        }
      }
    }
  }
}

// Claim: whole lines that fit go together, and a longer line is cut between characters.
TEST(TextPieces, CutsAtLineEnds) {
  EXPECT_THAT(pieces_of("ab\ncd\nef\n", 6).pieces, ElementsAre("ab\ncd\n", "ef\n"));
  EXPECT_THAT(pieces_of("ab\ncd\nef\n", 5).pieces, ElementsAre("ab\n", "cd\n", "ef\n"));
  EXPECT_THAT(pieces_of("ab\n123456\nc", 4).pieces, ElementsAre("ab\n", "1234", "56\nc"));
  EXPECT_THAT(pieces_of("abc\xE2\x82\xAC", 5).pieces, ElementsAre("abc", "\xE2\x82\xAC"));
  EXPECT_THAT(pieces_of("abc\xE2\x82\xAC", 6).pieces, ElementsAre("abc\xE2\x82\xAC"));
  EXPECT_THAT(pieces_of("1\xF0\x9F\x98\x80\xF0\x9F\x98\x80", 4).pieces,
              ElementsAre("1", "\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"));
  EXPECT_THAT(pieces_of("\n\n\n\n\n", 4).pieces, ElementsAre("\n\n\n\n", "\n"));
  EXPECT_THAT(pieces_of("a\rb\rc\r", 4).pieces, ElementsAre("a\rb\r", "c\r"));
  EXPECT_THAT(pieces_of("", 4).pieces, IsEmpty());
}

// Claim: a byte order mark at the start is left out, one behind it or inside the text is not.
TEST(TextPieces, ByteOrderMark) {
  for (const std::size_t most : {4U, 7U, 100U}) {
    EXPECT_EQ(pieces_of("\xEF\xBB\xBFone", most).text(), "one");
    EXPECT_EQ(pieces_of("\xEF\xBB\xBF\xEF\xBB\xBFone", most).text(), "\xEF\xBB\xBFone");
    EXPECT_EQ(pieces_of("one\xEF\xBB\xBF", most).text(), "one\xEF\xBB\xBF");
    EXPECT_THAT(pieces_of("\xEF\xBB\xBF", most).pieces, IsEmpty());
    EXPECT_EQ(pieces_of("\xEF\xBB\xBF", most).lines, 0U);
    EXPECT_EQ(pieces_of("\xEF\xBB\xBF"
                        "1234567",
                        4)
                  .pieces.front(),
              "1234");
    EXPECT_EQ(pieces_of("\xEF\xBB", most).fault, "1:1: the text is not UTF-8");
  }
}

// Claim: each kind of bad byte at each position is found with line and column, whatever the pieces, also at
// the end of the text. All whole pieces before it came, and none behind it.
TEST(TextPieces, FindsBadBytesAnywhere) {
  const std::string good = "ab\xC3\xA9\r\nlong \xE2\x82\xAC line\n\nx\xF0\x9F\x98\x80";
  const std::vector<std::string> bad = {std::string(1, '\0'), "\xFF",         "\x80",     "\xC3",
                                        "\xE2\x82",           "\xF0\x9F\x98", "\xC0\x80", "\xED\xA0\x80",
                                        "\xF4\x90\x80\x80"};
  for (std::size_t at = 0; at <= good.size(); ++at) {
    if (at < good.size() && (static_cast<unsigned char>(good[at]) & 0xC0U) == 0x80U) continue;
    const auto line = 1 + std::count(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const std::size_t last = at == 0 ? std::string::npos : good.rfind('\n', at - 1);
    const std::string place = std::to_string(line) + ":" + std::to_string(at - last);
    for (const std::string& bytes : bad) {
      const std::string text = good.substr(0, at) + bytes + good.substr(at);
      for (std::size_t most = 4; most <= text.size() + 1; ++most) {
        const Pieces got = pieces_of(text, most);
        ASSERT_EQ(got.fault,
                  place + (bytes[0] == '\0' ? ": the file is not text" : ": the text is not UTF-8"));
        ASSERT_TRUE(good.substr(0, at).starts_with(got.text()));
      }
    }
  }
}

// Claim: bytes inside characters that no character has are bad at the first of them, wherever a piece ends.
TEST(TextPieces, FindsLongRunsOfBadBytes) {
  for (std::size_t front = 0; front < 9; ++front) {
    const std::string text = std::string(front, 'a') + "\xF0\x9F\x98\x80" + std::string(9, '\x80');
    for (std::size_t most = 4; most < 20; ++most) {
      EXPECT_EQ(pieces_of(text, most).fault, "1:" + std::to_string(front + 5) + ": the text is not UTF-8");
    }
  }
}

// Claim: what our own code gets wrong is caught.
TEST(TextPiecesDeathTest, ChecksSizes) {
  EXPECT_DEATH((void)first_piece("12345", 3), "CHECK failed");
  EXPECT_DEATH((void)first_piece("12345", 5), "CHECK failed");
  EXPECT_DEATH((void)pieces_of("", 3), "CHECK failed");
}

}  // namespace
}  // namespace gossamer::tokens
