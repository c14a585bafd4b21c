// SPDX-License-Identifier: Apache-2.0
//
// TextGenerator: adds tokens to a prompt, one at a time, as a language model scores them.
//
//   auto generator = TextGenerator::begin(*model, prompt, {.tokens = 100, .end_of_text = end});
//   while (true) {
//     const auto token = generator->next();
//     if (!token.ok()) return token.error();
//     if (!*token) break;
//     write(**token);
//   }
//
// The token that is added n-th follows from the last context() tokens of the text:
//
//   1. s = scores of the model. Of the vocabulary the `top_k` best stay, of equal ones those of lower number.
//   2. temperature 0: the best one. Else p_v = exp((s_v - max s) / temperature) / sum of these over what
//   stays.
//   3. u in [0, 1) of 53 random bits, from the stream (seed, Purpose::kNextToken, n). The first v, in order
//   of
//      numbers, at which the sum of all p up to v exceeds u.
//
// All of it is in double, and with exact functions (src/exact). So equal scores and options give equal tokens
// on every CPU. A token whose p is 0 is never chosen, nor is one beyond the vocabulary.
//
// An empty prompt begins with the end of text: in training the first token of a document stands behind it.
//
// Errors: kUsage for options or a prompt that no text follows from; kFailed for scores that are not finite;
// those of the backend. After an error of next(), the same call may be tried again. Thread rule: the thread
// that owns the backend.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engines/pipeline/stage/stage_backend.h"

namespace gossamer::pipeline {

struct GeneratorOptions {
  std::uint64_t tokens = 200;  // to add, at most
  double temperature = 1;      // at least 0, finite
  std::uint32_t top_k = 0;     // 0: all
  std::uint64_t seed = 1;
  // Begins an empty prompt, and ends the text when it is chosen. Nothing: a prompt is needed, and the text
  // has all its tokens.
  std::optional<TokenNumber> end_of_text = {};
};

// The draw u of the token that is added n-th; `number` is n, from 0.
[[nodiscard]] double token_draw(std::uint64_t seed, std::uint64_t number);

// The token that follows from a draw and the scores of a vocabulary of at least one token. Requires right
// options; of those it reads `temperature` and `top_k` alone.
[[nodiscard]] Result<TokenNumber> choose_token(std::span<const double> scores,
                                               const GeneratorOptions& options, double draw);

class TextGenerator {
 public:
  // The backend has the whole model (checked), and outlives this object.
  [[nodiscard]] static Result<TextGenerator> begin(StageBackend& model, std::span<const TokenNumber> prompt,
                                                   const GeneratorOptions& options);

  // The next token; nothing once all are there, or the end of text was chosen.
  [[nodiscard]] Result<std::optional<TokenNumber>> next();
  // Tokens that next() gave.
  [[nodiscard]] std::uint64_t added() const { return added_; }

 private:
  TextGenerator(StageBackend& model, std::span<const TokenNumber> prompt, const GeneratorOptions& options);
  // Only the last tokens of a text that the model can look back over are kept.
  void append(TokenNumber token);

  StageBackend* model_;
  GeneratorOptions options_;
  std::vector<TokenNumber> window_;  // 1..context tokens
  std::uint64_t added_ = 0;
  bool ended_ = false;
};

}  // namespace gossamer::pipeline
