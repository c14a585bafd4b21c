// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer {
namespace {

bool is_printable(char c) { return c >= ' ' && c <= '~'; }

}  // namespace

std::string printable(std::string_view text, std::size_t most) {
  std::string shown(text.substr(0, most));
  std::ranges::replace_if(shown, [](char c) { return !is_printable(c); }, '?');
  return shown;
}

// In UTF-8 the controls U+0080 to U+009F are c2 80 to c2 9f. Some terminals take the second byte alone for
// the same, where it continues no character.
std::string visible(std::string_view text) {
  std::string shown;
  unsigned char lead = 0;  // the first byte of a character that goes on, or one that continues it
  int more = 0;            // bytes that it has left
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool continues = more > 0 && byte >= 0x80 && byte < 0xc0;
    const bool c1 = byte >= 0x80 && byte < 0xa0 && (!continues || lead == 0xc2);
    more = continues ? more - 1 : byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc2 ? 1 : 0;
    if (!continues) lead = byte;
    if (byte < 0x20 || byte == 0x7f || c1) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += c;
    }
  }
  return shown;
}

std::string quote(std::string_view text, std::size_t most) {
  std::string quoted = "'";
  for (const char c : text.substr(0, most)) {
    if (is_printable(c)) {
      quoted += c;
    } else {
      quoted += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
    }
  }
  return quoted + (text.size() > most ? "...'" : "'");
}

}  // namespace gossamer
