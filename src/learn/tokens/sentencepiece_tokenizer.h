// SPDX-License-Identifier: Apache-2.0
//
// SentencePieceTokenizer: tokens are pieces of words that are frequent in the text on which they were trained
// (Kudo and Richardson, "SentencePiece", 2018), by merging of pairs (Sennrich et al., 2016). An English token
// stands for some four bytes, so a model reads four times as much text for the same work.
//
// Every text comes back, byte for byte. Each line is encoded alone, and the line end is a token of its own.
// A character U+2581, by which the library writes a space, becomes bytes. What the library gives for the
// parts between is compared with them. What lies behind the first token that differs, and before the last
// one, becomes tokens of single bytes.
//
// The tokens are the model's pieces, then the line end, then the end of text.
//
// Thread rule: as for Tokenizer.
#pragma once

#include <cstdint>
#include <functional>
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
// The digest() of the tokenizer with this model: it covers the model, and how lines are encoded by it. It
// stands in files.
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
  [[nodiscard]] std::vector<int> library_ids(std::string_view text) const;  // none: it did not take it
  [[nodiscard]] std::string_view bytes_of(int id) const;                    // nothing: of no piece
  // Appends the library's tokens for a part of a line, as far as they stand for its beginning and its end.
  // Bytes are between. Returns how many.
  std::size_t append_words(std::string_view words, std::vector<TokenId>& out) const;
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
// counts all tokens. The model may have fewer, where the lines have no more to merge. Which pieces it has
// depends on the version of the library, too. `stop` is asked before each line, and may be empty. What comes
// behind the lines is not stopped. Errors: kUsage for a vocabulary that has no room for the characters of the
// lines, with the least that has; kRefused for lines without a character, and where the library fails
// otherwise; kFailed, "stopped".
[[nodiscard]] Result<std::string> train_sentencepiece(const SentencePieceModule& module,
                                                      std::span<const std::string> lines,
                                                      std::uint32_t vocabulary,
                                                      const std::function<bool()>& stop = {});

// The least vocabulary that can be trained: the bytes, the unknown piece, a space, one character, line end
// and end of text.
inline constexpr std::uint32_t kLeastVocabulary = 256 + 3 + kTokensBesidePieces;
// Where nothing else is said.
inline constexpr std::uint32_t kUsualVocabulary = 8192;

}  // namespace gossamer::tokens
