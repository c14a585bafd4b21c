// SPDX-License-Identifier: Apache-2.0
#include "learn/text/words.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "learn/data/utf8.h"

namespace gossamer::text {
namespace {

constexpr auto kNormalForm = static_cast<utf8proc_option_t>(
    UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE);
constexpr std::string_view kTypographicApostrophe = "\xE2\x80\x99";

// By ASCII byte: its case-folded self if it belongs to words, otherwise 0.
constexpr std::array<char, 128> make_ascii_words() {
  std::array<char, 128> table{};
  for (std::size_t c = 0; c < table.size(); ++c) {
    const auto byte = static_cast<char>(c);
    const bool upper = byte >= 'A' && byte <= 'Z';
    const bool other = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
    table[c] = upper ? static_cast<char>(byte - 'A' + 'a') : other ? byte : '\0';
  }
  return table;
}
constexpr std::array<char, 128> kAsciiWords = make_ascii_words();

const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}
bool is_ascii_byte(char c) { return static_cast<unsigned char>(c) < 0x80; }
bool is_ascii(std::string_view text) { return std::all_of(text.begin(), text.end(), is_ascii_byte); }

// Bytes of the code point at `at` if it belongs to words, otherwise 0. Requires valid UTF-8.
std::size_t word_bytes(std::string_view text, std::size_t at) {
  if (is_ascii_byte(text[at])) return kAsciiWords[static_cast<unsigned char>(text[at])] != 0 ? 1 : 0;
  std::int32_t code_point = 0;
  const auto bytes =
      utf8proc_iterate(bytes_of(text) + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code_point);
  CHECK(bytes > 0, at);
  const utf8proc_category_t category = utf8proc_category(code_point);
  const bool is_word = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO;
  return is_word ? static_cast<std::size_t>(bytes) : 0;
}

std::size_t apostrophe_bytes(std::string_view text, std::size_t at) {
  if (text[at] == '\'') return 1;
  return text.substr(at, 3) == kTypographicApostrophe ? 3 : 0;
}

// Adds bytes of a word while they fit.
void append(std::string& word, std::string_view bytes, bool& full) {
  full = full || word.size() + bytes.size() > kMaxWordBytes;
  if (full) return;
  for (const char c : bytes)
    word += is_ascii_byte(c) && c != '\'' ? kAsciiWords[static_cast<unsigned char>(c)] : c;
}

// Reads the word that starts at `at` into `word`; returns the position behind it.
std::size_t read_word(std::string_view text, std::size_t at, std::string& word) {
  word.clear();
  bool full = false;
  while (at < text.size()) {
    if (const std::size_t bytes = word_bytes(text, at); bytes > 0) {
      append(word, text.substr(at, bytes), full);
      at += bytes;
      continue;
    }
    const std::size_t apostrophe = apostrophe_bytes(text, at);
    const std::size_t next = at + apostrophe;
    if (apostrophe == 0 || next >= text.size() || word_bytes(text, next) == 0) break;
    append(word, "'", full);
    at = next;
  }
  if (word.size() > 2 && word.ends_with("'s")) word.resize(word.size() - 2);
  if (word.back() == '\'') word.pop_back();  // cut just behind it
  return at;
}

}  // namespace

Result<void> WordSplitter::split(std::string_view text, WordSink sink) {
  if (!is_ascii(text)) {
    Result<std::string_view> normal = normalise(text);
    if (!normal.ok()) return normal.error();
    text = *normal;
  }
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t bytes = word_bytes(text, at); bytes > 0) {
      at = read_word(text, at, word_);
      sink(word_);
    } else {
      do {
        ++at;
      } while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U);
    }
  }
  return {};
}

Result<std::string_view> WordSplitter::normalise(std::string_view text) {
  if (const std::size_t valid = valid_utf8_prefix(text); valid < text.size()) {
    return Error{.kind = ErrorKind::kBadData,
                 .what = "text is not valid UTF-8",
                 .got = fmt::format("byte 0x{:02X} at position {}", static_cast<unsigned char>(text[valid]),
                                    valid + 1),
                 .expected = "UTF-8",
                 .fix = "convert the text to UTF-8, for example with iconv"};
  }
  const auto length = static_cast<utf8proc_ssize_t>(text.size());
  if (code_points_.size() < text.size() + 16) code_points_.resize(2 * text.size() + 16);
  const auto decompose = [&] {
    return utf8proc_decompose(bytes_of(text), length, code_points_.data(),
                              static_cast<utf8proc_ssize_t>(code_points_.size()), kNormalForm);
  };
  utf8proc_ssize_t count = decompose();
  CHECK(count >= 0, count);
  if (static_cast<std::size_t>(count) + 1 > code_points_.size()) {
    code_points_.resize(static_cast<std::size_t>(count) + 1);  // reencode() ends the text with a zero
    count = decompose();
    CHECK(count >= 0, count);
  }
  const utf8proc_ssize_t bytes = utf8proc_reencode(code_points_.data(), count, kNormalForm);
  CHECK(bytes >= 0, bytes);
  normal_.assign(reinterpret_cast<const char*>(code_points_.data()), static_cast<std::size_t>(bytes));
  return std::string_view(normal_);
}

std::size_t valid_utf8_prefix(std::string_view text) { return data::utf8_prefix(text); }

Result<std::string> folded_name(std::string_view name) {
  WordSplitter splitter;
  Result<std::string_view> normal = splitter.normalise(name);
  if (!normal.ok()) return normal.error();
  std::string out;
  for (const char c : trimmed(*normal)) {
    const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (blank && out.ends_with(' ')) continue;
    out += blank ? ' ' : c;
  }
  return out;
}

std::string without_blanks(std::string_view name) {
  std::string out;
  for (std::size_t at = 0; at < name.size();) {
    std::int32_t code_point = 0;
    const auto bytes =
        utf8proc_iterate(bytes_of(name) + at, static_cast<utf8proc_ssize_t>(name.size() - at), &code_point);
    CHECK(bytes > 0, at);
    const utf8proc_category_t category = utf8proc_category(code_point);
    const bool blank = category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_CC;
    out += blank ? "_" : name.substr(at, static_cast<std::size_t>(bytes));
    at += static_cast<std::size_t>(bytes);
  }
  return out.empty() ? "_" : out;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

Result<std::string> normalised_text(std::string_view text) {
  WordSplitter splitter;
  std::string joined;
  const Result<void> split = splitter.split(text, [&joined](std::string_view word) {
    if (!joined.empty()) joined += ' ';
    joined += word;
  });
  if (!split.ok()) return split.error();
  return joined;
}

}  // namespace gossamer::text
