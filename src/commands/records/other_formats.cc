// SPDX-License-Identifier: Apache-2.0
#include "commands/records/other_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "commands/records/json_shapes.h"
#include "json/begins_json.h"
#include "learn/data/read/byte_source.h"
#include "learn/text/words.h"

namespace gossamer::commands {
namespace {

constexpr std::string_view kLabelMark = "__label__";
constexpr std::string_view kDigits = "0123456789";

// Formats by their first bytes. No command: it holds no records.
struct FirstBytes {
  std::string_view begin;
  std::string_view name;
  std::string_view convert = {};
};
// Words may begin like these. They count where bytes follow that no text has.
constexpr std::array<FirstBytes, 5> kByteFormats = {
    {{"PAR1", "Parquet",
      "python3 -c 'import io, pandas, sys; pandas.read_parquet(io.BytesIO(sys.stdin.buffer.read()))"
      ".to_json(sys.stdout, orient=\"records\", lines=True)'"},
     {"\x89PNG", "a PNG image"},
     {"\xFF\xD8\xFF", "a JPEG image"},
     {"GIF8", "a GIF image"},
     {"%PDF", "a PDF document"}}};
// Text that is no records. A line of words may begin with a tag.
constexpr std::array<FirstBytes, 5> kMarkedText = {{{"<svg", "an SVG image"},
                                                    {"<?xml", "XML"},
                                                    {"<!DOCTYPE", "HTML"},
                                                    {"<!doctype", "HTML"},
                                                    {"<html", "HTML"}}};

Error refuse(const SeenFile& file, std::string_view format, std::string convert) {
  return {.kind = ErrorKind::kBadData,
          .where = file.path,
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
  // A number and words: TSV whose first column is a number, or plain text.
  if (const std::size_t blank = line.find_first_of(" \t"); blank != std::string_view::npos && blank > 0) {
    const std::string_view next = line.substr(blank + 1, line.find_first_of(" \t", blank + 1) - blank - 1);
    const std::string_view pairs = line[blank] == '\t' ? next : line;
    if (pairs.find(':') == std::string_view::npos &&
        next.find_first_not_of(kDigits) != std::string_view::npos)
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

// Bytes that stand in no text, more than a slip or two. A JSON line with one of them is its reader's to
// report.
bool is_binary(std::string_view begin) {
  const std::string_view some = begin.substr(0, 1024);
  const auto controls = static_cast<std::size_t>(std::ranges::count_if(some, [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\n' && c != '\r';
  }));
  return controls > 2 && controls * 32 > some.size();
}

Error no_records(const SeenFile& file, std::string_view format) {
  return refuse(file, format, "check that this is the right file");
}

// Whether the beginning has bytes that no text has. The last character of what is looked at may be cut off.
bool has_no_text(std::string_view begin) {
  const std::string_view some = begin.substr(0, 1024);
  const std::size_t cut = some.size() < begin.size() ? 3 : 0;
  return some.find('\0') != std::string_view::npos || text::valid_utf8_prefix(some) + cut < some.size() ||
         is_binary(some);
}

// Formats that are told by their bytes, whatever is wanted.
std::optional<Error> other_bytes(const SeenFile& file) {
  const std::string_view begin = file.begin;
  for (const FirstBytes& one : kByteFormats) {
    if (!begin.starts_with(one.begin) || !has_no_text(begin)) continue;
    return one.convert.empty() ? no_records(file, one.name)
                               : refuse(file, one.name, convert_words(one.convert, file));
  }
  if (const std::string_view utf16 = utf16_name(begin); !utf16.empty()) {
    const std::string command = fmt::format("iconv -f {} -t utf-8", utf16);
    return refuse(file, "UTF-16 text", convert_words(command, file, Makes::kText));
  }
  const std::size_t first = begin.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const bool json = first != std::string_view::npos && begin[first] == '{';
  if (!json && is_binary(begin)) return no_records(file, "a binary file");
  return std::nullopt;
}

// Whether all rows have as many cells as the first, which has at least two usual names of columns.
bool is_surely_table(const SeenFile& file, char separator) {
  const auto rows = table_rows(file, separator);
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

Error other_json(const SeenFile& file, const JsonShape& shape) { return refuse(file, shape.name, shape.fix); }

// How often bytes that are not ASCII make a character of UTF-8, and how often none.
struct WideBytes {
  std::size_t characters = 0;
  std::size_t alone = 0;
};
WideBytes count_wide(std::string_view begin) {
  WideBytes wide;
  while (!begin.empty()) {
    const std::string_view good = begin.substr(0, text::valid_utf8_prefix(begin));
    wide.characters += static_cast<std::size_t>(
        std::ranges::count_if(good, [](char c) { return static_cast<unsigned char>(c) >= 0xC0; }));
    begin.remove_prefix(good.size());
    if (begin.empty()) break;
    ++wide.alone;
    begin.remove_prefix(1);
  }
  return wide;
}

// Text of which some bytes are no UTF-8. A converter would end at the first of them.
// `lines_before`: blank lines that the file had in front of it.
std::optional<Error> other_encoding(const SeenFile& file, std::size_t lines_before) {
  const std::size_t good = text::valid_utf8_prefix(file.begin);
  const std::size_t cut = file.whole ? 0 : 3;  // the last character may be cut off
  if (good + cut >= file.begin.size() || is_binary(file.begin)) return std::nullopt;
  // Read as Latin-1, the characters that are right would become others.
  if (const WideBytes wide = count_wide(file.begin); wide.characters > wide.alone) {
    const std::string_view before = file.begin.substr(0, good);
    const auto lines = static_cast<std::size_t>(std::ranges::count(before, '\n'));
    const std::size_t line_begin = lines == 0 ? 0 : before.rfind('\n') + 1;
    return refuse(file, "UTF-8 text with bytes that are not",
                  fmt::format("mend line {}, in which byte {} is {}", 1 + lines_before + lines,
                              1 + good - line_begin, quote(file.begin.substr(good, 1))));
  }
  return refuse(file, "text that is not UTF-8",
                convert_words("iconv -f latin1 -t utf-8", file, Makes::kText) +
                    check_words("the encoding is Latin-1, as many tables have; windows-1252 is another"));
}

// Lines, those that look somewhat like a record as a reader wants it, and those that surely do.
struct RecordLines {
  std::size_t all = 0;
  std::size_t alike = 0;
  std::size_t sure = 0;
};
RecordLines count_record_lines(const SeenFile& file) {
  RecordLines lines;
  for (std::string_view rest = file.begin; !rest.empty(); ++lines.all) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
    const std::string_view pair = line.substr(std::min(line.size(), line.find_first_not_of(" \t", blank)));
    const std::size_t colon = pair.find(':');
    const bool is_pair = colon != std::string_view::npos && colon > 0 &&
                         pair.substr(0, colon).find_first_not_of(kDigits) == std::string_view::npos;
    const bool numbers = line.substr(0, blank).find_first_not_of("0123456789,") == std::string_view::npos;
    if (is_pair || line.starts_with('{')) ++lines.alike;
    if ((is_pair && numbers) || (line.starts_with('{') && line.find('"') != line.npos)) ++lines.sure;
  }
  return lines;
}

Error plain_text(const SeenFile& file) {
  return refuse(file, "plain text",
                R"(write each record as a line such as {"text": "it purrs", "labels": ["cat"]}; lines )"
                "without labels are for the preset word2vec, or to be asked: gossamer predict DIR < FILE");
}

Error marked_labels(const SeenFile& file) {
  constexpr std::string_view kProgram =
      "python3 -c 'import json; rows = (l.split() for l in open(0, encoding=\"utf-8-sig\")); "
      "print(*[json.dumps({\"text\": \" \".join(w for w in r if not w[:9] == \"__label__\" != w), "
      "\"labels\": [w[9:] for w in r if w[:9] == \"__label__\" != w]}) for r in rows if r], sep=\"\\n\")'";
  return refuse(file, "fastText text (__label__NAME WORD ...)", convert_words(kProgram, file));
}

Error table(const SeenFile& file, char separator) {
  const std::string_view name = separator == '\t'  ? "TSV"
                                : separator == '|' ? "a table with '|' between its cells"
                                                   : "CSV";
  if (auto command = convert_table(file, separator)) return refuse(file, name, *std::move(command));
  return refuse(file, fmt::format("plain text, or {} of one column or uneven rows", name),
                "write JSON lines, or a table with a text and its labels in two columns of each row");
}

// The file from the first line that is not blank. A blank before the pairs of XMLC text means no label.
SeenFile without_blank_lines(SeenFile file) {
  std::string_view& begin = file.begin;
  if (begin.starts_with(data::kByteOrderMark)) begin.remove_prefix(data::kByteOrderMark.size());
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) {
    begin = {};
  } else if (const std::size_t end = begin.find_last_of("\r\n", first); end != std::string_view::npos) {
    begin.remove_prefix(end + 1);
  }
  return file;
}

// Formats of lines that are surely no names.
std::optional<Error> surely_other(const SeenFile& file) {
  const std::string_view json =
      file.begin.substr(std::min(file.begin.size(), file.begin.find_first_not_of(" \t")));
  if (begins_json(json, file.whole))
    return json.starts_with('[') ? other_json(file, array_shape(file)) : refuse(file, "JSON lines", "");
  if (file.begin.starts_with(kLabelMark)) return marked_labels(file);
  if (is_surely_xmlc(file.begin)) return refuse(file, "XMLC text", "");
  const auto separator = table_separator(file);
  if (separator && is_surely_table(file, *separator)) return table(file, *separator);
  return std::nullopt;
}

}  // namespace

// Without a mark it is told by the place of the zero in each pair of bytes.
std::string_view utf16_name(std::string_view begin) {
  if (begin.starts_with("\xFF\xFE") || begin.starts_with("\xFE\xFF")) return "utf-16";
  const std::string_view some = begin.substr(0, 1024);
  std::array<std::size_t, 2> zeros = {0, 0};
  for (std::size_t i = 0; i < some.size(); ++i) zeros[i % 2] += some[i] == '\0' ? 1 : 0;
  if (zeros[0] * 4 > some.size() && zeros[1] == 0) return "utf-16be";
  if (zeros[1] * 4 > some.size() && zeros[0] == 0) return "utf-16le";
  return {};
}

std::optional<Error> other_format(const SeenFile& seen) {
  if (auto bytes = other_bytes(seen)) return bytes;
  const SeenFile file = without_blank_lines(seen);
  if (file.begin.empty()) return std::nullopt;
  for (const FirstBytes& one : kMarkedText) {
    if (file.begin.starts_with(one.begin)) return no_records(file, one.name);
  }
  const char first = file.begin[file.begin.find_first_not_of(" \t\r\n")];
  if (first == '{') {
    const auto shape = object_shape(file);
    return shape ? std::optional(other_json(file, *shape)) : std::nullopt;
  }
  const std::string_view line = first_line_of(file.begin);
  const bool array = first == '[';
  const bool marked = line.find(kLabelMark) != std::string_view::npos;
  if (!array && !marked && is_xmlc(line)) return std::nullopt;
  const auto blank_lines = static_cast<std::size_t>(
      std::ranges::count(seen.begin.substr(0, seen.begin.size() - file.begin.size()), '\n'));
  const RecordLines lines = array ? RecordLines{} : count_record_lines(file);
  const bool records = lines.all > 0 && lines.alike * 2 >= lines.all;
  if (auto encoding = records ? std::nullopt : other_encoding(file, blank_lines)) return encoding;
  if (array) return other_json(file, array_shape(file));
  if (marked) return marked_labels(file);
  if (!is_text(line)) return std::nullopt;
  if (const auto separator = table_separator(file)) return table(file, *separator);
  // Bad lines may stand before the records, and be skipped.
  return records || lines.sure > 0 ? std::nullopt : std::optional(plain_text(file));
}

std::optional<Error> no_lines(const SeenFile& seen, const WantedLines& wanted) {
  std::optional<Error> error = other_bytes(seen);
  const bool text = !error;
  if (text && !wanted.as_is) error = surely_other(without_blank_lines(seen));
  if (!error) return error;
  error->what = fmt::format("the file is {}, which is not what data.format wants", error->got);
  error->expected = wanted.lines;
  if (!text) return error;
  const std::string to_records = error->fix.empty() ? "" : "; for that, " + error->fix;
  error->fix =
      "write such lines; or take them as they are: gossamer data import KIND FILE --as-is --out DIR; or "
      "train "
      "on its records with the preset xmc" +
      to_records;
  return error;
}

}  // namespace gossamer::commands
