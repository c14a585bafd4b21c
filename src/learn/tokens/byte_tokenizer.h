// SPDX-License-Identifier: Apache-2.0
//
// ByteTokenizer: each byte of a text is a token, the byte's value. It needs no training, and every string of
// bytes comes back, UTF-8 or not. The price is length: a token for each byte.
//
// Thread rule: as for Tokenizer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "learn/tokens/tokenizer.h"

namespace gossamer::tokens {

class ByteTokenizer final : public Tokenizer {
 public:
  // The 256 bytes, and the end of text behind them.
  static constexpr TokenId kEndOfText = 256;
  static constexpr std::uint32_t kVocabulary = 257;

  void encode(std::string_view piece, std::vector<TokenId>& out) const override;
  [[nodiscard]] std::string decode(std::span<const TokenId> tokens) const override;
  [[nodiscard]] std::uint32_t vocabulary() const override { return kVocabulary; }
  [[nodiscard]] TokenId end_of_text() const override { return kEndOfText; }
  [[nodiscard]] std::uint64_t digest() const override;
  [[nodiscard]] std::string_view name() const override { return "bytes"; }
};

}  // namespace gossamer::tokens
