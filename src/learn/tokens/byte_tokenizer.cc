// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/byte_tokenizer.h"

#include "base/check.h"

namespace gossamer::tokens {

void ByteTokenizer::encode(std::string_view piece, std::vector<TokenId>& out) const {
  out.reserve(out.size() + piece.size());
  for (const char c : piece) out.push_back(static_cast<unsigned char>(c));
}

std::string ByteTokenizer::decode(std::span<const TokenId> tokens) const {
  std::string bytes;
  bytes.reserve(tokens.size());
  for (const TokenId token : tokens) {
    CHECK(token < kVocabulary, token);
    if (token != kEndOfText) bytes.push_back(static_cast<char>(token));
  }
  return bytes;
}

std::uint64_t ByteTokenizer::digest() const {
  // "bytes\0\0" and a version. It stands in files: other tokens for a text need another one.
  return 0x6279'7465'7300'0001;
}

}  // namespace gossamer::tokens
