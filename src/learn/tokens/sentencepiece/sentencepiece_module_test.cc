// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/sentencepiece/sentencepiece_module.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "host/posix/module.h"
#include "learn/tokens/sentencepiece_tokenizer.h"
#include "learn/tokens/test_pieces_model.h"

namespace gossamer::tokens {
namespace {

const SentencePieceModule& module() {
  static const SentencePieceModule* const opened = [] {
    const auto symbol =
        host::open_module(TEST_SENTENCEPIECE, kSentencePieceModuleSymbol, host::ModuleNames::kItsOwn);
    EXPECT_TRUE(symbol.ok()) << symbol.error().message();
    return static_cast<const SentencePieceModule*>(*symbol);
  }();
  return *opened;
}

// Sentences of a small language: words of syllables, with tabs, double spaces and a rare character.
std::vector<std::string> sentences(std::size_t count) {
  Rng rng(8, Purpose::kTest);
  std::vector<std::string> lines(count);
  for (std::string& line : lines) {
    if (rng.below(7) == 0) line += "  ";
    for (auto words = 1 + rng.below(9); words > 0; --words) {
      for (auto syllables = 1 + rng.below(3); syllables > 0; --syllables)
        line += fmt::format("{}{}", "bdgklmnprst"[rng.below(11)], "aeiou"[rng.below(5)]);
      line += rng.below(20) == 0 ? "\t" : " ";
    }
    if (rng.below(50) == 0) line += "caf\xC3\xA9";
  }
  return lines;
}

std::string trained(std::span<const std::string> lines, std::uint32_t vocabulary) {
  auto model = train_sentencepiece(module(), lines, vocabulary);
  EXPECT_TRUE(model.ok()) << model.error().message();
  return *std::move(model);
}

// Claim: a model is trained, the same from the same lines. Its tokens are fewer than half of the bytes, and
// every text comes back: any bytes in UTF-8 and not, the library's own written space, and words as those of
// its control symbols.
TEST(SentencePieceModule, TrainsAndGivesEveryTextBack) {
  const auto lines = sentences(3000);
  const std::string model = trained(lines, 600);
  EXPECT_EQ(model, trained(lines, 600));
  const auto loaded = SentencePieceTokenizer::load(module(), model, "trained");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const Tokenizer& tokenizer = **loaded;
  EXPECT_LE(tokenizer.vocabulary(), 600U);
  EXPECT_GT(tokenizer.vocabulary(), 500U);
  std::string text;
  for (std::size_t i = 0; i < 100; ++i) text += lines[i] + "\n";
  std::vector<TokenId> tokens;
  tokenizer.encode(text, tokens);
  EXPECT_EQ(tokenizer.decode(tokens), text);
  EXPECT_LT(tokens.size(), text.size() / 2);
  Rng rng(9, Purpose::kTest);
  for (int i = 0; i < 2000; ++i) {
    std::string odd;
    for (auto n = rng.below(12); n > 0; --n) {
      constexpr const char* kParts[] = {"\xE2\x96\x81", "<unk>", "<0x41>", "<s>",
                                        "  ",           "\n",    "ba",     "\xEF\xAC\x81"};
      odd += rng.below(2) == 0 ? std::string(kParts[rng.below(8)])
                               : std::string(1, static_cast<char>(rng.below(256)));
    }
    tokens.clear();
    tokenizer.encode(odd, tokens);
    ASSERT_EQ(tokenizer.decode(tokens), odd) << testing::PrintToString(odd);
    for (const TokenId token : tokens) ASSERT_LT(token, tokenizer.end_of_text());
  }
}

// Claim: a text with nothing to merge gives fewer tokens than were asked for. A model of a text without any
// space writes spaces, too. Lines that the library cannot take are left out, and do not end the process.
TEST(SentencePieceModule, TrainsOnOddTexts) {
  const std::vector<std::string> few = {"ab", "", "ab"};
  const std::vector<std::string> long_lines = {std::string(40'000, 'c'), "ab", "ab",
                                               std::string(70'000, 'd')};
  const std::vector<std::string> left_out = {"ab\xE2\x96\x85",
                                             "\xE2\x96\x85"
                                             "ab"};  // fmt: skip
  for (const auto& lines : {few, long_lines, left_out}) {
    const auto small = SentencePieceTokenizer::load(module(), trained(lines, 5000), "small");
    ASSERT_TRUE(small.ok()) << small.error().message();
    EXPECT_LT((*small)->vocabulary(), 300U);
    std::vector<TokenId> tokens;
    (*small)->encode("ab  ab ", tokens);
    EXPECT_EQ(tokens.size(), 5U);
    EXPECT_EQ((*small)->decode(tokens), "ab  ab ");
  }
}

// Claim: a vocabulary without room for a text's characters, a text without characters and bytes that are no
// model are refused, and nothing ends the process.
TEST(SentencePieceModule, RefusesWhatCannotBe) {
  std::string many;
  for (char32_t c = 0x4E00; c < 0x4E00 + 500; ++c) {
    many += static_cast<char>(0xE0U | (c >> 12U));
    many += static_cast<char>(0x80U | ((c >> 6U) & 0x3FU));
    many += static_cast<char>(0x80U | (c & 0x3FU));
  }
  const auto few = train_sentencepiece(module(), std::vector<std::string>{many}, 300);
  ASSERT_FALSE(few.ok());
  EXPECT_EQ(few.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(few.error().got, "300");
  // 256 bytes, the unknown piece, a space, 500 characters, line end and end of text.
  EXPECT_EQ(few.error().expected, "at least 760");
  EXPECT_TRUE(train_sentencepiece(module(), std::vector<std::string>{many}, 760).ok());
  EXPECT_FALSE(train_sentencepiece(module(), {}, 300).ok());
  EXPECT_FALSE(train_sentencepiece(module(), std::vector<std::string>{"", ""}, 300).ok());
  for (const std::string& bytes : {std::string(), std::string("no model"), std::string(100, '\xFF')})
    EXPECT_FALSE(SentencePieceTokenizer::load(module(), bytes, "bad").ok());
}

// Claim: the least vocabulary can be trained, on a text of one character, and one less cannot.
TEST(SentencePieceModule, TrainsTheLeastVocabulary) {
  const std::vector<std::string> line = {"aa"};
  const auto least = SentencePieceTokenizer::load(module(), trained(line, kLeastVocabulary), "least");
  ASSERT_TRUE(least.ok()) << least.error().message();
  EXPECT_EQ((*least)->vocabulary(), kLeastVocabulary);
  std::vector<TokenId> tokens;
  (*least)->encode("a a", tokens);
  EXPECT_EQ((*least)->decode(tokens), "a a");
  EXPECT_DEATH((void)train_sentencepiece(module(), line, kLeastVocabulary - 1), "vocabulary");
}

// Claim: models of all types that give text back are taken, and every text comes back from them.
TEST(SentencePieceModule, EncodesByModelsOfOtherTypes) {
  const auto lines = sentences(300);
  const std::string model = trained(lines, 400);
  for (const std::uint64_t type : {1, 2, 4}) {
    // A setting that stands behind another one replaces it.
    const auto loaded = SentencePieceTokenizer::load(
        module(), model + test_pieces::bytes_field(2, test_pieces::number_field(3, type)), "typed");
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    std::vector<TokenId> tokens;
    for (const std::string& line : lines) {
      tokens.clear();
      (*loaded)->encode(line, tokens);
      ASSERT_EQ((*loaded)->decode(tokens), line) << type;
    }
  }
}

// Claim: a model with pieces that a user has defined is refused, though the library takes it. So is one that
// is cut off. One with changed bits is refused or gives every text back, and nothing ends the process.
TEST(SentencePieceModule, StandsHostileModels) {
  const auto lines = sentences(100);
  const std::string model = trained(lines, 300);
  std::string nested = model;
  for (std::size_t size = 2; size < 500; ++size) {
    nested += test_pieces::bytes_field(
        1, test_pieces::bytes_field(1, std::string(size, 'a')) + test_pieces::number_field(3, 4));
  }
  EXPECT_FALSE(SentencePieceTokenizer::load(module(), nested, "nested").ok());
  for (std::size_t size = 0; size + 100 < model.size(); size += 31)
    EXPECT_FALSE(SentencePieceTokenizer::load(module(), model.substr(0, size), "cut off").ok()) << size;
  Rng rng(10, Purpose::kTest);
  int taken = 0;
  std::vector<TokenId> tokens;
  for (int i = 0; i < 500; ++i) {
    std::string other = model;
    for (auto flips = 1 + rng.below(3); flips > 0; --flips)
      other[rng.below(other.size())] ^= static_cast<char>(1U << rng.below(8));
    const auto loaded = SentencePieceTokenizer::load(module(), other, "changed");
    if (!loaded.ok()) continue;
    ++taken;
    for (const std::string& line : lines) {
      tokens.clear();
      (*loaded)->encode(line, tokens);
      ASSERT_EQ((*loaded)->decode(tokens), line) << i;
    }
  }
  EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace gossamer::tokens
