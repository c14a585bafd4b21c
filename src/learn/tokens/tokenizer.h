// SPDX-License-Identifier: Apache-2.0
//
// Tokenizer: a text as numbers of a vocabulary, and back. The seam between a user's text and a language
// model.
//
// A text is valid UTF-8 and may hold any character, the zero byte included. It may be given in pieces. Cuts
// behind a "\n" do not change the tokens: what encode() appends for "a\n" and then for "b" is what it appends
// for "a\nb". So no token reaches over a line end, and none depends on what stands in other lines. A cut
// anywhere else may give other tokens.
//
// Thread rule: immutable once made; every function on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer::tokens {

// The number of a token, below the vocabulary of its tokenizer.
using TokenId = std::uint32_t;

// The file with Tokenizer::model() in a directory of tokens or of a model.
inline constexpr std::string_view kTokenizerFile = "tokenizer.model";
// The most bytes that such a file may have. One of a million pieces has a third of them.
inline constexpr std::size_t kMostTokenizerBytes = std::size_t{64} << 20;
// The most tokens of a tokenizer, and so of a model.
inline constexpr std::uint32_t kMostVocabulary = std::uint32_t{1} << 20;

class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  virtual ~Tokenizer() = default;

  // Appends the tokens of a piece of a text. Each is below vocabulary(), and none is end_of_text().
  virtual void encode(std::string_view piece, std::vector<TokenId>& out) const = 0;
  // The bytes that the tokens stand for. They need not be UTF-8, as tokens may end inside a character. All
  // tokens of a text give that text, or a normal form of it where the tokenizer says so.
  // Requires every token to be below vocabulary() (checked).
  [[nodiscard]] virtual std::string decode(std::span<const TokenId> tokens) const = 0;

  // The number of tokens, at least 1, end_of_text() included.
  [[nodiscard]] virtual std::uint32_t vocabulary() const = 0;
  // The token behind each document. It stands for no byte.
  [[nodiscard]] virtual TokenId end_of_text() const = 0;
  // Tells tokenizers apart: those with one digest give the same tokens for every text.
  [[nodiscard]] virtual std::uint64_t digest() const = 0;
  // Its kind, such as "bytes". Lives as long as the tokenizer.
  [[nodiscard]] virtual std::string_view name() const = 0;
  // The bytes from which it is made again; none where the name says all. They live as long as the tokenizer.
  [[nodiscard]] virtual std::string_view model() const { return {}; }
};

}  // namespace gossamer::tokens
