// SPDX-License-Identifier: Apache-2.0
//
// JsonlEvents: takes the JSON library's events for one line. From them it builds one row of JsonlLines, or
// the reason why it cannot. Private to learn/data. Thread rule: one owner, one line.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "learn/data/read/jsonl_lines.h"

namespace gossamer::data {

class JsonlEvents {
 public:
  // `seen` is kept up to date with the first byte that the JSON library has not read.
  struct Text {
    std::string_view line;
    const char* seen;
  };
  JsonlEvents(Text& text, const ReadLimits& limits, JsonlLines& lines)
      : text_(text), previous_end_(text.line.data()), limits_(limits), lines_(lines) {}

  // The interface the library calls: true to go on.
  using Json = nlohmann::json;
  bool null() { return other_value("null"); }
  bool boolean(bool value) { return other_value(value ? "true" : "false"); }
  bool number_integer(std::int64_t number);
  bool number_unsigned(std::uint64_t number);
  bool number_float(double number, const std::string& digits);
  bool string(std::string& text);
  bool binary(Json::binary_t& /*bytes*/) { return false; }  // never in text
  bool start_object(std::size_t /*elements*/);
  bool key(std::string& name);
  bool end_object();
  bool start_array(std::size_t /*elements*/);
  bool end_array();
  bool parse_error(std::size_t position, const std::string& token, const Json::exception& error);

  // After the last event of a valid line: checks the whole and appends the row.
  [[nodiscard]] bool finish();

 private:
  // The place that the next event belongs to.
  enum class Place {
    kStart,       // nothing yet
    kObject,      // the record: a key or its end
    kText,        // the value of "text"
    kContext,     // the value of "context"
    kLabels,      // the value of "labels"
    kLabelList,   // an element of the list of labels
    kFeatures,    // the value of "features"
    kNames,       // a key of the object of features, or its end
    kNamedValue,  // the value of such a key
    kPairs,       // an element of the list of pairs, or its end
    kPairIndex,
    kPairValue,
    kPairEnd,
    kOther,  // within the value of an unknown key
    kDone,
  };

  bool go(Place place);
  bool deeper();
  bool scalar_in_other();
  bool other_value(std::string_view text);
  bool number(double value, std::string_view digits);
  bool label_number(std::uint64_t number);
  bool fail(std::string_view what, std::string got, std::string expected);
  bool fail_here(std::string_view got);
  void note_other(const std::string& name);
  [[nodiscard]] std::string expected_here() const;
  [[nodiscard]] const char* token_begin() const;
  void end_of_number();
  bool sort_pairs();
  bool check_names();

  Text& text_;
  const char* previous_end_;  // of the token before
  const ReadLimits& limits_;
  JsonlLines& lines_;
  Place place_ = Place::kStart;
  std::size_t other_depth_ = 0;
  bool has_text_ = false;
  bool has_context_ = false;
  bool has_features_ = false;
  bool has_labels_ = false;
  JsonlLines::Row row_;
};

}  // namespace gossamer::data
