// SPDX-License-Identifier: Apache-2.0
#include "commands/records/conversion.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/printable.h"
#include "base/shell_word.h"
#include "json/read_json.h"

namespace gossamer::commands {
namespace {

using TableRow = std::vector<std::string>;
using TableRows = std::vector<TableRow>;

constexpr std::size_t kMostRows = 100;  // of a table that are looked at
constexpr std::array<std::string_view, 9> kTextNames = {
    "text", "title", "content", "description", "query", "sentence", "body", "review", "question"};
constexpr std::array<std::string_view, 14> kLabelNames = {
    "labels", "label",  "tags",   "tag",    "category", "categories", "class",
    "topic",  "topics", "target", "genres", "genre",    "kind",       "stars"};
constexpr std::array<std::string_view, 14> kMoreNames = {"id",     "name",    "date",  "when",     "url",
                                                         "rating", "score",   "user",  "userid",   "item",
                                                         "itemid", "movieid", "price", "timestamp"};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

template <class Names>
bool is_one_of(const Names& names, std::string_view word) {
  return std::ranges::find(names, lower(word)) != names.end();
}

// The place of the first name that sounds usual, in the order of the usual names.
template <class Names>
std::optional<std::size_t> usual(const Names& usual_ones, const TableRow& names) {
  for (const std::string_view one : usual_ones) {
    const auto found =
        std::ranges::find_if(names, [one](const std::string& name) { return lower(name) == one; });
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  return std::nullopt;
}

// What a column holds, over the rows that are looked at.
struct ColumnLook {
  std::size_t bytes = 0;
  std::set<std::string> values;
};

// Texts are long; labels come again.
std::pair<std::size_t, std::size_t> likely_columns(const TableRows& rows, bool header) {
  std::vector<ColumnLook> looks(rows.front().size());
  for (std::size_t r = header && rows.size() > 1 ? 1 : 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < std::min(looks.size(), rows[r].size()); ++c) {
      looks[c].bytes += rows[r][c].size();
      looks[c].values.insert(rows[r][c]);
    }
  }
  const auto named = [&](const auto& names) { return header ? usual(names, rows.front()) : std::nullopt; };
  const std::optional<std::size_t> label = named(kLabelNames);
  std::optional<std::size_t> text = named(kTextNames);
  for (std::size_t c = 0; c < looks.size() && !named(kTextNames); ++c) {
    if (c != label && (!text || looks[c].bytes > looks[*text].bytes)) text = c;
  }
  if (label) return {*text, *label};
  std::optional<std::size_t> best;
  for (std::size_t c = 0; c < looks.size(); ++c) {
    if (c != *text && (!best || looks[c].values.size() <= looks[*best].values.size())) best = c;
  }
  return {*text, *best};
}

// What stands between several labels in one cell: the first of the usual ones that is seen. 0: none is.
char label_separator(const TableRows& rows, std::size_t column, bool header) {
  for (const char separator : {'|', ';', ','}) {
    for (std::size_t r = header ? 1 : 0; r < rows.size(); ++r) {
      if (column < rows[r].size() && rows[r][column].find(separator) != std::string::npos) return separator;
    }
  }
  return 0;
}

// A string as JSON, Python and jq write it.
std::string literal(std::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string column_words(const TableRows& rows, std::size_t column, bool header) {
  const std::string name = header ? " (" + quote(rows.front()[column]) + ")" : "";
  return fmt::format("column {}{}", column + 1, name);
}

}  // namespace

std::string convert_words(std::string_view command, const std::string& path) {
  if (path == "-" || path == "stdin" || path == "/dev/stdin")
    return fmt::format("pipe it through: {}", command);
  const std::size_t slash = path.rfind('/');
  const std::string_view name = std::string_view(path).substr(slash == std::string::npos ? 0 : slash + 1);
  return fmt::format("convert it: {} < {} > {}", command, shell_word(path),
                     name == "NEW.jsonl" ? "NEW-2.jsonl" : "NEW.jsonl");
}

std::vector<std::vector<std::string>> table_rows(std::string_view begin, char separator) {
  TableRows rows(1);
  rows.back().emplace_back();
  bool quoted = false;
  bool ended = false;  // behind a line end, before the next row's first byte
  for (const char c : begin) {
    if (ended && rows.size() == kMostRows) return rows;
    if (std::exchange(ended, false)) rows.emplace_back(1);
    if (c == '"' && separator != '\t') {
      quoted = !quoted;
    } else if (c == separator && !quoted) {
      rows.back().emplace_back();
    } else if (c == '\n' && !quoted) {
      std::string& last = rows.back().back();
      if (last.ends_with('\r')) last.pop_back();
      if (rows.back().size() == 1 && last.empty()) {
        rows.back().back().clear();  // a blank line is no row
      } else {
        ended = true;
      }
    } else {
      rows.back().back() += c;
    }
  }
  // The beginning of a file may end within a row.
  if (!ended && rows.size() > 1) rows.pop_back();
  return rows;
}

std::size_t usual_names(const std::vector<std::string>& row) {
  return static_cast<std::size_t>(std::ranges::count_if(row, [](const std::string& cell) {
    return is_one_of(kTextNames, cell) || is_one_of(kLabelNames, cell) || is_one_of(kMoreNames, cell);
  }));
}

bool has_header(const std::vector<std::vector<std::string>>& rows) {
  const TableRow& first = rows.front();
  if (usual_names(first) == 0) return false;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < std::min(first.size(), rows[r].size()); ++c) {
      if (!first[c].empty() && first[c] == rows[r][c]) return false;
    }
  }
  return true;
}

std::string convert_table(std::string_view begin, char separator, const std::string& path) {
  const TableRows rows = table_rows(begin, separator);
  const bool header = has_header(rows);
  const auto [text, labels] = likely_columns(rows, header);
  const char between = label_separator(rows, labels, header);
  // TSV has no quotes: a lone one would join rows.
  const std::string reader =
      separator == '\t'
          ? R"((l.rstrip("\r\n").split("\t") for l in open(0, encoding="utf-8-sig", newline="\n")))"
          : fmt::format(R"(csv.reader(open(0, encoding="utf-8-sig", newline=""){}))",
                        separator == ',' ? "" : ", delimiter=\";\"");
  const std::string cell = fmt::format("r[{}]", labels);
  const std::string list =
      between == 0 ? fmt::format("[{0}] if {0} else []", cell)
                   : fmt::format("[w.strip() for w in {}.split(\"{}\") if w.strip()]", cell, between);
  const std::string program = fmt::format(
      "import csv, json; rows = {}; {}[print(json.dumps({{\"text\": r[{}], \"labels\": {}}})) for r in "
      "rows if any(r)]",
      reader, header ? "next(rows); " : "", text, list);
  std::string words = fmt::format("{} (check it: the text is {}, the labels are {}",
                                  convert_words("python3 -c " + shell_word(program), path),
                                  column_words(rows, text, header), column_words(rows, labels, header));
  if (between != 0) words += fmt::format(", split at '{}'", between);
  return words + (header ? "; line 1 names the columns)" : "; line 1 is taken for a record)");
}

std::optional<std::string> rename_keys(std::string_view line, const std::string& path) {
  const nlohmann::ordered_json json = read_json<nlohmann::ordered_json>(line);
  if (!json.is_object() || json.contains("text") || json.contains("features")) return std::nullopt;
  TableRow names;
  for (const auto& [key, value] : json.items()) names.push_back(key);
  if (names.size() < 2) return std::nullopt;
  const std::optional<std::size_t> label = usual(kLabelNames, names);
  const std::size_t text = usual(kTextNames, names).value_or(label == 0 ? 1 : 0);
  const std::size_t last = names.size() - 1;
  const std::size_t labels = label.value_or(text == last ? last - 1 : last);
  const std::string program =
      fmt::format("{{text: .[{}], labels: .[{}]}}", literal(names[text]), literal(names[labels]));
  return fmt::format("{} (check it: the text is {}, the labels are {})",
                     convert_words("jq -c " + shell_word(program), path), quote(names[text]),
                     quote(names[labels]));
}

std::string name_labels(std::string_view key, const std::string& path) {
  return convert_words("jq -c " + shell_word(fmt::format(".labels = .[{}]", literal(key))), path);
}

}  // namespace gossamer::commands
