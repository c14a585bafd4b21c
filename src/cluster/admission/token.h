// SPDX-License-Identifier: Apache-2.0
//
// Token: what a stranger needs to become a node of a run, as one line of text (docs/protocols/admission.md).
//
// Thread rule: plain values and functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "host/api/endpoint.h"

namespace gossamer::cluster {

inline constexpr std::size_t kTokenIdBytes = 8;
inline constexpr std::size_t kSecretBytes = 32;
inline constexpr std::size_t kMaxTokenText = 1024;

struct Token {
  host::Endpoint at;      // host of 1..255 bytes, port not 0
  std::string id;         // 16 hexadecimal digits
  std::string secret;     // 32 bytes
  std::string authority;  // fingerprint of the run's certificate authority, 64 hexadecimal digits

  bool operator==(const Token&) const = default;
};

// Requires what Token says of its fields.
[[nodiscard]] std::string encode_token(const Token& token);

// Reads what encode_token() writes, and nothing else. Errors are kRefused. They never repeat the text,
// because it may hold most of a secret.
[[nodiscard]] Result<Token> decode_token(std::string_view text);

// The text with "gossamer1.***" in the place of everything that looks like a token. For messages that repeat
// what somebody typed: a token may stand in the wrong place.
[[nodiscard]] std::string hide_tokens(std::string_view text);

}  // namespace gossamer::cluster
