// SPDX-License-Identifier: Apache-2.0
#include "learn/text/word_parts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "base/check.h"
#include "learn/text/words.h"

namespace gossamer::text {
namespace {

constexpr std::size_t kMinStemmed = 4;  // a shorter word has no stem of its own
constexpr std::size_t kMinUndoubled = 3;

struct Ending {
  std::string_view text;
  std::size_t keeps;  // letters that must be left
};
// The first ending that fits is taken, so longer ones stand before their own endings.
constexpr std::array<Ending, 26> kEndings = {{
    {"ations", 3}, {"ation", 3}, {"ments", 4}, {"ment", 4}, {"ness", 3}, {"ingly", 3}, {"edly", 3},
    {"ings", 3},   {"ing", 3},   {"able", 4},  {"ible", 4}, {"ies", 3},  {"ied", 3},   {"ily", 3},
    {"ers", 4},    {"ors", 4},   {"er", 4},    {"or", 4},   {"ed", 3},   {"es", 3},    {"ly", 3},
    {"al", 4},     {"ic", 4},    {"s", 3},     {"y", 3},    {"e", 3},
}};

bool is_vowel(char c) { return std::string_view("aeiou").find(c) != std::string_view::npos; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

// Ends of the code points of a UTF-8 string, 0 first.
std::size_t code_point_ends(std::string_view text, std::array<std::size_t, kMaxWordBytes + 3>& ends) {
  std::size_t count = 0;
  ends[0] = 0;
  for (std::size_t at = 1; at <= text.size(); ++at) {
    const bool inside = at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
    if (!inside) ends[++count] = at;
  }
  return count;
}

void subwords(std::string_view word, const FeaturizerOptions& options, PartSink sink) {
  CHECK(word.size() <= kMaxWordBytes, word.size());
  std::string marked = "<";
  marked += word;
  marked += '>';
  std::array<std::size_t, kMaxWordBytes + 3> ends;
  const std::size_t letters = code_point_ends(marked, ends);
  std::string part;
  for (std::size_t n = options.subword_min; n <= options.subword_max && n < letters; ++n) {
    for (std::size_t i = 0; i + n <= letters; ++i) {
      part.assign(1, '~');
      part.append(marked, ends[i], ends[i + n] - ends[i]);
      sink(part);
    }
  }
}

}  // namespace

std::string_view stem(std::string_view word) {
  if (word.size() < kMinStemmed || !std::all_of(word.begin(), word.end(), is_lower)) return {};
  for (const Ending& ending : kEndings) {
    if (!word.ends_with(ending.text) || word.size() < ending.text.size() + ending.keeps) continue;
    if (ending.text == "s" && word.ends_with("ss")) continue;
    word.remove_suffix(ending.text.size());
    break;
  }
  if (word.size() > kMinUndoubled && word.back() == 'e') word.remove_suffix(1);
  const std::size_t n = word.size();
  if (n > kMinUndoubled && word[n - 1] == word[n - 2] && !is_vowel(word.back())) word.remove_suffix(1);
  return word;
}

void word_parts(std::string_view word, const FeaturizerOptions& options, PartSink sink) {
  if (options.stems) {
    if (const std::string_view left = stem(word); !left.empty()) {
      std::string name(left);
      name += '+';
      sink(name);
    }
  }
  if (options.subword_min > 0) subwords(word, options, sink);
}

WordPart word_part(std::string_view name) {
  if (name.starts_with('~')) return WordPart::kSubword;
  return name.ends_with('+') ? WordPart::kStem : WordPart::kWord;
}

}  // namespace gossamer::text
