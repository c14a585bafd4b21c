// SPDX-License-Identifier: Apache-2.0
#include "commands/records/other_formats.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/shell_word.h"
#include "json/read_json.h"
#include "learn/text/words.h"

namespace gossamer::commands {
namespace {

constexpr std::string_view kLabelMark = "__label__";
constexpr std::string_view kQuotes = "'\"\\";  // they end a word of a command, or begin another
constexpr std::string_view kDigits = "0123456789";

// Formats of bytes, by their first ones.
struct ByteFormat {
  std::string_view begin;
  std::string_view name;
  std::string_view convert;  // {} is the path
};
constexpr std::array<ByteFormat, 6> kByteFormats = {
    {{"PAR1", "Parquet",
      "python3 -c 'import pandas, sys; pandas.read_parquet(sys.argv[1]).to_json(\"NEW.jsonl\", "
      "orient=\"records\", lines=True)' {}"},
     {"PK\x03\x04", "a zip archive", "unzip -p {} > NEW.jsonl"},
     {"BZh", "bzip2", "bzip2 -dc {} | gzip > NEW.gz"},
     {"\xFD"
      "7zXZ",
      "xz", "xz -dc {} | gzip > NEW.gz"},
     {"\xFF\xFE", "UTF-16 text", "iconv -f utf-16 -t utf-8 {} > NEW.jsonl"},
     {"\xFE\xFF", "UTF-16 text", "iconv -f utf-16 -t utf-8 {} > NEW.jsonl"}}};

// A path as an argument of a command, which must not take it for a flag.
std::string argument(const std::string& path) {
  return shell_word(path.starts_with('-') ? "./" + path : path);
}

Error refuse(const std::string& path, std::string_view format, std::string convert) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = fmt::format("the file is {}, which is not read", format),
          .got = std::string(format),
          .expected = R"(JSON lines such as {"text": ..., "labels": [...]}, or XMLC text)",
          .fix = "convert it: " + std::move(convert)};
}

std::string_view first_line_of(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

// Whether a line may begin a file of XMLC text: labels and pairs, or the three numbers of a header.
bool is_xmlc(std::string_view line) {
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

// The cells of a table's first line. A quoted cell may hold the separator; this is for a message alone.
std::vector<std::string> cells_of(std::string_view line, char separator) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == separator && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

// The column or key that sounds like the text, and the one that sounds like the labels: one of the usual
// names, else the first and the last.
std::pair<std::string, std::string> likely(const std::vector<std::string>& names) {
  constexpr std::array<std::string_view, 7> kTexts = {"text",  "title",    "content", "description",
                                                      "query", "sentence", "body"};
  constexpr std::array<std::string_view, 8> kLabels = {"labels",   "label", "tags",  "tag",
                                                       "category", "class", "topic", "target"};
  const auto usual = [&names](const auto& words, std::string otherwise) {
    for (const std::string_view one : words) {
      if (std::ranges::find(names, one) != names.end()) return std::string(one);
    }
    return otherwise;
  };
  return {usual(kTexts, names.front()), usual(kLabels, names.back())};
}

// Python reads tables by their rules: quotes, line ends within a cell.
Error table(std::string_view line, char separator, const std::string& path) {
  std::vector<std::string> cells = cells_of(line, separator);
  for (std::string& cell : cells) {
    std::erase_if(cell, [](char c) { return kQuotes.find(c) != std::string_view::npos; });
    cell = visible(cell);
  }
  const auto [text, labels] = likely(cells);
  const std::string_view name = separator == '\t' ? "TSV" : "CSV";
  const std::string delimiter = separator == ','    ? ""
                                : separator == '\t' ? ", delimiter=\"\\t\""
                                                    : ", delimiter=\";\"";
  return refuse(
      path, name,
      fmt::format("python3 -c 'import csv, json, sys; [print(json.dumps({{\"text\": r[\"{}\"], \"labels\": "
                  "[r[\"{}\"]]}})) for r in csv.DictReader(sys.stdin{})]' < {} > NEW.jsonl",
                  text, labels, delimiter, argument(path)));
}

Error marked_labels(const std::string& path) {
  return refuse(
      path, "fastText text (__label__NAME WORD ...)",
      fmt::format("python3 -c 'import json, sys; [print(json.dumps({{\"text\": \" \".join(w for w in "
                  "l.split() if not w.startswith(\"__label__\")), \"labels\": [w[9:] for w in l.split() if "
                  "w.startswith(\"__label__\")]}})) for l in sys.stdin]' < {} > NEW.jsonl",
                  argument(path)));
}

}  // namespace

std::optional<Error> other_format(std::string_view begin, const std::string& path) {
  for (const ByteFormat& one : kByteFormats) {
    if (begin.starts_with(one.begin))
      return refuse(path, one.name, fmt::format(fmt::runtime(one.convert), argument(path)));
  }
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (begin.starts_with(kMark)) begin.remove_prefix(kMark.size());
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return std::nullopt;
  if (begin[first] == '[')
    return refuse(path, "a JSON array", fmt::format("jq -c '.[]' {} > NEW.jsonl", argument(path)));
  if (begin[first] == '{') return std::nullopt;
  // A blank before the pairs of XMLC text means that there is no label.
  const std::size_t line_begin = begin.find_last_of("\r\n", first);
  const std::string_view line =
      first_line_of(begin.substr(line_begin == std::string_view::npos ? 0 : line_begin + 1));
  if (line.find(kLabelMark) != std::string_view::npos) return marked_labels(path);
  if (is_xmlc(line) || !is_text(line)) return std::nullopt;
  for (const char separator : {'\t', ',', ';'}) {
    if (line.find(separator) != std::string_view::npos) return table(line, separator, path);
  }
  return std::nullopt;
}

std::optional<std::string> rename_keys(std::string_view line, const std::string& path) {
  const nlohmann::ordered_json json = read_json<nlohmann::ordered_json>(line);
  if (!json.is_object() || json.contains("text") || json.contains("features")) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& [key, value] : json.items()) {
    if (key.find_first_of(kQuotes) != std::string::npos || visible(key) != key) continue;  // no shell's word
    names.push_back(key);
  }
  if (names.empty()) return std::nullopt;
  const auto [text, labels] = likely(names);
  return fmt::format(R"(jq -c '{{text: .["{}"], labels: .["{}"]}}' {} > NEW.jsonl)", text, labels,
                     argument(path));
}

}  // namespace gossamer::commands
