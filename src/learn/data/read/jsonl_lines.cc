// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/jsonl_lines.h"

#include <cstring>
#include <iterator>

#include "learn/data/read/jsonl_events.h"

namespace gossamer::data {
namespace {

// Walks over a line and tells JsonlEvents how far it has come.
struct TrackedByte {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  JsonlEvents::Text* text = nullptr;

  reference operator*() const { return *at; }
  TrackedByte& operator++() {
    text->seen = ++at;
    return *this;
  }
  TrackedByte operator++(int) {
    TrackedByte before = *this;
    ++*this;
    return before;
  }
  bool operator==(const TrackedByte& other) const { return at == other.at; }
};

}  // namespace

void JsonlLines::clear() {
  kind.clear();
  bad.clear();
  rows.clear();
  other_keys.clear();
  roll_back();
}

void JsonlLines::roll_back() {
  const Ends keep_up_to = last_ends();
  index.resize(keep_up_to.index);
  name.resize(keep_up_to.name);
  value.resize(keep_up_to.value);
  label_number.resize(keep_up_to.label_number);
  label_name.resize(keep_up_to.label_name);
  bytes.resize(keep_up_to.bytes);
}

JsonlLines::Piece JsonlLines::keep(std::string_view text) {
  bytes += text;
  return {bytes.size() - text.size(), text.size()};
}

JsonlRecord JsonlLines::record(std::size_t i, Scratch& scratch) const {
  const Ends begin = i == 0 ? Ends{} : rows[i - 1].ends;
  const Row& row = rows[i];
  scratch.name.clear();
  for (std::size_t n = begin.name; n < row.ends.name; ++n) scratch.name.push_back(view(name[n]));
  scratch.label_name.clear();
  for (std::size_t n = begin.label_name; n < row.ends.label_name; ++n) {
    scratch.label_name.push_back(view(label_name[n]));
  }
  return {.kind = row.kind,
          .text = view(row.text),
          .context = view(row.context),
          .index = std::span(index).subspan(begin.index, row.ends.index - begin.index),
          .name = scratch.name,
          .value = std::span(value).subspan(begin.value, row.ends.value - begin.value),
          .label_number =
              std::span(label_number).subspan(begin.label_number, row.ends.label_number - begin.label_number),
          .label_name = scratch.label_name};
}

void JsonlParser::parse(std::string_view text, JsonlLines& lines) const {
  lines.clear();
  while (!text.empty() && lines.bad.size() < stop_after_bad_) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      lines.kind.push_back(LineKind::kBlank);
    } else if (parse_line(line, lines)) {
      lines.kind.push_back(LineKind::kRecord);
    } else {
      lines.kind.push_back(LineKind::kBad);
      lines.roll_back();
    }
  }
}

bool JsonlParser::parse_line(std::string_view line, JsonlLines& lines) const {
  if (line.size() > limits_.line_bytes) {
    lines.bad.push_back(line_too_long(limits_.line_bytes));
    return false;
  }
  // The JSON library takes a zero byte for the end.
  if (const std::size_t zero = line.find('\0'); zero != std::string_view::npos) {
    lines.bad.push_back({.column = zero + 1,
                         .error = {.kind = ErrorKind::kBadData,
                                   .what = "the line is not valid JSON",
                                   .got = "a zero byte",
                                   .expected = "one JSON object a line",
                                   .fix = std::string(kFixLine)}});
    return false;
  }
  lines.line_keys.clear();
  JsonlEvents::Text text{.line = line, .seen = line.data()};
  JsonlEvents events(text, limits_, lines);
  const TrackedByte begin{.at = line.data(), .text = &text};
  const TrackedByte end{.at = line.data() + line.size(), .text = &text};
  if (!nlohmann::json::sax_parse(begin, end, &events)) return false;
  return events.finish();
}

}  // namespace gossamer::data
