// SPDX-License-Identifier: Apache-2.0
#include "commands/records/json_shapes.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>

#include "base/printable.h"
#include "base/shell_word.h"
#include "json/begins_json.h"
#include "json/read_json.h"
#include "json/top_keys.h"

namespace gossamer::commands {
namespace {

using AnyJson = nlohmann::json;

constexpr std::string_view kRecordLine = R"(a line such as {"text": "it purrs", "labels": ["cat"]})";

// The one key that holds an array of objects, in an object that is no record. Of several, none is sure.
std::optional<std::string> array_of_records(const TopKeys& keys) {
  const bool record = std::ranges::any_of(
      keys.all, [](const std::string& key) { return key == "text" || key == "features"; });
  return record || keys.arrays_of_objects.size() != 1 ? std::nullopt
                                                      : std::optional(keys.arrays_of_objects[0]);
}

// The first element of an array that begins with a bracket; nothing where it is none, or too long.
AnyJson first_array(std::string_view text) {
  constexpr int kTries = 64;
  std::size_t end = text.find(']');
  for (int i = 0; i < kTries && end != std::string_view::npos; ++i, end = text.find(']', end + 1)) {
    AnyJson value = read_json<AnyJson>(text.substr(0, end + 1));
    if (value.is_array()) return value;
  }
  return {};
}

bool is_string(const AnyJson& value) { return value.is_string(); }

bool is_labels(const AnyJson& value) {
  return value.is_string() || (value.is_array() && std::ranges::all_of(value, is_string));
}

// An array of two with a text and its labels, the text being the longer string.
std::optional<std::string> convert_pairs(const AnyJson& first, const SeenFile& file) {
  if (first.size() != 2 || !is_labels(first[0]) || !is_labels(first[1])) return std::nullopt;
  if (!is_string(first[0]) && !is_string(first[1])) return std::nullopt;
  const auto length = [&](std::size_t i) {
    return is_string(first[i]) ? first[i].get_ref<const std::string&>().size() : 0;
  };
  const std::size_t text = is_string(first[0]) && (!is_string(first[1]) || length(0) >= length(1)) ? 0 : 1;
  const std::string program = fmt::format(
      "[.[] | if length == 2 then {{text: .[{}], labels: ([.[{}]] | flatten)}} else error(\"not two "
      "elements\") "
      "end][]",
      text, 1 - text);
  return convert_words("jq -c " + shell_word(program), file) +
         check_words(fmt::format("the text is the {} of each two, such as {}", text == 0 ? "first" : "second",
                                 quote(first[text].get_ref<const std::string&>())));
}

std::string_view behind_blanks(std::string_view text) {
  return text.substr(std::min(text.size(), text.find_first_not_of(" \t\r\n")));
}

}  // namespace

JsonShape array_shape(const SeenFile& file) {
  const std::string_view inner = behind_blanks(behind_blanks(file.begin).substr(1));
  if (inner.empty() || inner.starts_with('{'))
    return {.name = "a JSON array", .fix = convert_words("jq -c '.[]'", file)};
  std::string fix = fmt::format("its elements have to be objects; write each record as {}", kRecordLine);
  if (inner.starts_with('[')) {
    if (const auto command = convert_pairs(first_array(inner), file)) fix = *command;
    return {.name = "a JSON array of arrays", .fix = std::move(fix)};
  }
  return {.name = inner.starts_with('"') ? "a JSON array of strings" : "a JSON array", .fix = std::move(fix)};
}

std::optional<std::string> unwrap_records(const SeenFile& file) {
  const auto array = array_of_records(top_keys(behind_blanks(file.begin)));
  if (!array) return std::nullopt;
  const std::string program = fmt::format(".[{}][]", AnyJson(*array).dump());
  return convert_words("jq -c " + shell_word(program), file);
}

std::optional<JsonShape> object_shape(const SeenFile& file) {
  const std::string_view text = behind_blanks(file.begin);
  const std::string_view line = text.substr(0, text.find('\n'));
  const bool alone = behind_blanks(text.substr(line.size())).empty();
  const bool is_object = read_json<AnyJson>(line).is_object();
  // A line that is cut off by the end of what is looked at may be a record, with its text behind.
  if (is_object ? !alone || !file.whole : alone || !begins_json(text, file.whole)) return std::nullopt;
  if (auto command = unwrap_records(file))
    return JsonShape{.name = "a JSON object that holds an array", .fix = *std::move(command)};
  if (is_object) return std::nullopt;
  return JsonShape{.name = "JSON with line ends within its objects", .fix = convert_words("jq -c .", file)};
}

}  // namespace gossamer::commands
