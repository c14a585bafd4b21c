// SPDX-License-Identifier: Apache-2.0
#include "learn/text/gcide.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "learn/text/gcide_sense.h"
#include "learn/text/words.h"

namespace gossamer::text {
namespace {

constexpr std::size_t kMaxHeadingLines = 12;
constexpr std::size_t kQuotationIndent = 7;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }
bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

// Whether a heading may end here: nothing is open, and the last character is one that ends headings.
bool heading_is_complete(std::string_view heading, std::string_view next) {
  const auto count = [heading](char c) { return std::count(heading.begin(), heading.end(), c); };
  if (count('[') > count(']') || count('(') > count(')') || count('{') > count('}') || count('\\') % 2 != 0) {
    return false;
  }
  const std::string_view start = next.substr(indent_of(next));
  if (heading.ends_with('\\')) return !start.starts_with('(');  // a respelling follows
  return heading.find('\\') == std::string_view::npos || heading.ends_with('.') || heading.ends_with(']') ||
         heading.ends_with(')');
}

// Moves the heading off the front of `lines` and joins it.
std::string take_heading(std::vector<std::string_view>& lines) {
  std::size_t at = 0;
  while (at < lines.size() && is_blank(lines[at])) ++at;
  const std::size_t first = at;
  std::string heading;
  for (; at < lines.size() && !is_blank(lines[at]) && at - first < kMaxHeadingLines; ++at) {
    if (at > first && indent_of(lines[at]) > 0 && heading_is_complete(heading, lines[at])) break;
    if (!heading.empty()) heading += ' ';
    heading += trimmed(lines[at]);
  }
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(at));
  return heading;
}

// "Calotte \..\, Callot \..\, n." -> Calotte, Callot. Without pronunciations the whole heading is one word.
std::vector<std::string_view> heading_words(std::string_view heading) {
  std::vector<std::string_view> words;
  if (heading.find('\\') == std::string_view::npos) return {trimmed(heading)};
  while (true) {
    const std::size_t begin = heading.find('\\');
    if (begin == std::string_view::npos) return words;
    std::string_view word = heading.substr(0, begin);
    const std::size_t last = word.find_last_of(",;)]|");
    if (last != std::string_view::npos) word.remove_prefix(last + 1);
    word = trimmed(word);
    for (const std::string_view join : {"or ", "and "}) {
      if (word.starts_with(join)) word = trimmed(word.substr(join.size()));
    }
    if (!word.empty()) words.push_back(word);
    const std::size_t end = heading.find('\\', begin + 1);
    if (end == std::string_view::npos) return words;
    heading.remove_prefix(end + 1);
  }
}

std::vector<std::vector<std::string_view>> paragraphs_of(const std::vector<std::string_view>& lines) {
  std::vector<std::vector<std::string_view>> paragraphs(1);
  for (const std::string_view line : lines) {
    if (!is_blank(line)) {
      paragraphs.back().push_back(line);
    } else if (!paragraphs.back().empty()) {
      paragraphs.emplace_back();
    }
  }
  if (paragraphs.back().empty()) paragraphs.pop_back();
  return paragraphs;
}

bool is_prose(const std::vector<std::string_view>& paragraph) {
  const std::string_view first = trimmed(paragraph.front());
  const std::size_t indent = indent_of(paragraph.front());
  if (indent == 0) return false;  // what GCIDE's conversion left over of the next heading
  if (indent >= kQuotationIndent && sense_mark(first) == 0) return false;
  constexpr std::array<std::string_view, 4> kAside = {"Note:", "Syn:", "Usage:", "Ant:"};
  return std::none_of(kAside.begin(), kAside.end(),
                      [first](std::string_view a) { return first.starts_with(a); });
}

// Cuts a paragraph where lines start with "1." or "(a)"; joins the lines of each piece.
std::vector<std::string> pieces_of(const std::vector<std::string_view>& paragraph) {
  std::vector<std::string> pieces;
  for (const std::string_view line : paragraph) {
    const std::string_view text = trimmed(line);
    if (pieces.empty() || sense_mark(text) > 0) {
      pieces.emplace_back(text);
    } else {
      pieces.back() += ' ';
      pieces.back() += text;
    }
  }
  return pieces;
}

// Takes the names off a collocation, "{Stone eater}, {Stone borer} (Zool.), ...".
std::vector<std::string> take_collocation(std::string& piece) {
  std::vector<std::string> names;
  std::string_view rest = piece;
  while (rest.starts_with('{')) {
    const std::size_t end = rest.find('}');
    if (end == std::string_view::npos) break;
    names.emplace_back(trimmed(rest.substr(1, end - 1)));
    rest = rest.substr(end + 1);
    std::string_view ahead = rest;
    while (!ahead.empty() && (ahead.front() == ' ' || ahead.front() == ',')) ahead.remove_prefix(1);
    for (const std::string_view join : {"or ", "and "}) {
      if (ahead.starts_with(join)) ahead.remove_prefix(join.size());
    }
    if (ahead.starts_with('{')) rest = ahead;
  }
  const std::size_t start = rest.find_first_not_of(" ,.;:");
  piece = start == std::string_view::npos ? std::string() : std::string(rest.substr(start));
  std::erase(names, std::string());
  return names;
}

void add(std::vector<Definition>& definitions, const std::vector<std::string>& headwords,
         std::string_view piece) {
  std::string text = sense_text(piece);
  if (!text.empty() && !headwords.empty()) definitions.push_back({headwords, std::move(text)});
}

bool among(std::string_view word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The entry's headwords that stand in the heading, or all.
std::vector<std::string> own_headwords(const DictdEntry& entry, std::string_view heading) {
  const std::vector<std::string_view> in_heading = heading_words(heading);
  std::vector<std::string> own;
  for (const std::string_view word : entry.headwords) {
    const std::string plain = plain_letters(word);
    const bool found = std::find(in_heading.begin(), in_heading.end(), plain) != in_heading.end();
    if (found && !among(plain, own)) own.push_back(plain);
  }
  if (own.empty()) own.assign(entry.headwords.begin(), entry.headwords.end());
  return own;
}

}  // namespace

std::vector<Definition> entry_definitions(const DictdEntry& entry) {
  const std::string text = plain_letters(entry.text);
  std::vector<std::string_view> lines = lines_of(text);
  const std::string heading = take_heading(lines);
  const std::vector<std::string> own = own_headwords(entry, heading);
  std::vector<Definition> definitions;
  for (const std::vector<std::string_view>& paragraph : paragraphs_of(lines)) {
    if (!is_prose(paragraph)) continue;
    std::vector<std::string> names;
    for (std::string& piece : pieces_of(paragraph)) {
      if (piece.starts_with('{')) names = take_collocation(piece);
      add(definitions, names.empty() ? own : names, piece);
    }
  }
  return definitions;
}

}  // namespace gossamer::text
