// SPDX-License-Identifier: Apache-2.0
#include "commands/records/other_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "commands/records/conversion.h"
#include "learn/text/words.h"

namespace gossamer::commands {
namespace {

constexpr std::string_view kLabelMark = "__label__";
constexpr std::string_view kDigits = "0123456789";

// Formats of bytes, by their first ones. No command: it holds no records.
struct ByteFormat {
  std::string_view begin;
  std::string_view name;
  std::string_view convert;
};
constexpr std::array<ByteFormat, 11> kByteFormats = {
    {{"PAR1", "Parquet",
      "python3 -c 'import io, pandas, sys; pandas.read_parquet(io.BytesIO(sys.stdin.buffer.read()))"
      ".to_json(sys.stdout, orient=\"records\", lines=True)'"},
     {"\xFF\xFE", "UTF-16 text", "iconv -f utf-16 -t utf-8"},
     {"\xFE\xFF", "UTF-16 text", "iconv -f utf-16 -t utf-8"},
     {"\x89PNG", "a PNG image", ""},
     {"\xFF\xD8\xFF", "a JPEG image", ""},
     {"GIF8", "a GIF image", ""},
     {"%PDF", "a PDF document", ""},
     {"<svg", "an SVG image", ""},
     {"<?xml", "XML", ""},
     {"<!DOCTYPE", "HTML", ""},
     {"<html", "HTML", ""}}};

Error refuse(const std::string& path, std::string_view format, std::string convert) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = fmt::format("the file is {}, which is not read", format),
          .got = std::string(format),
          .expected = R"(JSON lines such as {"text": ..., "labels": [...]}, or XMLC text)",
          .fix = std::move(convert)};
}

std::string_view first_line_of(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

// Whether a line may begin a file of XMLC text: labels and pairs, or the three numbers of a header.
bool is_xmlc(std::string_view line) {
  // A number, a tab and words: TSV whose first column is a number.
  if (const std::size_t tab = line.find('\t'); tab != std::string_view::npos && tab > 0) {
    const std::string_view next = line.substr(tab + 1, line.find_first_of(" \t", tab + 1) - tab - 1);
    if (next.find(':') == std::string_view::npos && next.find_first_not_of(kDigits) != std::string_view::npos)
      return false;
  }
  if (line.starts_with(' ') || line.starts_with('\t')) return true;
  const std::string_view labels = line.substr(0, line.find_first_of(" \t"));
  if (labels.find_first_not_of("0123456789,") == std::string_view::npos) return true;
  // "1:0.5", where somebody has left out the blank in front of the first pair.
  const std::size_t colon = labels.find(':');
  return colon != std::string_view::npos && colon > 0 &&
         labels.substr(0, colon).find_first_not_of(kDigits) == std::string_view::npos;
}

// Whether a line holds what people write into tables: UTF-8 without control characters but the tab.
bool is_text(std::string_view line) {
  const bool plain =
      std::ranges::all_of(line, [](char c) { return c == '\t' || static_cast<unsigned char>(c) >= ' '; });
  return plain && text::valid_utf8_prefix(line) == line.size();
}

// Bytes that stand in no text. A line with one or two of them, or a JSON line, is its reader's to report.
bool is_binary(std::string_view begin) {
  const std::string_view some = begin.substr(0, 1024);
  const auto controls = static_cast<std::size_t>(std::ranges::count_if(some, [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\n' && c != '\r';
  }));
  return controls > 2 && controls * 32 > some.size();
}

// UTF-16 of mostly Latin letters, by the place of the zero in each pair of bytes; no mark tells it.
std::string_view unmarked_utf16(std::string_view begin) {
  const std::string_view some = begin.substr(0, 1024);
  std::array<std::size_t, 2> zeros = {0, 0};
  for (std::size_t i = 0; i < some.size(); ++i) zeros[i % 2] += some[i] == '\0' ? 1 : 0;
  if (zeros[0] * 4 > some.size() && zeros[1] == 0) return "utf-16be";
  if (zeros[1] * 4 > some.size() && zeros[0] == 0) return "utf-16le";
  return {};
}

Error no_records(const std::string& path, std::string_view format) {
  Error error = refuse(path, format, "");
  error.fix = "check that this is the right file";
  return error;
}

// Formats that are told by their bytes, whatever is wanted.
std::optional<Error> other_bytes(std::string_view begin, const std::string& path) {
  for (const ByteFormat& one : kByteFormats) {
    if (!begin.starts_with(one.begin)) continue;
    return one.convert.empty() ? no_records(path, one.name)
                               : refuse(path, one.name, convert_words(one.convert, path));
  }
  if (const std::string_view utf16 = unmarked_utf16(begin); !utf16.empty())
    return refuse(path, "UTF-16 text", convert_words(fmt::format("iconv -f {} -t utf-8", utf16), path));
  const std::size_t first = begin.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const bool json = first != std::string_view::npos && begin[first] == '{';
  if (!json && is_binary(begin)) return no_records(path, "a binary file");
  return std::nullopt;
}

// A table by the separator of its first line.
std::optional<char> table_separator(std::string_view line) {
  for (const char separator : {'\t', ',', ';'}) {
    if (line.find(separator) != std::string_view::npos) return separator;
  }
  return std::nullopt;
}

// Whether all rows have as many cells as the first, which has at least two usual names of columns.
bool is_surely_table(std::string_view begin, char separator) {
  const auto rows = table_rows(begin, separator);
  return rows.size() > 1 && usual_names(rows.front()) > 1 && has_header(rows) &&
         std::ranges::all_of(rows, [&](const auto& row) { return row.size() == rows.front().size(); });
}

// Whether the first lines are XMLC text: labels, then INDEX:VALUE pairs alone.
bool is_surely_xmlc(std::string_view begin) {
  constexpr std::size_t kEnough = 20;
  std::size_t lines = 0;
  std::size_t numbers = 0;  // a header
  while (!begin.empty() && lines < kEnough) {
    const std::size_t end = begin.find('\n');
    const std::string_view line = first_line_of(begin);
    if (end == std::string_view::npos && lines > 0) break;  // it may be cut off
    begin.remove_prefix(std::min(begin.size(), line.size() + (end == std::string_view::npos ? 0 : 1)));
    if (begin.starts_with('\n')) begin.remove_prefix(1);
    const std::size_t blank = line.find_first_of(" \t");
    if (blank == std::string_view::npos ||
        line.find_first_not_of("0123456789,:.eE+- \t") != std::string_view::npos ||
        line.substr(0, blank).find_first_not_of("0123456789,") != std::string_view::npos)
      return false;
    const std::string_view pairs = line.substr(blank);
    const bool header = lines == 0 && numbers == 0 && pairs.find(':') == std::string_view::npos;
    if (!header && pairs.find(':') == std::string_view::npos) return false;
    ++(header ? numbers : lines);
  }
  return lines > 0;
}

// JSON as an array or an object begins it. A line of text may begin with a bracket.
bool begins_json(std::string_view begin, char bracket) {
  if (!begin.starts_with(bracket)) return false;
  const std::size_t next = begin.find_first_not_of(" \t\r\n", 1);
  if (next == std::string_view::npos) return false;
  return bracket == '{' ? begin[next] == '"'
                        : std::string_view("[{\"").find(begin[next]) != std::string_view::npos;
}

Error marked_labels(const std::string& path) {
  constexpr std::string_view kProgram =
      "python3 -c 'import json; [print(json.dumps({\"text\": \" \".join(w for w in l.split() if not "
      "w.startswith(\"__label__\")), \"labels\": [w[9:] for w in l.split() if "
      "w.startswith(\"__label__\")]})) "
      "for l in open(0, encoding=\"utf-8-sig\")]'";
  return refuse(path, "fastText text (__label__NAME WORD ...)", convert_words(kProgram, path));
}

Error table(std::string_view begin, char separator, const std::string& path) {
  return refuse(path, separator == '\t' ? "TSV" : "CSV", convert_table(begin, separator, path));
}

// The beginning from the first line that is not blank. A blank before the pairs of XMLC text means no label.
std::string_view without_blank_lines(std::string_view begin) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (begin.starts_with(kMark)) begin.remove_prefix(kMark.size());
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  const std::size_t line_begin = begin.find_last_of("\r\n", first);
  return begin.substr(line_begin == std::string_view::npos ? 0 : line_begin + 1);
}

}  // namespace

std::optional<Error> other_format(std::string_view begin, const std::string& path) {
  if (auto bytes = other_bytes(begin, path)) return bytes;
  begin = without_blank_lines(begin);
  if (begin.empty()) return std::nullopt;
  const char first = begin[begin.find_first_not_of(" \t\r\n")];
  if (first == '[') return refuse(path, "a JSON array", convert_words("jq -c '.[]'", path));
  if (first == '{') return std::nullopt;
  const std::string_view line = first_line_of(begin);
  if (line.find(kLabelMark) != std::string_view::npos) return marked_labels(path);
  if (is_xmlc(line) || !is_text(line)) return std::nullopt;
  const auto separator = table_separator(line);
  return separator ? std::optional(table(begin, *separator, path)) : std::nullopt;
}

std::optional<Error> no_lines(std::string_view begin, const std::string& path, const WantedLines& wanted) {
  if (auto bytes = other_bytes(begin, path)) return bytes;
  begin = without_blank_lines(begin);
  const std::string_view json = begin.substr(std::min(begin.size(), begin.find_first_not_of(" \t")));
  std::optional<Error> error;
  const auto separator = table_separator(first_line_of(begin));
  const bool is_json = begins_json(json, '[') || begins_json(json, '{');
  if (begins_json(json, '[')) {
    error = refuse(path, "a JSON array", convert_words("jq -c '.[]'", path));
  } else if (is_json) {
    error = refuse(path, "JSON lines", "");
  } else if (wanted.as_is) {
    return std::nullopt;
  } else if (begin.starts_with(kLabelMark)) {
    error = marked_labels(path);
  } else if (is_surely_xmlc(begin)) {
    error = refuse(path, "XMLC text", "");
  } else if (separator && is_surely_table(begin, *separator)) {
    error = table(begin, *separator, path);
  }
  if (!error) return error;
  error->what = fmt::format("the file is {}, which is not what data.format wants", error->got);
  error->expected = wanted.lines;
  const std::string to_records = error->fix.empty() ? "" : "; for that, " + error->fix;
  error->fix = "write such lines, or train on its records with the preset xmc" + to_records;
  if (!is_json)
    error->fix += "; to take the lines as they are: gossamer data import KIND FILE --as-is --out DIR";
  return error;
}

}  // namespace gossamer::commands
