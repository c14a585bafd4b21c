// SPDX-License-Identifier: Apache-2.0
//
// Commands that convert a user's file into JSON lines, for messages. A user copies them without reading, so
// they lose no record, and never write to the file that they read. Where a command rests on a guess, its
// words say what it takes for what.
//
// Thread rule: plain functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer::commands {

// "convert it: COMMAND < PATH > NEW.jsonl". The new file never has the name of the old one. For what comes
// through a pipe ("-", "stdin"): "pipe it through: COMMAND".
[[nodiscard]] std::string convert_words(std::string_view command, const std::string& path);

// The first rows of a table, by the rules of CSV (quotes, line ends within a cell), or of TSV for a tab.
[[nodiscard]] std::vector<std::vector<std::string>> table_rows(std::string_view begin, char separator);
// Whether the first row names the columns: a usual name is among its cells, and no cell comes again below.
[[nodiscard]] bool has_header(const std::vector<std::vector<std::string>>& rows);
// How many cells of the first row are usual names of columns.
[[nodiscard]] std::size_t usual_names(const std::vector<std::string>& row);

// How to convert a table, with the columns that it takes for text and labels. Requires two columns.
[[nodiscard]] std::string convert_table(std::string_view begin, char separator, const std::string& path);

// The command that gives JSON lines with keys of other names those of a record. `line`: the first of them.
// Nothing where it is no JSON object, has the keys of a record, or fewer than two keys.
[[nodiscard]] std::optional<std::string> rename_keys(std::string_view line, const std::string& path);
// The command that gives the key `labels` to what is called `key`.
[[nodiscard]] std::string name_labels(std::string_view key, const std::string& path);

}  // namespace gossamer::commands
