// SPDX-License-Identifier: Apache-2.0
//
// SentencePieceTokenizer: tokens are pieces of words that are frequent in the text on which they were trained
// (Kudo and Richardson, "SentencePiece", 2018), by merging of pairs (Sennrich et al., 2016). An English token
// stands for some four bytes, so a model reads four times as much text for the same work.
//
// Every text comes back, byte for byte. Each line is encoded alone, and the line end is a token of its own.
// What the library gives for a line is compared with the line. If it differs, as for a line with U+2581, by
// which the library writes a space, the part that differs becomes tokens of single bytes.
//
// The tokens are the model's pieces, then the line end, then the end of text.
//
// Thread rule: as for Tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "learn/tokens/sentencepiece/sentencepiece_module.h"
#include "learn/tokens/tokenizer.h"

namespace gossamer::tokens {

// The name() of these tokenizers.
inline constexpr std::string_view kSentencePieceName = "sentencepiece";
// The tokens of a model that are not its pieces: the line end, and the end of text.
inline constexpr std::uint32_t kTokensBesidePieces = 2;
// The digest() of the tokenizer with this model. It stands in files.
[[nodiscard]] std::uint64_t sentencepiece_digest(std::string_view model);

class SentencePieceTokenizer final : public Tokenizer {
 public:
  // From the bytes of a model; `where` is for messages. `module` lives longer. Errors, kBadData: those of
  // checked_pieces_model(), before the library sees a byte; a model that the library does not open, or that
  // does not give text back.
  [[nodiscard]] static Result<std::unique_ptr<SentencePieceTokenizer>> load(const SentencePieceModule& module,
                                                                            std::string model,
                                                                            const std::string& where);

  void encode(std::string_view piece, std::vector<TokenId>& out) const override;
  [[nodiscard]] std::string decode(std::span<const TokenId> tokens) const override;
  [[nodiscard]] std::uint32_t vocabulary() const override { return end_of_text() + 1; }
  [[nodiscard]] TokenId end_of_text() const override { return line_end() + 1; }
  [[nodiscard]] std::uint64_t digest() const override { return digest_; }
  [[nodiscard]] std::string_view name() const override { return kSentencePieceName; }
  [[nodiscard]] std::string_view model() const override { return model_; }

 private:
  struct Unload {
    void (*unload)(void*);
    void operator()(void* model) const { unload(model); }
  };

  SentencePieceTokenizer(const SentencePieceModule& module, std::string model, void* loaded);

  [[nodiscard]] TokenId line_end() const { return static_cast<TokenId>(bytes_.size()); }
  void read_pieces();
  // Appends the library's tokens for text of one line, if they stand for it.
  [[nodiscard]] bool append_exact(std::string_view text, std::vector<TokenId>& out) const;
  void append_bytes(std::string_view text, std::vector<TokenId>& out) const;
  void append_line(std::string_view line, std::vector<TokenId>& out) const;
  [[nodiscard]] Result<void> check(const std::string& where) const;

  const SentencePieceModule& module_;
  std::string model_;
  std::unique_ptr<void, Unload> loaded_;
  std::vector<std::string> bytes_;    // of each piece
  std::vector<TokenId> byte_tokens_;  // of each byte; no piece: line_end()
  std::uint64_t digest_;
};

// Trains a model on lines, none with a "\n". Lines of more than 32,768 bytes are left out. `vocabulary`
// counts all tokens. The model may have fewer, where the lines have no more to merge. Errors, kRefused with
// what the library says: a vocabulary that has no room for the characters of the lines; no line at all.
[[nodiscard]] Result<std::string> train_sentencepiece(const SentencePieceModule& module,
                                                      std::span<const std::string> lines,
                                                      std::uint32_t vocabulary);

// The least vocabulary that can be trained: the bytes, the unknown piece, line end and end of text, and one
// more.
inline constexpr std::uint32_t kLeastSentencePieces = 256 + 4;

}  // namespace gossamer::tokens
