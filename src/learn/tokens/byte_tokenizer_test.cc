// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/byte_tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"

namespace gossamer::tokens {
namespace {

std::vector<TokenId> encoded(const std::string& text) {
  std::vector<TokenId> tokens;
  ByteTokenizer().encode(text, tokens);
  return tokens;
}

// Claim: every string of up to two bytes, and longer ones of any bytes, come back from their tokens. There is
// one token a byte, the byte's value.
TEST(ByteTokenizer, EveryByteComesBack) {
  const ByteTokenizer bytes;
  EXPECT_EQ(bytes.decode(encoded("")), "");
  for (int a = 0; a < 256; ++a) {
    const std::string one(1, static_cast<char>(a));
    ASSERT_EQ(encoded(one), std::vector<TokenId>{static_cast<TokenId>(a)});
    for (int b = 0; b < 256; ++b) {
      const std::string two = one + static_cast<char>(b);
      ASSERT_EQ(bytes.decode(encoded(two)), two);
    }
  }
  Rng rng(3, Purpose::kTest);
  for (int i = 0; i < 100; ++i) {
    std::string text(rng.below(500), '\0');
    for (char& c : text) c = static_cast<char>(rng.below(256));
    const auto tokens = encoded(text);
    ASSERT_EQ(tokens.size(), text.size());
    ASSERT_EQ(bytes.decode(tokens), text);
  }
}

// Claim: encode() appends, so pieces give the tokens of the whole wherever it is cut.
TEST(ByteTokenizer, PiecesGiveTheTokensOfTheWhole) {
  const std::string text = "one\ntw\xC3\xB6\r\n\nthree";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    std::vector<TokenId> tokens = encoded(text.substr(0, cut));
    ByteTokenizer().encode(text.substr(cut), tokens);
    EXPECT_EQ(tokens, encoded(text)) << cut;
  }
}

// Claim: the end of text is in the vocabulary, is no byte's token and stands for no byte.
TEST(ByteTokenizer, EndOfTextIsNoByte) {
  const ByteTokenizer bytes;
  EXPECT_EQ(bytes.vocabulary(), 257U);
  EXPECT_EQ(bytes.end_of_text(), 256U);
  EXPECT_EQ(bytes.decode(std::vector<TokenId>{'a', 256, 'b', 256}), "ab");
  EXPECT_EQ(bytes.name(), "bytes");
  EXPECT_EQ(bytes.digest(), ByteTokenizer().digest());
}

// Claim: a token outside the vocabulary is our own mistake, and is caught.
TEST(ByteTokenizerDeathTest, ChecksTokens) {
  EXPECT_DEATH((void)ByteTokenizer().decode(std::vector<TokenId>{257}), "CHECK failed");
}

}  // namespace
}  // namespace gossamer::tokens
