// SPDX-License-Identifier: Apache-2.0
//
// JsonlParser: parses the lines of one chunk of JSON lines (format: jsonl_reader.h) into arrays. Private to
// learn/data. Thread rule: one parser may serve many threads, each JsonlLines belongs to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "learn/data/read/bad_lines.h"
#include "learn/data/read/jsonl_reader.h"
#include "learn/data/read/reading.h"

namespace gossamer::data {

// The lines of one chunk: one kind per line, one row per record, one note per bad line.
struct JsonlLines {
  // A string in `bytes`.
  struct Piece {
    std::size_t offset = 0;
    std::size_t size = 0;
  };
  // How much of each array belongs to the rows up to and including this one.
  struct Ends {
    std::size_t index = 0;
    std::size_t name = 0;
    std::size_t value = 0;
    std::size_t label_number = 0;
    std::size_t label_name = 0;
    std::size_t bytes = 0;
  };
  struct Row {
    JsonlRecord::Kind kind = JsonlRecord::Kind::kText;
    Piece text;
    Piece context;
    bool has_labels = false;  // the key, with labels or without
    Ends ends;
  };

  std::vector<LineKind> kind;
  std::vector<BadLine> bad;
  std::vector<Row> rows;
  std::vector<std::uint32_t> index;
  std::vector<Piece> name;
  std::vector<float> value;
  std::vector<std::uint32_t> label_number;
  std::vector<Piece> label_name;
  std::string bytes;
  std::vector<std::string> other_keys;  // of the chunk, as in ReadReport

  void clear();
  [[nodiscard]] Ends ends() const {
    return {index.size(), name.size(), value.size(), label_number.size(), label_name.size(), bytes.size()};
  }
  [[nodiscard]] Ends last_ends() const { return rows.empty() ? Ends{} : rows.back().ends; }
  // Forgets everything behind the last row.
  void roll_back();
  [[nodiscard]] Piece keep(std::string_view text);
  [[nodiscard]] std::string_view view(const Piece& piece) const {
    return std::string_view(bytes).substr(piece.offset, piece.size);
  }

  // The record of row i; the scratch vectors hold its names.
  struct Scratch {
    std::vector<std::string_view> name;
    std::vector<std::string_view> label_name;
  };
  [[nodiscard]] JsonlRecord record(std::size_t i, Scratch& scratch) const;

  // Used while parsing a row.
  std::vector<std::pair<std::uint32_t, float>> pairs;
  std::vector<std::string_view> names;
  std::vector<std::string> line_keys;  // the first of the line that no reader looks at
};

class JsonlParser {
 public:
  explicit JsonlParser(const ReadOptions& options)
      : limits_(options.limits), stop_after_bad_(notes_per_chunk(options)) {}

  // `text`: whole lines, each ending with '\n'. Replaces what `lines` held.
  void parse(std::string_view text, JsonlLines& lines) const;

 private:
  [[nodiscard]] bool parse_line(std::string_view line, JsonlLines& lines) const;

  ReadLimits limits_;
  std::uint64_t stop_after_bad_;
};

}  // namespace gossamer::data
