// SPDX-License-Identifier: Apache-2.0
#include "commands/records/label_cells.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
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

// Whether a cell is a list of strings and numbers. Objects in it are no labels.
bool is_json_list(std::string_view cell) {
  const auto list = read_json<nlohmann::json>(cell);
  return list.is_array() && std::ranges::all_of(list, [](const nlohmann::json& label) {
           return label.is_string() || label.is_number();
         });
}

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
      double number = 0;
      const auto read = std::from_chars(cell.data(), cell.data() + cell.size(), number);
      // It reads infinity and NaN, too, which are words for Python.
      if (read.ec != std::errc() || !std::isfinite(number)) return false;
      end = static_cast<std::size_t>(read.ptr - cell.data());
    }
    cell.remove_prefix(end);
  }
  return true;
}

// Whether a cell is surely a list, and no label in brackets.
bool is_written_list(const std::string& cell) {
  return is_python_list(cell) || (cell.size() > 1 && (cell[1] == '\'' || cell[1] == '"'));
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

// Whether most commas have no blank behind them.
bool commas_are_tight(std::span<const std::string> cells) {
  std::size_t tight = 0;
  std::size_t all = 0;
  for (const std::string& cell : cells) {
    for (std::size_t at = cell.find(','); at != std::string::npos; at = cell.find(',', at + 1)) {
      ++all;
      if (at + 1 < cell.size() && cell[at + 1] != ' ') ++tight;
    }
  }
  return tight * 2 > all;
}

// "Dallas, TX" and "Austin, TX": their pieces come again, but each at its place. A town may have the name of
// a state, so one piece that moves is not enough.
bool pieces_move(std::span<const std::string> cells) {
  struct Cell {
    std::string front;
    std::set<std::string> behind;
  };
  std::vector<Cell> split;
  std::map<std::string, std::size_t> front;  // how many cells have a piece there
  std::map<std::string, std::size_t> behind;
  for (const std::string& cell : cells) {
    std::vector<std::string> parts = pieces(cell, ',');
    split.push_back({.front = parts.front(), .behind = {parts.begin() + 1, parts.end()}});
    ++front[split.back().front];
    for (const std::string& piece : split.back().behind) ++behind[piece];
  }
  const auto moves = [&](const Cell& cell) {
    return behind[cell.front] > cell.behind.count(cell.front) ||
           std::ranges::any_of(cell.behind, [&](const std::string& piece) {
             return front[piece] > (piece == cell.front ? 1U : 0U);
           });
  };
  std::erase_if(split, [](const Cell& cell) { return cell.behind.empty(); });
  return 2 * static_cast<std::size_t>(std::ranges::count_if(split, moves)) >= split.size();
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
  if (lists.size() + blank < cells.size()) {
    // A label may stand in brackets. Some labels alone and some in lists are no form.
    if (std::ranges::any_of(lists, is_written_list)) return {.form = Form::kOther};
  } else if (!lists.empty()) {
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
  return commas_are_tight(cells) || pieces_move(cells)
             ? LabelCells{.form = Form::kSeparated, .separator = ','}
             : LabelCells{.commas = true};
}

// What is no list cannot be added to one, and each label has to be a string or a number: a later cell of
// another form ends the program.
std::string labels_in_python(const LabelCells& cells, std::size_t column) {
  const auto of_list = [column](std::string_view read) {
    return fmt::format(
        "(str({{str: w, int: w, float: w}}[type(w)]) for w in {}(r[{}].strip() or \"[]\") + [])", read,
        column);
  };
  switch (cells.form) {
    case LabelCells::Form::kSeparated: return fmt::format("r[{}].split(\"{}\")", column, cells.separator);
    case LabelCells::Form::kJsonList: return of_list("json.loads");
    case LabelCells::Form::kPythonList: return of_list("ast.literal_eval");
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
