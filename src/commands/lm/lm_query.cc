// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_query.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "json/read_json.h"
#include "learn/data/read/byte_source.h"
#include "learn/text/words.h"

namespace gossamer::commands {
namespace {

using QueryJson = nlohmann::ordered_json;

Error bad_query(const std::string& place, std::string what, std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .where = place,
          .what = std::move(what),
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "mend the query"};
}

// The value of one key of a query.
struct QueryValue {
  const std::string& place;
  const std::string& key;
  const QueryJson& json;
};

Error bad_value(const QueryValue& value, std::string expected) {
  const std::string got = value.json.dump(-1, ' ', false, QueryJson::error_handler_t::replace);
  return bad_query(value.place, fmt::format("cannot use the value of \"{}\"", value.key), quote(got),
                   std::move(expected));
}

struct WholeRange {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
};
Result<std::uint64_t> whole_number(const QueryValue& value, const WholeRange& range) {
  if (value.json.is_number_unsigned()) {
    const auto number = value.json.get<std::uint64_t>();
    if (number >= range.least && number <= range.most) return number;
  }
  return bad_value(value, fmt::format("a whole number in {}..{}", range.least, range.most));
}

// Fills one of the numbers of a query.
template <class Number>
Result<void> take_whole(const QueryValue& value, const WholeRange& range, std::optional<Number>& into) {
  const auto number = whole_number(value, range);
  if (!number.ok()) return number.error();
  into = static_cast<Number>(*number);
  return {};
}

Result<void> take_value(const QueryValue& value, LmQuery& query) {
  TextWanted& wanted = query.wanted;
  const QueryJson& json = value.json;
  if (value.key == "text") {
    if (!json.is_string()) return bad_value(value, "a string");
    query.prompt = json.get<std::string>();
    return {};
  }
  if (value.key == "temperature") {
    const bool good = json.is_number() && json.get<double>() >= 0 && json.get<double>() <= kMostTemperature;
    if (!good) return bad_value(value, fmt::format("a number in 0..{}", kMostTemperature));
    wanted.temperature = json.get<double>();
    return {};
  }
  if (value.key == "tokens") return take_whole(value, {.least = 1, .most = kMostNewTokens}, wanted.tokens);
  if (value.key == "seed") return take_whole(value, {.most = kMostTextSeed}, wanted.seed);
  if (value.key == "top_k")
    return take_whole(value, {.most = std::numeric_limits<std::uint32_t>::max()}, wanted.top_k);
  query.ignored.push_back(value.key);
  return {};
}

Result<LmQuery> read_object(const std::string& place, std::string_view line, const TextWanted& otherwise) {
  const auto json = read_json<QueryJson>(line);
  if (!json.is_object()) {
    Error error = bad_query(place, "cannot read the query", why_no_json(line),
                            R"(one JSON object on the line, such as {"text": "Once upon"})");
    error.fix = R"(mend the query; a prompt that begins with "{" is written as {"text": "{ ..."})";
    return error;
  }
  if (!json.contains("text"))
    return bad_query(place, "the query has no text", "an object without \"text\"",
                     R"({"text": "Once upon"})");
  LmQuery query{.prompt = {}, .wanted = otherwise};
  for (const auto& [key, value] : json.items()) {
    auto taken = take_value({.place = place, .key = key, .json = value}, query);
    if (!taken.ok()) return taken.error();
  }
  return query;
}

}  // namespace

Result<LmQuery> read_lm_query(const Query& query, const TextWanted& otherwise) {
  std::string_view line = query.text;
  if (line.starts_with(data::kByteOrderMark)) line.remove_prefix(data::kByteOrderMark.size());
  const std::size_t good = text::valid_utf8_prefix(line);
  if (good < line.size()) {
    return bad_query(query.place, fmt::format("byte {} of the query is no UTF-8", good + 1),
                     quote(line.substr(good, 4)), "text in UTF-8");
  }
  const std::size_t first = line.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && line[first] == '{') return read_object(query.place, line, otherwise);
  return LmQuery{.prompt = std::string(line), .wanted = otherwise};
}

}  // namespace gossamer::commands
