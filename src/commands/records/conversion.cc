// SPDX-License-Identifier: Apache-2.0
#include "commands/records/conversion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/printable.h"
#include "base/shell_word.h"
#include "commands/records/label_cells.h"
#include "json/read_json.h"

namespace gossamer::commands {
namespace {

using TableRow = std::vector<std::string>;
using TableRows = std::vector<TableRow>;

constexpr std::array<std::string_view, 9> kTextNames = {
    "text", "title", "content", "description", "query", "sentence", "body", "review", "question"};
constexpr std::array<std::string_view, 14> kLabelNames = {
    "labels", "label",  "tags",   "tag",    "category", "categories", "class",
    "topic",  "topics", "target", "genres", "genre",    "kind",       "stars"};
constexpr std::array<std::string_view, 14> kMoreNames = {"id",     "name",    "date",  "when",     "url",
                                                         "rating", "score",   "user",  "userid",   "item",
                                                         "itemid", "movieid", "price", "timestamp"};

// The text without blanks at its ends.
std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string lower(std::string_view text) {
  std::string out(trimmed(text));
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
  const bool named_text = text.has_value();
  for (std::size_t c = 0; !named_text && c < looks.size(); ++c) {
    if (c != label && (!text || looks[c].bytes > looks[*text].bytes)) text = c;
  }
  if (label) return {*text, *label};
  std::optional<std::size_t> best;
  for (std::size_t c = 0; c < looks.size(); ++c) {
    if (c != *text && (!best || looks[c].values.size() <= looks[*best].values.size())) best = c;
  }
  return {*text, *best};
}

// A string as JSON, Python and jq write it.
std::string literal(std::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The name of a column, else its first cell: that is how a user knows it.
std::string column_words(const TableRows& rows, std::size_t column, bool header) {
  const std::string& cell = rows.front()[column];
  if (cell.empty()) return fmt::format("column {}", column + 1);
  return fmt::format("column {} ({}{})", column + 1, header ? "" : "such as ", quote(cell));
}

// The columns that a command leaves out, for people; empty where there is none.
std::string unused_words(const TableRows& rows, bool header, std::pair<std::size_t, std::size_t> used) {
  constexpr std::size_t kEnough = 8;
  std::vector<std::string> names;
  for (std::size_t c = 0; c < rows.front().size(); ++c) {
    if (c == used.first || c == used.second) continue;
    const std::string& name = rows.front()[c];
    names.push_back(header && !name.empty() ? quote(name) : fmt::format("{}", c + 1));
  }
  if (names.empty()) return {};
  const bool one = names.size() == 1;
  const std::size_t more = names.size() - std::min(kEnough, names.size());
  names.resize(names.size() - more);
  return fmt::format("; the column{} {}{} {} not used", one ? "" : "s", fmt::join(names, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more), one ? "is" : "are");
}

// The cells of a column below the header.
std::vector<std::string> cells_of(const TableRows& rows, std::size_t column, bool header) {
  std::vector<std::string> cells;
  for (std::size_t r = header ? 1 : 0; r < rows.size(); ++r) {
    if (column < rows[r].size()) cells.push_back(rows[r][column]);
  }
  return cells;
}

bool comes_through_pipe(const std::string& path) {
  return path == "-" || path == "stdin" || path == "/dev/stdin" || path.starts_with("/dev/fd/");
}

std::string new_name(std::string_view path, Makes makes) {
  std::string_view name = path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
  for (const std::string_view packed : {".gz", ".dz", ".zst"}) {
    if (name.size() > packed.size() && name.ends_with(packed)) name.remove_suffix(packed.size());
  }
  const std::size_t dot = name.rfind('.');
  const bool has_end = dot != std::string_view::npos && dot > 0;
  const std::string_view stem = has_end ? name.substr(0, dot) : name;
  const std::string_view end = has_end ? name.substr(dot) : "";
  const std::string_view here = name.starts_with('-') ? "./" : "";  // or it would be a flag
  if (makes == Makes::kText) return fmt::format("{}{}.utf-8{}", here, stem, end);
  return fmt::format("{}{}{}.jsonl", here, stem, end == ".jsonl" ? ".records" : "");
}

// Splits TSV at each tab and line end. Carriage returns at the end of a line are left out.
TableRows tab_rows(std::string_view text, bool whole) {
  TableRows rows;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos && !whole) break;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    while (line.ends_with('\r')) line.remove_suffix(1);
    TableRow& row = rows.emplace_back();
    for (std::size_t tab = line.find('\t'); tab != std::string_view::npos; tab = line.find('\t')) {
      row.emplace_back(line.substr(0, tab));
      line.remove_prefix(tab + 1);
    }
    row.emplace_back(line);
  }
  return rows;
}

// Splits CSV, byte by byte, by the rules of Python's csv.
class CsvRows {
 public:
  explicit CsvRows(char separator) : separator_(separator) { begin_row(); }

  void take(char c) {
    const bool was_return = std::exchange(was_return_, false);
    if (c == '\n' && was_return) return;
    if (state_ == State::kInQuotes) {
      if (c == '"') return void(state_ = State::kQuoteInQuotes);
      cell() += c;
    } else if (c == '"' && state_ == State::kBegin) {
      state_ = State::kInQuotes;
    } else if (c == '"' && state_ == State::kQuoteInQuotes) {
      state_ = State::kInQuotes;
      cell() += c;
    } else if (c == '\n' || c == '\r') {
      was_return_ = c == '\r';
      begin_row();
    } else if (c == separator_) {
      rows_.back().emplace_back();
      state_ = State::kBegin;
    } else if (c != ' ' || state_ != State::kBegin) {
      state_ = State::kInCell;
      cell() += c;
    }
  }
  // Without the row that has not ended, unless the text has.
  [[nodiscard]] TableRows finish(bool whole) && {
    if (!whole) rows_.pop_back();
    return std::move(rows_);
  }

 private:
  enum class State { kBegin, kInCell, kInQuotes, kQuoteInQuotes };

  [[nodiscard]] std::string& cell() { return rows_.back().back(); }
  void begin_row() {
    rows_.emplace_back().emplace_back();
    state_ = State::kBegin;
  }

  const char separator_;
  TableRows rows_;
  State state_ = State::kBegin;
  bool was_return_ = false;
};

// The separator that Excel writes into a line of its own, "sep=;".
std::optional<char> named_separator(std::string_view begin) {
  const std::string_view line = begin.substr(0, begin.find_first_of("\r\n"));
  const bool named = line.size() == 5 && line.starts_with("sep=");
  return named && std::string_view("\t,;|").find(line.back()) != std::string_view::npos
             ? std::optional(line.back())
             : std::nullopt;
}

// How many rows have as many cells as the first.
std::size_t fitting_rows(const TableRows& rows) {
  return static_cast<std::size_t>(
      std::ranges::count_if(rows, [&](const TableRow& row) { return row.size() == rows.front().size(); }));
}

// Strict: a quote that never ends would make one cell of all rows after it.
std::string reader(char separator) {
  if (separator == '\t')  // TSV has no quotes: a lone one would join rows
    return R"((l.rstrip("\r\n").split("\t") for l in open(0, encoding="utf-8-sig", newline="\n")))";
  return fmt::format(
      R"(csv.reader(open(0, encoding="utf-8-sig", newline=""){}, skipinitialspace=True, strict=True))",
      separator == ',' ? "" : fmt::format(R"(, delimiter="{}")", separator));
}

}  // namespace

std::string convert_words(std::string_view command, const SeenFile& file, Makes makes) {
  const std::string_view unpack = file.packing == data::Packing::kGzip   ? "gzip -dc"
                                  : file.packing == data::Packing::kZstd ? "zstd -dc"
                                                                         : "";
  if (comes_through_pipe(file.path))
    return fmt::format("pipe it through:\n  {}{}{}", unpack, unpack.empty() ? "" : " | ", command);
  const std::string old = shell_word(file.path);
  const std::string input = unpack.empty() ? fmt::format("{} < {}", command, old)
                                           : fmt::format("{} < {} | {}", unpack, old, command);
  const std::string made = shell_word(new_name(file.path, makes));
  // -C: the shell refuses to write over a file, whatever names it has. Behind it the file is a new one.
  return fmt::format("convert it:\n  (set -C; exec > {0} && {{ {1} || ! rm -f {0}; }})", made, input);
}

std::string check_words(std::string_view guess) { return fmt::format("\n  check it: {}", guess); }

std::vector<std::vector<std::string>> table_rows(const SeenFile& file, char separator) {
  TableRows rows;
  if (separator == '\t') {
    rows = tab_rows(file.begin, file.whole);
  } else {
    CsvRows all(separator);
    for (const char c : file.begin) all.take(c);
    rows = std::move(all).finish(file.whole);
  }
  std::erase_if(rows, [](const TableRow& row) {
    return std::ranges::all_of(row, [](const std::string& cell) { return trimmed(cell).empty(); });
  });
  if (!rows.empty() && named_separator(file.begin)) rows.erase(rows.begin());
  return rows;
}

std::optional<char> table_separator(const SeenFile& file) {
  if (const auto named = named_separator(file.begin)) return named;
  const std::string_view line = file.begin.substr(0, file.begin.find('\n'));
  std::optional<char> best;
  std::size_t most = 0;
  for (const char separator : {'\t', ',', ';', '|'}) {
    const TableRows rows = table_rows(file, separator);
    const bool is_table = !rows.empty() && rows.front().size() > 1;
    const std::size_t fit = is_table ? fitting_rows(rows) : 0;
    if (fit > most || (!best && line.find(separator) != std::string_view::npos)) best = separator;
    most = std::max(most, fit);
  }
  return best;
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

std::optional<std::string> convert_table(const SeenFile& file, char separator) {
  const TableRows rows = table_rows(file, separator);
  const std::size_t width = rows.empty() ? 0 : rows.front().size();
  if (width < 2 || fitting_rows(rows) * 2 < rows.size()) return std::nullopt;
  const bool header = has_header(rows);
  const auto [text, labels] = likely_columns(rows, header);
  const LabelCells cells = look_at_labels(cells_of(rows, labels, header));
  if (cells.form == LabelCells::Form::kOther)
    return fmt::format("write JSON lines; the lists in {} are of a form that no command is known for",
                       column_words(rows, labels, header));
  std::string skip = named_separator(file.begin) ? "next(rows); " : "";
  if (header) skip += "next(rows); ";
  const std::string program = fmt::format(
      "import {5}csv, json, sys; csv.field_size_limit(2**31-1); "
      "rows = (r + [\"\"] * {0} for r in {1} if \"\".join(r).strip()); {2}"
      "out = [not any(r[{0}:]) and json.dumps({{\"text\": r[{3}], \"labels\": [w.strip() for w in {4} if "
      "w.strip()]}}) for r in rows]; print(*filter(None, out), sep=\"\\n\"); "
      "print(out.count(False), \"of\", len(out), \"rows have more than {0} cells and are left out\", "
      "file=sys.stderr)",
      width, reader(separator), skip, text, labels_in_python(cells, labels),
      cells.form == LabelCells::Form::kPythonList ? "ast, " : "");
  return convert_words("python3 -c " + shell_word(program), file) +
         check_words(fmt::format("the text is {}, the labels are {}, {}; the first row {}{}",
                                 column_words(rows, text, header), column_words(rows, labels, header),
                                 describe(cells), header ? "names the columns" : "is taken for a record",
                                 unused_words(rows, header, {text, labels})));
}

std::optional<std::string> rename_keys(std::string_view line, const SeenFile& file) {
  const nlohmann::ordered_json json = read_json<nlohmann::ordered_json>(line);
  if (!json.is_object() || json.contains("text") || json.contains("features")) return std::nullopt;
  TableRow names;
  for (const auto& [key, value] : json.items()) names.push_back(key);
  if (names.size() < 2) return std::nullopt;
  const std::optional<std::size_t> label = usual(kLabelNames, names);
  const std::size_t text = usual(kTextNames, names).value_or(label == 0 ? 1 : 0);
  const std::size_t last = names.size() - 1;
  const std::size_t labels = label.value_or(text == last ? last - 1 : last);
  // jq gathers all records before it writes, so a bad line leaves no file that is cut off.
  const std::string program = fmt::format("[inputs | {{text: .[{}], labels: (.[{}] // [])}}][]",
                                          literal(names[text]), literal(names[labels]));
  return convert_words("jq -cn " + shell_word(program), file) +
         check_words(
             fmt::format("the text is {}, the labels are {}", quote(names[text]), quote(names[labels])));
}

std::optional<std::string> name_labels(const std::vector<std::string>& keys, const SeenFile& file) {
  const auto key = usual(kLabelNames, keys);
  if (!key) return std::nullopt;
  const std::string program =
      fmt::format("[inputs | .labels = (.[{}] // .labels // [])][]", literal(keys[*key]));
  return convert_words("jq -cn " + shell_word(program), file) +
         check_words(fmt::format("the labels are {}", quote(keys[*key])));
}

}  // namespace gossamer::commands
