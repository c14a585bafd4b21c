// SPDX-License-Identifier: Apache-2.0
#include "learn/text/gcide_sense.h"

#include <algorithm>
#include <array>
#include <utility>

#include "learn/text/gcide.h"
#include "learn/text/words.h"

namespace gossamer::text {
namespace {

constexpr std::size_t kMaxLetterBytes = 6;  // in the brackets
constexpr std::size_t kMinBytes = 4;        // a shorter definition says nothing
constexpr std::size_t kMaxReferenceBytes = 48;
constexpr std::size_t kMaxAuthorBytes = 40;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Letters that GCIDE spells by name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kNamedLetters = {{
    {"ae", "ae"},    {"oe", "oe"}, {"AE", "AE"},  {"OE", "OE"},  {"eth", "d"},
    {"thorn", "th"}, {"th", "th"}, {"ng", "ng"},  {"asl", ""},   {"deg", " degrees"},
    {"root", ""},    {"add", ""},  {"sect", ""},  {"aum", "a"},  {"oum", "o"},
    {"uum", "u"},    {"eum", "e"}, {"imac", "i"}, {"yogh", "g"}, {"pounds", "pounds "},
}};

// Appends the plain form of a letter in brackets: a named letter, or one or two letters with an accent before
// or behind. False for anything else.
bool plain_letter(std::string_view inside, std::string& out) {
  for (const auto& [name, plain] : kNamedLetters) {
    if (inside != name) continue;
    out += plain;
    return true;
  }
  const auto letters = static_cast<std::size_t>(std::count_if(inside.begin(), inside.end(), is_letter));
  const bool accented = letters >= 1 && letters <= 2 && inside.size() == letters + 1 &&
                        std::none_of(inside.begin(), inside.end(), is_digit) &&
                        (!is_letter(inside.front()) || inside.back() == '^' || inside.back() == '\'');
  if (!accented) return false;
  std::copy_if(inside.begin(), inside.end(), std::back_inserter(out), is_letter);
  return true;
}

constexpr std::array<std::string_view, 5> kSources = {"[1913 Webster", "[WordNet", "[PJC", "[Webster 1913",
                                                      "[Century"};
std::size_t source_position(std::string_view text) {
  std::size_t first = std::string_view::npos;
  for (const std::string_view source : kSources) first = std::min(first, text.find(source));
  return first;
}

std::string without_brackets(std::string_view text) {
  std::string out;
  std::size_t depth = 0;
  for (const char c : text) {
    if (c == '[') ++depth;
    if (depth == 0) out += c;
    if (c == ']' && depth > 0) --depth;
  }
  return out;
}

// "(Bot.) A tree" -> "A tree", also "(Naut. & Mil.)"; "(of a person) tall" stays.
std::string_view without_field(std::string_view text) {
  if (text.size() < 2 || text.front() != '(' || !is_upper(text[1])) return text;
  const std::size_t end = text.find(')');
  if (end == std::string_view::npos || end > kMaxAuthorBytes) return text;
  const std::string_view rest = trimmed(text.substr(end + 1));
  return rest.empty() || rest.front() != ',' ? rest : trimmed(rest.substr(1));
}

std::string_view without_marks(std::string_view text) {
  for (int i = 0; i < 2; ++i) text = trimmed(text.substr(sense_mark(text)));
  return without_field(text);
}

// Position of "-- {Calmly}, adv." or of "--Sir T. Browne." at the end, or text.size().
std::size_t tail_position(std::string_view text) {
  for (std::size_t at = text.find("--"); at != std::string_view::npos; at = text.find("--", at + 2)) {
    const std::string_view after = trimmed(text.substr(at + 2));
    const std::size_t brace = after.find("}, ");
    const bool derived = after.starts_with('{') && brace < kMaxAuthorBytes &&
                         std::string_view("anv").find(after.substr(brace + 3, 1)) != std::string_view::npos;
    const bool author = !after.empty() && is_upper(after.front()) && text.substr(at + 2, 1) != " " &&
                        text.size() - at <= kMaxAuthorBytes;
    if (derived || author) return at;
  }
  return text.size();
}

std::string squeezed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '{' || c == '}') continue;
    const bool blank = c == ' ' || c == '\t' || c == '\r';
    if (blank && (out.empty() || out.back() == ' ')) continue;
    out += blank ? ' ' : c;
  }
  return std::string(trimmed(out));
}

bool only_refers(std::string_view text) {
  return text.size() <= kMaxReferenceBytes && (text.starts_with("See ") || text.starts_with("see "));
}

}  // namespace

std::size_t sense_mark(std::string_view text) {
  if (text.size() > 3 && text[0] == '(' && text[1] >= 'a' && text[1] <= 'z' && text[2] == ')') return 3;
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  const bool numbered = digits > 0 && digits <= 2 && text.substr(digits, 2) == ". ";
  return numbered ? digits + 1 : 0;
}

std::string sense_text(std::string_view piece) {
  const std::string bare = without_brackets(piece.substr(0, source_position(piece)));
  std::string_view text = without_marks(trimmed(bare));
  text = text.substr(0, tail_position(text));
  const std::size_t start = text.find_first_not_of(" ,.;:");
  text = start == std::string_view::npos ? std::string_view() : text.substr(start);
  std::string out = squeezed(text);
  if (out.size() < kMinBytes || only_refers(out)) return {};
  return out;
}

std::string plain_letters(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '[') {
      const std::size_t end = text.substr(at, kMaxLetterBytes + 2).find(']');
      if (end != std::string_view::npos && plain_letter(text.substr(at + 1, end - 1), out)) {
        at += end + 1;
        continue;
      }
    }
    out += text[at++];
  }
  return out;
}

}  // namespace gossamer::text
