// SPDX-License-Identifier: Apache-2.0
#include "learn/text/wordnet.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "learn/text/words.h"

namespace gossamer::text {
namespace {

// Reads one line's fields from left to right; after the first failure everything fails.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : line_(line) {}

  std::string_view field(const char* what) {
    begin_ = std::min(line_.find_first_not_of(' ', at_), line_.size());
    at_ = std::min(line_.find(' ', begin_), line_.size());
    if (begin_ == at_) fail(what);
    return line_.substr(begin_, at_ - begin_);
  }
  std::uint32_t number(const char* what, int base = 10) {
    const std::string_view digits = field(what);
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc() || end != digits.data() + digits.size()) fail(what);
    return value;
  }
  void fail(const char* what) {
    if (expected_ != nullptr) return;
    expected_ = what;
    column_ = begin_ + 1;
  }
  // Fails at the end of the line.
  void end(const char* what) {
    begin_ = line_.size();
    fail(what);
  }
  [[nodiscard]] bool failed() const { return expected_ != nullptr; }
  [[nodiscard]] Error error(const std::string& file, std::uint64_t line) const {
    std::string_view rest = line_.substr(std::min(column_ - 1, line_.size()), 40);
    rest = rest.substr(0, valid_utf8_prefix(rest));
    return {.kind = ErrorKind::kBadData,
            .where = fmt::format("{}:{}:{}", file, line, column_),
            .what = "cannot read a synset",
            .got = rest.empty() ? "the end of the line" : fmt::format("'{}'", rest),
            .expected = expected_,
            .fix = "use WordNet's data.noun, data.verb, data.adj or data.adv, unchanged"};
  }

 private:
  std::string_view line_;
  std::size_t begin_ = 0;
  std::size_t at_ = 0;
  const char* expected_ = nullptr;
  std::size_t column_ = 1;
};

// 's' is a satellite adjective, which lies in data.adj.
char part_of_speech(LineReader& line, std::string_view type) {
  const char letter = type == "s" ? 'a' : type.empty() ? ' ' : type.front();
  if (type.size() != 1 || std::string_view("nvar").find(letter) == std::string_view::npos) {
    line.fail("a part of speech: n, v, a, s or r");
  }
  return letter;
}

std::string lemma(std::string_view field) {
  if (field.ends_with("(a)") || field.ends_with("(p)")) field.remove_suffix(3);
  if (field.ends_with("(ip)")) field.remove_suffix(4);
  std::string name(field);
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

void add_gloss_part(std::string_view part, Synset& synset) {
  part = trimmed(part);
  if (part.empty()) return;
  if (part.front() != '"') {
    synset.definition += synset.definition.empty() ? "" : "; ";
    synset.definition += part;
    return;
  }
  part.remove_prefix(1);
  synset.examples.emplace_back(trimmed(part.substr(0, part.find('"'))));
}

void split_gloss(std::string_view gloss, Synset& synset) {
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < gloss.size(); ++i) {
    if (gloss[i] == '"') quoted = !quoted;
    if (gloss[i] != ';' || quoted) continue;
    add_gloss_part(gloss.substr(begin, i - begin), synset);
    begin = i + 1;
  }
  add_gloss_part(gloss.substr(begin), synset);
}

Synset parse_synset(LineReader& line) {
  Synset synset;
  synset.key.offset = line.number("an offset of 8 digits");
  line.field("a lexicographer file number");
  synset.key.part_of_speech = part_of_speech(line, line.field("a part of speech"));
  const std::uint32_t lemmas = line.number("a number of words, in hexadecimal", 16);
  if (lemmas == 0) line.fail("at least one word");
  for (std::uint32_t i = 0; i < lemmas && !line.failed(); ++i) {
    synset.lemmas.push_back(lemma(line.field("a word")));
    line.field("a lexical id");
  }
  const std::uint32_t pointers = line.failed() ? 0 : line.number("a number of pointers");
  for (std::uint32_t i = 0; i < pointers && !line.failed(); ++i) {
    const std::string_view symbol = line.field("a pointer symbol");
    SynsetKey target{.offset = line.number("an offset of 8 digits")};
    target.part_of_speech = part_of_speech(line, line.field("a part of speech"));
    line.field("a source and target number");
    if (symbol == "@" || symbol == "@i") synset.broader.push_back(target);
  }
  return synset;
}

}  // namespace

Result<std::uint64_t> read_wordnet(data::ByteSource& source, std::vector<Synset>& synsets) {
  Result<std::string> content = data::read_all(source);
  if (!content.ok()) return content.error();
  std::string_view rest = *content;
  std::uint64_t number = 0;
  std::uint64_t count = 0;
  while (!rest.empty()) {
    ++number;
    const std::size_t end = rest.find('\n');
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (trimmed(text).empty() || text.starts_with("  ")) continue;
    if (const std::size_t valid = valid_utf8_prefix(text); valid < text.size()) {
      return Error{.kind = ErrorKind::kBadData,
                   .where = fmt::format("{}:{}:{}", source.name(), number, valid + 1),
                   .what = "cannot read a synset",
                   .got = "invalid UTF-8",
                   .expected = "UTF-8",
                   .fix = "use WordNet's data files, unchanged"};
    }
    const std::size_t bar = std::min(text.find('|'), text.size());
    LineReader line(text.substr(0, bar));
    Synset synset = parse_synset(line);
    if (bar == text.size()) line.end("'|' and a gloss");
    if (line.failed()) return line.error(source.name(), number);
    split_gloss(text.substr(bar + 1), synset);
    synsets.push_back(std::move(synset));
    ++count;
  }
  if (count > 0) return count;
  return Error{.kind = ErrorKind::kBadData,
               .where = source.name(),
               .what = "cannot read WordNet",
               .got = "no synset",
               .expected = "at least one synset line",
               .fix = "use WordNet's data.noun, data.verb, data.adj or data.adv, unchanged"};
}

}  // namespace gossamer::text
