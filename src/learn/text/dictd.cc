// SPDX-License-Identifier: Apache-2.0
#include "learn/text/dictd.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "learn/text/words.h"

namespace gossamer::text {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint64_t kMaxNumber = std::uint64_t{1} << 48;

constexpr std::array<std::uint8_t, 256> make_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(64);
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}
constexpr std::array<std::uint8_t, 256> kValues = make_values();

struct IndexLine {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t line = 0;  // 1-based
  std::string_view headword = {};
};

// Cuts the first field off `rest`.
std::string_view take_field(std::string_view& rest) {
  const std::size_t tab = rest.find('\t');
  const std::string_view field = rest.substr(0, tab);
  rest.remove_prefix(tab == std::string_view::npos ? rest.size() : tab + 1);
  return field;
}

bool describes_database(std::string_view headword) {
  return headword.starts_with("00-") || headword.starts_with("00database");
}

Error bad_line(const data::ByteSource& index, std::uint64_t line, std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .where = fmt::format("{}:{}", index.name(), line),
          .what = "cannot read an index line",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "use the .index file that belongs to the dictionary, unchanged"};
}

Result<IndexLine> parse_line(const data::ByteSource& index, std::string_view line, std::uint64_t number) {
  IndexLine parsed{.line = number};
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (const std::size_t valid = valid_utf8_prefix(line); valid < line.size()) {
    return bad_line(index, number, fmt::format("invalid UTF-8 at byte {}", valid + 1), "UTF-8");
  }
  const std::string_view whole = line;
  parsed.headword = take_field(line);
  const bool numbers = parse_dictd_number(take_field(line), parsed.offset) &&
                       parse_dictd_number(take_field(line), parsed.length);
  if (parsed.headword.empty() || !numbers) {
    return bad_line(index, number,
                    fmt::format("'{}'", whole.substr(0, valid_utf8_prefix(whole.substr(0, 40)))),
                    "HEADWORD, OFFSET and LENGTH with tabs between, the numbers in base 64");
  }
  return parsed;
}

Result<std::vector<IndexLine>> parse_index(const data::ByteSource& index, std::string_view content) {
  std::vector<IndexLine> lines;
  std::uint64_t number = 0;
  while (!content.empty()) {
    ++number;
    const std::size_t end = content.find('\n');
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    if (line.empty()) continue;
    Result<IndexLine> parsed = parse_line(index, line, number);
    if (!parsed.ok()) return parsed.error();
    if (!describes_database(parsed->headword)) lines.push_back(*parsed);
  }
  if (lines.empty()) return bad_line(index, number, "no headword", "at least one index line");
  return lines;
}

// Checks that a line's entry lies in the text.
Result<void> check_entry(const data::ByteSource& index, const IndexLine& line, std::string_view text) {
  if (line.length > text.size() || line.offset > text.size() - line.length) {
    return bad_line(index, line.line, fmt::format("an entry at bytes {}+{}", line.offset, line.length),
                    fmt::format("an entry within the {} bytes of the text", text.size()));
  }
  return {};
}

// The text with U+FFFD for every byte that belongs to no character.
std::string repaired(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t valid = valid_utf8_prefix(text);
    out += text.substr(0, valid);
    if (valid == text.size()) return out;
    out += "\xEF\xBF\xBD";
    text.remove_prefix(valid + 1);
  }
}

}  // namespace

bool parse_dictd_number(std::string_view digits, std::uint64_t& number) {
  number = 0;
  for (const char c : digits) {
    const std::uint8_t value = kValues[static_cast<unsigned char>(c)];
    number = number * 64 + value;
    if (value >= 64 || number > kMaxNumber) return false;
  }
  return !digits.empty();
}

Result<DictdReport> read_dictd(data::ByteSource& index, data::ByteSource& text, DictdSink sink) {
  Result<std::string> index_content = data::read_all(index);
  if (!index_content.ok()) return index_content.error();
  Result<std::vector<IndexLine>> lines = parse_index(index, *index_content);
  if (!lines.ok()) return lines.error();
  Result<std::string> content = data::read_all(text);
  if (!content.ok()) return content.error();

  // By line last, so that headwords of one entry stay in the index's order.
  std::ranges::sort(*lines, {},
                    [](const IndexLine& each) { return std::tie(each.offset, each.length, each.line); });
  DictdReport report{.headwords = lines->size()};
  std::vector<std::string_view> headwords;
  for (std::size_t i = 0; i < lines->size();) {
    const IndexLine& first = (*lines)[i];
    if (Result<void> checked = check_entry(index, first, *content); !checked.ok()) return checked.error();
    headwords.clear();
    for (; i < lines->size(); ++i) {
      const IndexLine& line = (*lines)[i];
      if (line.offset != first.offset || line.length != first.length) break;
      headwords.push_back(line.headword);
    }
    ++report.entries;
    const std::string_view raw = std::string_view(*content).substr(first.offset, first.length);
    const bool valid = valid_utf8_prefix(raw) == raw.size();
    report.repaired += valid ? 0 : 1;
    const std::string fixed = valid ? std::string() : repaired(raw);
    const Result<void> taken = sink({.headwords = headwords, .text = valid ? raw : std::string_view(fixed)});
    if (!taken.ok()) return taken.error();
  }
  return report;
}

}  // namespace gossamer::text
