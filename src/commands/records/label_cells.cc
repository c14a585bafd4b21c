// SPDX-License-Identifier: Apache-2.0
#include "commands/records/label_cells.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "json/read_json.h"

namespace gossamer::commands {
namespace {

std::string_view without_ends(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// Whether a cell may be a list, a set or a tuple that a program has written.
bool opens_list(std::string_view cell) {
  const bool quote_behind = cell.size() > 1 && (cell[1] == '\'' || cell[1] == '"');
  return cell.starts_with('[') || (quote_behind && (cell.front() == '(' || cell.front() == '{'));
}

bool is_json_list(std::string_view cell) { return read_json<nlohmann::json>(cell).is_array(); }

// Whether a cell is a list of strings and numbers with commas between. Python would join two strings that
// have none, as NumPy writes them.
bool is_python_list(std::string_view cell) {
  if (cell.size() < 2 || !cell.starts_with('[') || !cell.ends_with(']')) return false;
  cell = cell.substr(1, cell.size() - 2);
  bool wants_comma = false;
  while (!(cell = without_ends(cell)).empty()) {
    const char first = cell.front();
    if (wants_comma != (first == ',')) return false;
    wants_comma = !wants_comma;
    std::size_t end = 1;
    if (first == '\'' || first == '"') {
      while (end < cell.size() && cell[end] != first) end += cell[end] == '\\' ? 2 : 1;
      if (end >= cell.size()) return false;
      ++end;
    } else if (first != ',') {
      end = std::min(cell.find_first_not_of("0123456789.+-eE"), cell.size());
      if (end == 0) return false;
    }
    cell.remove_prefix(end);
  }
  return true;
}

std::vector<std::string> pieces(std::string_view cell, char separator) {
  std::vector<std::string> out;
  for (std::size_t at = cell.find(separator); at != std::string_view::npos; at = cell.find(separator)) {
    out.emplace_back(without_ends(cell.substr(0, at)));
    cell.remove_prefix(at + 1);
  }
  out.emplace_back(without_ends(cell));
  return out;
}

// "Dallas, TX" and "Austin, TX": their pieces come again, but each at its place.
bool commas_separate(std::span<const std::string> cells) {
  std::set<std::string> first;
  std::set<std::string> behind;
  bool tight = false;  // a comma without a blank behind it
  for (const std::string& cell : cells) {
    for (std::size_t at = cell.find(','); at != std::string::npos; at = cell.find(',', at + 1))
      tight = tight || (at + 1 < cell.size() && cell[at + 1] != ' ');
    std::vector<std::string> parts = pieces(cell, ',');
    first.insert(parts.front());
    behind.insert(parts.begin() + 1, parts.end());
  }
  return tight ||
         std::ranges::any_of(first, [&](const std::string& piece) { return behind.contains(piece); });
}

}  // namespace

LabelCells look_at_labels(std::span<const std::string> cells) {
  using Form = LabelCells::Form;
  std::vector<std::string> lists;
  std::size_t blank = 0;
  for (const std::string& cell : cells) {
    const std::string_view text = without_ends(cell);
    if (opens_list(text)) lists.emplace_back(text);
    if (text.empty()) ++blank;
  }
  if (!lists.empty()) {
    if (lists.size() + blank < cells.size()) return {.form = Form::kOther};
    if (std::ranges::all_of(lists, is_json_list)) return {.form = Form::kJsonList};
    return {.form = std::ranges::all_of(lists, is_python_list) ? Form::kPythonList : Form::kOther};
  }
  const auto has = [&](char separator) {
    return std::ranges::any_of(cells,
                               [=](const std::string& cell) { return cell.find(separator) != cell.npos; });
  };
  for (const char separator : {'|', ';'}) {
    if (has(separator)) return {.form = Form::kSeparated, .separator = separator};
  }
  if (!has(',')) return {};
  return commas_separate(cells) ? LabelCells{.form = Form::kSeparated, .separator = ','}
                                : LabelCells{.commas = true};
}

std::string labels_in_python(const LabelCells& cells, std::size_t column) {
  switch (cells.form) {
    case LabelCells::Form::kSeparated: return fmt::format("r[{}].split(\"{}\")", column, cells.separator);
    case LabelCells::Form::kJsonList:
      return fmt::format("map(str, json.loads(r[{}].strip() or \"[]\"))", column);
    case LabelCells::Form::kPythonList:
      return fmt::format("map(str, ast.literal_eval(r[{}].strip() or \"[]\"))", column);
    default: return fmt::format("[r[{}]]", column);
  }
}

std::string describe(const LabelCells& cells) {
  switch (cells.form) {
    case LabelCells::Form::kSeparated: return fmt::format("split at '{}'", cells.separator);
    case LabelCells::Form::kJsonList: return "lists of JSON";
    case LabelCells::Form::kPythonList: return "lists of Python";
    default: return cells.commas ? "not split at their commas" : "not split";
  }
}

}  // namespace gossamer::commands
