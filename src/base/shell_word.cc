// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.h"

#include "base/printable.h"

namespace gossamer {
namespace {

std::string replaced(std::string_view text, char from, std::string_view to) {
  std::string out;
  for (const char c : text) {
    if (c == from) {
      out += to;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string shell_word(std::string_view text) {
  // A command would take it for a flag.
  if (text.starts_with('-')) return shell_word("./" + std::string(text));
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-=:@,+%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  if (visible(text) == text) return "'" + replaced(text, '\'', "'\\''") + "'";
  return "$'" + visible(replaced(replaced(text, '\\', "\\\\"), '\'', "\\'")) + "'";
}

}  // namespace gossamer
