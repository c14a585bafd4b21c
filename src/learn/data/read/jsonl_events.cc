// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/jsonl_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "json/read_json.h"
#include "learn/data/utf8.h"

namespace gossamer::data {

bool JsonlEvents::go(Place place) {
  place_ = place;
  previous_end_ = text_.seen;
  return true;
}

// The library reads one byte past a number to see its end.
void JsonlEvents::end_of_number() {
  previous_end_ = text_.seen;
  if (previous_end_ > text_.line.data() && std::strchr("0123456789.eE+-", previous_end_[-1]) == nullptr) {
    --previous_end_;
  }
}

const char* JsonlEvents::token_begin() const {
  const char* at = previous_end_;
  const char* const end = text_.line.data() + text_.line.size();
  while (at < end && std::strchr(" \t\r,:", *at) != nullptr) ++at;
  return at;
}

bool JsonlEvents::fail(std::string_view what, std::string got, std::string expected) {
  lines_.bad.push_back({.column = static_cast<std::size_t>(token_begin() - text_.line.data()) + 1,
                        .error = {.kind = ErrorKind::kBadData,
                                  .what = std::string(what),
                                  .got = std::move(got),
                                  .expected = std::move(expected),
                                  .fix = std::string(kFixLine)}});
  return false;
}

std::string JsonlEvents::expected_here() const {
  switch (place_) {
    case Place::kStart: return "an object: {\"text\": ..., \"labels\": [...]}";
    case Place::kText:
    case Place::kContext: return "a string";
    case Place::kLabels: return "a list of strings or of non-negative integers";
    case Place::kLabelList: return "a string or a non-negative integer";
    case Place::kFeatures: return "an object {NAME: VALUE, ...} or a list [[INDEX, VALUE], ...]";
    case Place::kPairs: return "a pair [INDEX, VALUE]";
    case Place::kPairIndex: return "an integer in " + range_below(limits_.features);
    case Place::kPairEnd: return "a pair [INDEX, VALUE], nothing more";
    default: return "a finite number";
  }
}

bool JsonlEvents::fail_here(std::string_view got) {
  std::string_view what = "the line is not a record";
  switch (place_) {
    case Place::kText: what = "cannot use \"text\""; break;
    case Place::kContext: what = "cannot use \"context\""; break;
    case Place::kLabels: what = "cannot use \"labels\""; break;
    case Place::kLabelList: what = "cannot use a label"; break;
    case Place::kFeatures: what = "cannot use \"features\""; break;
    case Place::kPairs:
    case Place::kPairEnd: what = "cannot use a feature"; break;
    case Place::kPairIndex: what = "cannot use a feature index"; break;
    case Place::kNamedValue:
    case Place::kPairValue: what = "cannot use a feature value"; break;
    default: break;
  }
  return fail(what, std::string(got), expected_here());
}

bool JsonlEvents::scalar_in_other() { return go(other_depth_ == 0 ? Place::kObject : Place::kOther); }

bool JsonlEvents::other_value(std::string_view text) {
  return place_ == Place::kOther ? scalar_in_other() : fail_here(text);
}

bool JsonlEvents::number(double value, std::string_view digits) {
  if (place_ == Place::kOther) {
    scalar_in_other();
  } else if (place_ == Place::kNamedValue || place_ == Place::kPairValue) {
    const auto narrow = static_cast<float>(value);
    if (!std::isfinite(narrow)) return fail_here(quote(digits));
    lines_.value.push_back(narrow);
    place_ = place_ == Place::kNamedValue ? Place::kNames : Place::kPairEnd;
  } else {
    return fail_here(quote(digits));
  }
  end_of_number();
  return true;
}

bool JsonlEvents::number_integer(std::int64_t value) {
  return number(static_cast<double>(value), fmt::format("{}", value));
}

bool JsonlEvents::number_float(double value, const std::string& digits) { return number(value, digits); }

bool JsonlEvents::number_unsigned(std::uint64_t value) {
  if (place_ == Place::kLabels || place_ == Place::kLabelList) return label_number(value);
  if (place_ != Place::kPairIndex) {
    if (place_ == Place::kNamedValue || place_ == Place::kPairValue || place_ == Place::kOther) {
      return number(static_cast<double>(value), {});
    }
    return fail_here(fmt::format("{}", value));
  }
  if (value >= limits_.features) return fail_here(fmt::format("{}", value));
  lines_.index.push_back(static_cast<std::uint32_t>(value));
  place_ = Place::kPairValue;
  end_of_number();
  return true;
}

bool JsonlEvents::label_number(std::uint64_t value) {
  if (lines_.label_name.size() > lines_.last_ends().label_name) {
    return fail("a record mixes label names and label numbers", fmt::format("{}", value), "a string");
  }
  if (value >= limits_.labels) {
    return fail("a label is out of range", fmt::format("{}", value), range_below(limits_.labels));
  }
  lines_.label_number.push_back(static_cast<std::uint32_t>(value));
  if (place_ == Place::kLabels) place_ = Place::kObject;
  end_of_number();
  return true;
}

bool JsonlEvents::string(std::string& text) {
  switch (place_) {
    case Place::kOther: return scalar_in_other();
    case Place::kText: row_.text = lines_.keep(text); return go(Place::kObject);
    case Place::kContext: row_.context = lines_.keep(text); return go(Place::kObject);
    case Place::kLabels:
    case Place::kLabelList:
      if (lines_.label_number.size() > lines_.last_ends().label_number) {
        return fail("a record mixes label names and label numbers", quote(text), "a non-negative integer");
      }
      if (text.empty()) return fail("a label has no name", "''", "at least one character");
      lines_.label_name.push_back(lines_.keep(text));
      return go(place_ == Place::kLabels ? Place::kObject : Place::kLabelList);
    default: return fail_here(quote(text));
  }
}

// Values within unknown keys are passed over, but other readers of the line might keep them.
bool JsonlEvents::deeper() {
  constexpr std::size_t kRecord = 1;  // the record is a level itself
  if (++other_depth_ + kRecord <= kMostJsonLevels) return go(Place::kOther);
  return fail("JSON that is nested too deeply", "more levels",
              fmt::format("at most {} levels", kMostJsonLevels));
}

bool JsonlEvents::start_object(std::size_t /*elements*/) {
  switch (place_) {
    case Place::kStart: return go(Place::kObject);
    case Place::kFeatures: row_.kind = JsonlRecord::Kind::kNamedFeatures; return go(Place::kNames);
    case Place::kOther: return deeper();
    default: return fail_here("an object");
  }
}

void JsonlEvents::note_other(const std::string& name) {
  constexpr std::size_t kEnough = 256;
  const std::string_view key = std::string_view(name).substr(0, kEnough);
  if (lines_.line_keys.size() < ReadReport::kMaxKeys) lines_.line_keys.emplace_back(key);
  auto& all = lines_.other_keys;
  if (all.size() < ReadReport::kMaxKeys && std::ranges::find(all, key) == all.end()) all.emplace_back(key);
}

bool JsonlEvents::key(std::string& name) {
  if (place_ == Place::kOther) return go(Place::kOther);
  if (place_ == Place::kNames) {
    lines_.name.push_back(lines_.keep(name));
    return go(Place::kNamedValue);
  }
  bool* seen = name == "text"       ? &has_text_
               : name == "context"  ? &has_context_
               : name == "features" ? &has_features_
               : name == "labels"   ? &has_labels_
                                    : nullptr;
  if (seen == nullptr) {
    note_other(name);
    return go(Place::kOther);
  }
  if (*seen) return fail("a key stands twice in one record", quote(name), "each key once");
  *seen = true;
  if (has_text_ && has_features_) {
    return fail("a record has both \"text\" and \"features\"", quote(name), "one of them");
  }
  return go(seen == &has_text_       ? Place::kText
            : seen == &has_context_  ? Place::kContext
            : seen == &has_features_ ? Place::kFeatures
                                     : Place::kLabels);
}

bool JsonlEvents::end_object() {
  if (place_ == Place::kOther) {
    --other_depth_;
    return scalar_in_other();
  }
  return go(place_ == Place::kNames ? Place::kObject : Place::kDone);
}

bool JsonlEvents::start_array(std::size_t /*elements*/) {
  switch (place_) {
    case Place::kLabels: return go(Place::kLabelList);
    case Place::kFeatures: row_.kind = JsonlRecord::Kind::kFeatures; return go(Place::kPairs);
    case Place::kPairs: return go(Place::kPairIndex);
    case Place::kOther: return deeper();
    default: return fail_here("a list");
  }
}

bool JsonlEvents::end_array() {
  switch (place_) {
    case Place::kOther: --other_depth_; return scalar_in_other();
    case Place::kLabelList:
    case Place::kPairs: return go(Place::kObject);
    case Place::kPairEnd: return go(Place::kPairs);
    default: return fail_here("the end of a list");
  }
}

namespace {

// The last escape of a half of a surrogate pair, such as \\ud800; empty where there is none.
std::string_view lone_surrogate(std::string_view read) {
  constexpr std::size_t kEscape = 6;
  for (std::size_t at = read.rfind('\\'); at != std::string_view::npos; at = read.rfind('\\', at - 1)) {
    const std::string_view escape = read.substr(at, kEscape);
    constexpr std::string_view kHalves = "89abcdefABCDEF";  // \uD800 to \uDFFF
    if (escape.size() == kEscape && (escape.starts_with("\\ud") || escape.starts_with("\\uD")) &&
        kHalves.find(escape[3]) != std::string_view::npos)
      return escape;
    if (at == 0) break;
  }
  return {};
}

}  // namespace

bool JsonlEvents::parse_error(std::size_t position, const std::string& token, const Json::exception& error) {
  // The library says how many bytes it has read: the last of them is the wrong one.
  const std::size_t read = std::clamp<std::size_t>(position, 1, text_.line.size() + 1);
  const bool is_encoding = std::strstr(error.what(), "ill-formed UTF-8") != nullptr;
  const bool is_overflow = std::strstr(error.what(), "number overflow") != nullptr;
  const bool is_end =
      std::strstr(error.what(), "unexpected end of input") != nullptr || read > text_.line.size();
  const std::string_view surrogate = std::strstr(error.what(), "surrogate") != nullptr
                                         ? lone_surrogate(text_.line.substr(0, read))
                                         : std::string_view();
  BadLine bad{.column = read, .error = {.kind = ErrorKind::kBadData, .fix = std::string(kFixLine)}};
  if (is_end) {
    bad.column = text_.line.size() + 1;
    bad.error.what = "the line is not valid JSON";
    bad.error.got = "the end of the line";
    bad.error.expected = "one JSON object a line";
  } else if (is_encoding) {
    // The byte that the library stops at may be a good one behind the first ones of a character.
    const std::size_t at = std::min(utf8_prefix(text_.line), read - 1);
    bad.column = at + 1;
    bad.error.what = "the text is not UTF-8";
    bad.error.got = quote(text_.line.substr(at, 1));
    bad.error.expected = "UTF-8";
  } else if (!surrogate.empty()) {
    bad.column = static_cast<std::size_t>(surrogate.data() - text_.line.data()) + 1;
    bad.error.what = "half of a surrogate pair is no character";
    bad.error.got = fmt::format("'{}' alone", surrogate);
    bad.error.expected = R"(both halves, such as '\ud83d\ude00', or the character itself)";
  } else if (is_overflow) {
    bad.column = read - std::min(read - 1, token.size() - 1);
    bad.error.what = "a number is out of range";
    bad.error.got = quote(token);
    bad.error.expected = "a finite number";
  } else {
    bad.error.what = "the line is not valid JSON";
    bad.error.got = quote(text_.line.substr(read - 1, 12));
    bad.error.expected = "one JSON object a line";
  }
  lines_.bad.push_back(std::move(bad));
  return false;
}

bool JsonlEvents::finish() {
  previous_end_ = text_.line.data();
  if (!has_text_ && !has_features_) {
    std::string keys = quoted_list(lines_.line_keys);
    if (has_labels_) keys = keys.empty() ? "'labels'" : "'labels', " + keys;
    return fail("a record has neither \"text\" nor \"features\"",
                keys.empty() ? "no key" : "the keys " + keys, "one of them");
  }
  if (has_context_ && !has_text_) {
    return fail("a record has \"context\" without \"text\"", "\"features\" and \"context\"",
                "\"context\" beside \"text\" alone");
  }
  if (row_.kind == JsonlRecord::Kind::kFeatures && !sort_pairs()) return false;
  if (row_.kind == JsonlRecord::Kind::kNamedFeatures && !check_names()) return false;
  auto& labels = lines_.label_number;
  const auto first = labels.begin() + static_cast<std::ptrdiff_t>(lines_.last_ends().label_number);
  std::sort(first, labels.end());
  labels.erase(std::unique(first, labels.end()), labels.end());
  row_.has_labels = has_labels_;
  row_.ends = lines_.ends();
  lines_.rows.push_back(row_);
  return true;
}

bool JsonlEvents::sort_pairs() {
  const JsonlLines::Ends begin = lines_.last_ends();
  auto& pairs = lines_.pairs;
  pairs.clear();
  for (std::size_t i = 0; begin.index + i < lines_.index.size(); ++i) {
    pairs.emplace_back(lines_.index[begin.index + i], lines_.value[begin.value + i]);
  }
  std::sort(pairs.begin(), pairs.end());
  const auto twice = std::adjacent_find(pairs.begin(), pairs.end(),
                                        [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != pairs.end()) {
    return fail("a feature index stands twice in one record", fmt::format("{} again", twice->first),
                "each index once");
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    lines_.index[begin.index + i] = pairs[i].first;
    lines_.value[begin.value + i] = pairs[i].second;
  }
  return true;
}

bool JsonlEvents::check_names() {
  auto& names = lines_.names;
  names.clear();
  for (std::size_t i = lines_.last_ends().name; i < lines_.name.size(); ++i) {
    names.push_back(lines_.view(lines_.name[i]));
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return true;
  return fail("a feature name stands twice in one record", quote(*twice) + " again", "each name once");
}

}  // namespace gossamer::data
