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

std::string visible(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
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
