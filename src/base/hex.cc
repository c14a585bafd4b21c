// SPDX-License-Identifier: Apache-2.0
#include "base/hex.h"

#include <algorithm>

namespace gossamer {

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

std::string to_hex(std::string_view bytes) { return to_hex(std::as_bytes(std::span(bytes))); }

bool is_hex(std::string_view text, std::size_t bytes) {
  return text.size() == 2 * bytes &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace gossamer
