// SPDX-License-Identifier: Apache-2.0
//
// Commands that convert a user's file into JSON lines, for messages. A user copies them without reading, so
// none writes over a file that is there, and what is packed is unpacked. A command that fails removes
// what it made, and no more; but of an archive that is cut off it leaves what came before. Rows with more
// cells than the first are left out, and counted on standard error. Where a command rests on a guess, its
// words say what it takes for what. Where no guess is safe, there is no command.
//
// Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "learn/data/read/byte_source.h"

namespace gossamer::commands {

// So many bytes of a file are looked at.
inline constexpr std::size_t kLookBytes = std::size_t{64} << 10;

// A user's file, as far as it was looked at.
struct SeenFile {
  std::string_view begin = {};  // bytes of it, unpacked, at best some lines
  std::string path;
  data::Packing packing = data::Packing::kPlain;
  bool whole = true;  // `begin` is all of it; else its last line may be cut off
};

// What a command makes of a file.
enum class Makes { kRecords, kText };

// "convert it:", and on a line of its own a command that writes what COMMAND makes of the file to NEW. It
// writes over no file, and removes NEW if COMMAND fails. NEW is named after the old file: train.csv becomes
// train.jsonl, a.jsonl becomes a.records.jsonl, and text of a.csv a.utf-8.csv. It lies in the current
// directory. For what comes through a pipe ("-", "stdin"): "pipe it through:" and COMMAND.
[[nodiscard]] std::string convert_words(std::string_view command, const SeenFile& file,
                                        Makes makes = Makes::kRecords);
// The line behind such a command that says what it rests on.
[[nodiscard]] std::string check_words(std::string_view guess);

// The rows of a table that are not blank, as Python's csv reads them with skipinitialspace. A quote counts at
// the start of a cell alone. TSV, for a tab, has no quotes. A last row that may be cut off is no row.
[[nodiscard]] std::vector<std::vector<std::string>> table_rows(const SeenFile& file, char separator);
// Whether the first row names the columns: a usual name is among its cells, and no cell comes again below.
[[nodiscard]] bool has_header(const std::vector<std::vector<std::string>>& rows);
// How many cells of the first row are usual names of columns.
[[nodiscard]] std::size_t usual_names(const std::vector<std::string>& row);
// What stands between the cells of a table. A line like "sep=;" of Excel says it. Else it is the tab, comma,
// semicolon or bar by which most rows have as many cells as the first, at least two. Without such rows it is
// one that is in the first line. Nothing: none is.
[[nodiscard]] std::optional<char> table_separator(const SeenFile& file);

// How to convert a table, with the columns that it takes for text and labels, and those it leaves out. Where
// labels stand in lists that are not known, it has no command. Nothing where the first row has fewer than two
// cells, or most rows have another number of cells than the first.
[[nodiscard]] std::optional<std::string> convert_table(const SeenFile& file, char separator);

// The command that gives JSON lines with keys of other names those of a record. `line`: the first of them.
// Nothing where it is no JSON object, has the keys of a record, or fewer than two keys.
[[nodiscard]] std::optional<std::string> rename_keys(std::string_view line, const SeenFile& file);
// The command that gives the key `labels` to what the one of `keys` holds that sounds like labels. Nothing
// where none does.
[[nodiscard]] std::optional<std::string> name_labels(const std::vector<std::string>& keys,
                                                     const SeenFile& file);

}  // namespace gossamer::commands
