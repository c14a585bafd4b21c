// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/xmlc_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "learn/data/read/number_text.h"

namespace gossamer::data {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

const char* skip_blanks(const char* at, const char* end) {
  while (at < end && is_blank(*at)) ++at;
  return at;
}

std::string_view token_at(const char* at, const char* end) {
  return {at, static_cast<std::size_t>(std::find_if(at, end, is_blank) - at)};
}

// Notes a bad line; false, for the parsers to return.
bool note(XmlcLines& lines, std::ptrdiff_t offset, Error error) {
  error.kind = ErrorKind::kBadData;
  error.fix = kFixLine;
  lines.bad.push_back({.column = static_cast<std::size_t>(offset) + 1, .error = std::move(error)});
  return false;
}

}  // namespace

void XmlcLines::clear() {
  kind.clear();
  bad.clear();
  feature_begin.assign(1, 0);
  label_begin.assign(1, 0);
  index.clear();
  value.clear();
  label.clear();
}

Record XmlcLines::record(std::size_t i) const {
  const std::size_t begin = feature_begin[i];
  const std::size_t count = feature_begin[i + 1] - begin;
  return {.features = {std::span(index).subspan(begin, count), std::span(value).subspan(begin, count)},
          .labels = std::span(label).subspan(label_begin[i], label_begin[i + 1] - label_begin[i])};
}

void XmlcParser::parse(std::string_view text, XmlcLines& lines) const {
  lines.clear();
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end && lines.bad.size() < limits_.stop_after_bad) {
    const auto* stop = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    Cursor line{.begin = at, .at = at, .end = stop};
    at = stop + 1;
    if (line.end > line.begin && line.end[-1] == '\r') --line.end;
    if (line.begin == line.end) {
      lines.kind.push_back(LineKind::kBlank);
    } else if (parse_line(line, lines)) {
      lines.kind.push_back(LineKind::kRecord);
      lines.feature_begin.push_back(lines.index.size());
      lines.label_begin.push_back(lines.label.size());
    } else {
      lines.kind.push_back(LineKind::kBad);
      lines.index.resize(lines.feature_begin.back());
      lines.value.resize(lines.feature_begin.back());
      lines.label.resize(lines.label_begin.back());
    }
  }
}

bool XmlcParser::parse_line(Cursor line, XmlcLines& lines) const {
  if (static_cast<std::size_t>(line.end - line.begin) > limits_.line_bytes) {
    lines.bad.push_back(line_too_long(limits_.line_bytes));
    return false;
  }
  return parse_labels(line, lines) && parse_features(line, lines);
}

bool XmlcParser::parse_labels(Cursor& line, XmlcLines& lines) const {
  if (is_blank(*line.at)) return true;
  for (;;) {
    std::uint64_t number = 0;
    const char* behind = read_unsigned(line.at, number);
    if (behind == line.at || number >= bounds_.labels) return explain_label(line, lines);
    if (behind != line.end && *behind != ',' && !is_blank(*behind)) return explain_label(line, lines);
    lines.label.push_back(static_cast<std::uint32_t>(number));
    line.at = behind;
    if (behind == line.end || *behind != ',') break;
    ++line.at;
  }
  const auto first = lines.label.begin() + static_cast<std::ptrdiff_t>(lines.label_begin.back());
  if (!std::is_sorted(first, lines.label.end(), std::less_equal<>())) std::sort(first, lines.label.end());
  lines.label.erase(std::unique(first, lines.label.end()), lines.label.end());
  return true;
}

bool XmlcParser::parse_features(Cursor& line, XmlcLines& lines) const {
  bool increasing = true;
  std::uint64_t previous = 0;
  const std::size_t begin = lines.index.size();
  for (line.at = skip_blanks(line.at, line.end); line.at < line.end;) {
    std::uint64_t number = 0;
    const char* colon = read_unsigned(line.at, number);
    if (colon == line.at || *colon != ':' || number >= bounds_.features) return explain_feature(line, lines);
    float value = 0;
    const char* behind = read_float(colon + 1, line.end, value);
    if (behind == nullptr || (behind != line.end && !is_blank(*behind))) return explain_feature(line, lines);
    if (number <= previous && lines.index.size() > begin) increasing = false;
    previous = number;
    lines.index.push_back(static_cast<std::uint32_t>(number));
    lines.value.push_back(value);
    line.at = skip_blanks(behind, line.end);
  }
  return increasing || sort_features(line, lines);
}

bool XmlcParser::sort_features(const Cursor& line, XmlcLines& lines) const {
  const std::size_t begin = lines.feature_begin.back();
  const std::size_t count = lines.index.size() - begin;
  lines.order.clear();
  for (std::size_t i = 0; i < count; ++i) lines.order.emplace_back(lines.index[begin + i], i);
  std::sort(lines.order.begin(), lines.order.end());
  const auto twice = std::adjacent_find(lines.order.begin(), lines.order.end(),
                                        [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != lines.order.end()) {
    // The column of the second mention: the labels, then as many features, precede it.
    const char* at = is_blank(*line.begin) ? line.begin : std::find_if(line.begin, line.end, is_blank);
    at = skip_blanks(at, line.end);
    for (std::size_t i = 0; i < (twice + 1)->second; ++i) {
      at = skip_blanks(std::find_if(at, line.end, is_blank), line.end);
    }
    return note(lines, at - line.begin,
                {.what = "a feature index stands twice in one record",
                 .got = fmt::format("{} again", twice->first),
                 .expected = "each index once"});
  }
  lines.sorted.clear();
  for (const auto& [index, position] : lines.order) lines.sorted.push_back(lines.value[begin + position]);
  for (std::size_t i = 0; i < count; ++i) {
    lines.index[begin + i] = lines.order[i].first;
    lines.value[begin + i] = lines.sorted[i];
  }
  return true;
}

bool XmlcParser::explain_label(const Cursor& line, XmlcLines& lines) const {
  std::string_view token = token_at(line.at, line.end);
  token = token.substr(0, token.find(','));
  if (token.find(':') != std::string_view::npos) {
    return note(lines, line.at - line.begin,
                {.what = "cannot read the labels",
                 .got = quote(token),
                 .expected = "LABEL,LABEL,... first, or a space where there is no label"});
  }
  const bool is_number = !token.empty() && token.find_first_not_of("0123456789") == std::string_view::npos;
  return note(lines, line.at - line.begin,
              {.what = is_number ? "a label is out of range" : "cannot read a label",
               .got = quote(token),
               .expected = (is_number ? "" : "an integer in ") + range_below(bounds_.labels)});
}

bool XmlcParser::explain_feature(const Cursor& line, XmlcLines& lines) const {
  const std::string_view token = token_at(line.at, line.end);
  const std::ptrdiff_t offset = line.at - line.begin;
  const std::size_t colon = token.find(':');
  if (colon == std::string_view::npos) {
    return note(lines, offset,
                {.what = "cannot read a feature", .got = quote(token), .expected = "INDEX:VALUE"});
  }
  const std::string_view index = token.substr(0, colon);
  std::uint64_t number = 0;
  const char* behind = read_unsigned(index.data(), number);
  if (index.empty() || behind != index.data() + index.size()) {
    return note(lines, offset,
                {.what = "cannot read a feature index",
                 .got = quote(index),
                 .expected = "an integer in " + range_below(bounds_.features)});
  }
  if (number >= bounds_.features) {
    return note(lines, offset,
                {.what = "a feature index is out of range",
                 .got = quote(index),
                 .expected = range_below(bounds_.features)});
  }
  return note(lines, offset + static_cast<std::ptrdiff_t>(colon) + 1,
              {.what = "cannot read a feature value",
               .got = quote(token.substr(colon + 1)),
               .expected = "a finite decimal number"});
}

}  // namespace gossamer::data
