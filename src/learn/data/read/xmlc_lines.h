// SPDX-License-Identifier: Apache-2.0
//
// XmlcParser: parses the lines of one chunk of libsvm/XMLC text (format: xmlc_reader.h) into arrays.
// Private to learn/data. Thread rule: one parser may serve many threads, each XmlcLines belongs to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "learn/data/read/bad_lines.h"
#include "learn/data/read/reading.h"
#include "learn/data/rows.h"

namespace gossamer::data {

// The lines of one chunk: one kind per line, one row per record, one note per bad line.
struct XmlcLines {
  std::vector<LineKind> kind;
  std::vector<BadLine> bad;
  std::vector<std::size_t> feature_begin;  // records + 1
  std::vector<std::size_t> label_begin;
  std::vector<std::uint32_t> index;
  std::vector<float> value;
  std::vector<std::uint32_t> label;

  void clear();
  [[nodiscard]] Record record(std::size_t i) const;

  // Used while parsing a row.
  std::vector<std::pair<std::uint32_t, std::size_t>> order;
  std::vector<float> sorted;
};

class XmlcParser {
 public:
  struct Bounds {
    std::uint32_t features;  // every index below
    std::uint32_t labels;
  };
  // `stop_after_bad`: how many bad lines of a chunk are noted before the rest of it is left unread.
  struct Limits {
    std::size_t line_bytes;
    std::uint64_t stop_after_bad;
  };
  XmlcParser(Bounds bounds, Limits limits) : bounds_(bounds), limits_(limits) {}

  // `text`: whole lines, each ending with '\n'. Replaces what `lines` held.
  void parse(std::string_view text, XmlcLines& lines) const;

 private:
  // A position in a line that ends (exclusively) at `end`, where a byte can be read that is no digit.
  struct Cursor {
    const char* begin;
    const char* at;
    const char* end;
  };
  [[nodiscard]] bool parse_line(Cursor line, XmlcLines& lines) const;
  [[nodiscard]] bool parse_labels(Cursor& line, XmlcLines& lines) const;
  [[nodiscard]] bool parse_features(Cursor& line, XmlcLines& lines) const;
  [[nodiscard]] bool sort_features(const Cursor& line, XmlcLines& lines) const;
  [[nodiscard]] bool explain_label(const Cursor& line, XmlcLines& lines) const;
  [[nodiscard]] bool explain_feature(const Cursor& line, XmlcLines& lines) const;

  Bounds bounds_;
  Limits limits_;
};

}  // namespace gossamer::data
