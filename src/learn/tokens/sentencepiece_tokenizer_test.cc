// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/sentencepiece_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "learn/tokens/test_pieces_module.h"

namespace gossamer::tokens {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kWrittenSpace = "\xE2\x96\x81";

std::unique_ptr<SentencePieceTokenizer> tokenizer_of(const std::string& model) {
  auto loaded = SentencePieceTokenizer::load(test_pieces::kModule, test_pieces::model(model), "toy.model");
  EXPECT_TRUE(loaded.ok()) << loaded.error().message();
  return *std::move(loaded);
}

std::vector<TokenId> encoded(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> tokens;
  tokenizer.encode(text, tokens);
  return tokens;
}

TokenId text_token(std::string_view piece) {
  const auto at = std::ranges::find(test_pieces::kTexts, piece);
  return static_cast<TokenId>(test_pieces::kFirstText + (at - test_pieces::kTexts.begin()));
}
TokenId byte_token(unsigned char byte) { return static_cast<TokenId>(test_pieces::kFirstByte + byte); }

std::string random_text(Rng& rng) {
  static constexpr std::array<std::string_view, 13> kParts = {"a",
                                                              "b",
                                                              " ",
                                                              "\n",
                                                              "\r\n",
                                                              kWrittenSpace,
                                                              "\t",
                                                              "\xC3\xBC",
                                                              "x",
                                                              "\xE4\xB8\xAD",
                                                              "\xFF",
                                                              "\xE2",
                                                              std::string_view("\0", 1)};
  std::string text;
  for (auto n = rng.below(30); n > 0; --n) text += kParts[rng.below(kParts.size())];
  return text;
}

// Claim: every text comes back from its tokens, UTF-8 or not, whatever the library does with it: also where
// it lies, or refuses a text. The tokens do not change where the text is cut behind a line end.
TEST(SentencePieceTokenizer, EveryTextComesBack) {
  for (const char* model : {"good", "lies", "refuses"}) {
    const auto tokenizer = tokenizer_of(model);
    Rng rng(5, Purpose::kTest);
    for (int i = 0; i < 2000; ++i) {
      const std::string text = random_text(rng);
      const auto tokens = encoded(*tokenizer, text);
      ASSERT_EQ(tokenizer->decode(tokens), text) << model;
      for (const TokenId token : tokens) ASSERT_LT(token, tokenizer->end_of_text());
      const std::size_t end = text.find('\n');
      if (end == std::string::npos) continue;
      auto pieces = encoded(*tokenizer, std::string_view(text).substr(0, end + 1));
      tokenizer->encode(std::string_view(text).substr(end + 1), pieces);
      ASSERT_EQ(pieces, tokens) << model;
    }
  }
}

// Claim: words are pieces, the line end is a token of its own, and a character without a piece is its bytes.
TEST(SentencePieceTokenizer, WordsArePieces) {
  const auto tokenizer = tokenizer_of("good");
  const TokenId line_end = tokenizer->vocabulary() - 2;
  EXPECT_THAT(encoded(*tokenizer, "ab a\n\nc"),
              ElementsAre(text_token("ab"), text_token(std::string(kWrittenSpace) + "a"), line_end, line_end,
                          byte_token('c')));
  EXPECT_EQ(tokenizer->end_of_text(), line_end + 1);
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{text_token("ab"), tokenizer->end_of_text()}), "ab");
}

// Claim: where a line has the character by which the library writes a space, that character alone becomes
// bytes. Where the library lies, what lies between its first lie and its last one does.
TEST(SentencePieceTokenizer, OnlyWhatDiffersBecomesBytes) {
  EXPECT_THAT(encoded(*tokenizer_of("good"),
                      "ab\xE2\x96\x81"
                      "bb"),
              ElementsAre(text_token("ab"), byte_token(0xE2), byte_token(0x96), byte_token(0x81),
                          text_token("bb")));  // fmt: skip
  EXPECT_THAT(encoded(*tokenizer_of("lies"),
                      "x\xE2\x96\x81"
                      "bb"),
              ElementsAre(byte_token('x'), byte_token(0xE2), byte_token(0x96), byte_token(0x81),
                          text_token("bb")));  // fmt: skip
  EXPECT_THAT(encoded(*tokenizer_of("lies"), "abxabxbb"),
              ElementsAre(text_token("ab"), byte_token('x'), byte_token('a'), byte_token('b'),
                          byte_token('x'), text_token("bb")));
}

// Claim: the library is asked once for each part of a line.
TEST(SentencePieceTokenizer, AsksOnce) {
  const auto tokenizer = tokenizer_of("lies");
  test_pieces::asked() = 0;
  EXPECT_EQ(encoded(*tokenizer, "abxab").size(), 3U);
  EXPECT_EQ(test_pieces::asked(), 1);
}

// Claim: what is no model, lacks a byte or changes white space is refused, with the reason.
TEST(SentencePieceTokenizer, RefusesModels) {
  const auto message = [](const std::string& model) {
    const auto loaded =
        SentencePieceTokenizer::load(test_pieces::kModule, test_pieces::model(model), "toy.model");
    EXPECT_FALSE(loaded.ok()) << model;
    return loaded.ok() ? "" : loaded.error().message();
  };
  EXPECT_THAT(message("other"), HasSubstr("cannot parse"));
  EXPECT_THAT(message("without-bytes"), HasSubstr("0xC7"));
  EXPECT_THAT(message("adds-a-space"), HasSubstr("does not give every text back"));
  EXPECT_THAT(message("drops-spaces"), HasSubstr("does not give every text back"));
  EXPECT_THAT(message("other"), HasSubstr("toy.model"));
}

// Claim: tokenizers of different models have different digests; those of one have one, and know its bytes.
TEST(SentencePieceTokenizer, DigestIsOfTheModel) {
  EXPECT_EQ(tokenizer_of("good")->digest(), tokenizer_of("good")->digest());
  EXPECT_NE(tokenizer_of("good")->digest(), tokenizer_of("lies")->digest());
  EXPECT_EQ(tokenizer_of("good")->model(), test_pieces::model("good"));
}

// Claim: the library gets lines in parts between the characters for which it would leave them out, and a
// vocabulary without the two tokens that are ours.
TEST(TrainSentencePiece, GivesLines) {
  const std::string left_out = "\xE2\x96\x85";
  const std::vector<std::string> lines = {"good", "a" + left_out + "b\tb", "", left_out, "c"};
  const auto model = train_sentencepiece(test_pieces::kModule, lines, 1000);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(*model, test_pieces::model("good"));
  EXPECT_EQ(test_pieces::trained().vocabulary, 998U);
  EXPECT_THAT(test_pieces::trained().lines, ElementsAre("good", "a", "b\tb", "", "c"));
}

// Claim: a text without characters is named as one, and what the library says against another text is told.
TEST(TrainSentencePiece, TellsWhy) {
  const auto none = train_sentencepiece(test_pieces::kModule, std::vector<std::string>{""}, kLeastVocabulary);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(none.error().got, "no character");
  const auto odd =
      train_sentencepiece(test_pieces::kModule, std::vector<std::string>{"odd"}, kLeastVocabulary);
  ASSERT_FALSE(odd.ok());
  EXPECT_EQ(odd.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(odd.error().got, "too few characters");
}

// Claim: training that is asked to stop gets no more lines, and gives no model.
TEST(TrainSentencePiece, Stops) {
  int asked = 0;
  const std::vector<std::string> lines = {"good", "a", "b", "c"};
  const auto model =
      train_sentencepiece(test_pieces::kModule, lines, kLeastVocabulary, [&] { return ++asked > 2; });
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().what, "stopped");
  EXPECT_THAT(test_pieces::trained().lines, ElementsAre("good", "a"));
}

}  // namespace
}  // namespace gossamer::tokens
