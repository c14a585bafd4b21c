// SPDX-License-Identifier: Apache-2.0
#include "commands/records/queries.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

#include "commands/records/feature_kind.h"
#include "commands/records/other_formats.h"
#include "commands/records/record_formats.h"
#include "json/read_json.h"
#include "learn/data/read/byte_source.h"
#include "learn/data/read/session_reader.h"

namespace gossamer::commands {
namespace {

Error bad(const std::string& place, std::size_t column, std::string_view got) {
  return {.kind = ErrorKind::kBadData,
          .where = fmt::format("{}:{}", place, column + 1),
          .what = "cannot read a feature of the query",
          .got = fmt::format("'{}'", got.substr(0, 40)),
          .expected = "INDEX:VALUE pairs such as '3:0.5 17:1.2', each index once",
          .fix = "mend the query"};
}

Error json_array(const std::string& place) {
  return {.kind = ErrorKind::kBadData,
          .where = place,
          .what = "the query is a JSON array",
          .got = "'['",
          .expected = "one query a line, such as a JSON object",
          .fix = "write an element a line: jq -c '.[]' OLD.json > NEW.jsonl"};
}

// Its letters would be words that no model knows.
Error other_encoding(const std::string& place, std::string_view utf16) {
  return {.kind = ErrorKind::kBadData,
          .where = place,
          .what = "the query is UTF-16 text",
          .got = std::string(utf16),
          .expected = "UTF-8",
          .fix = fmt::format("convert it: iconv -f {} -t utf-8 OLD > NEW", utf16)};
}

Error packed(const std::string& place, std::string_view kind, std::string_view unpack) {
  return {.kind = ErrorKind::kBadData,
          .where = place,
          .what = fmt::format("the query is {} data", kind),
          .got = std::string(kind),
          .expected = "one query a line, unpacked",
          .fix = fmt::format("unpack it: {} FILE | gossamer predict DIR", unpack)};
}

FeatureKind kind_of(const data::JsonlRecord& record) {
  switch (record.kind) {
    case data::JsonlRecord::Kind::kText: return FeatureKind::kText;
    case data::JsonlRecord::Kind::kNamedFeatures: return FeatureKind::kNames;
    case data::JsonlRecord::Kind::kFeatures: break;
  }
  return FeatureKind::kNumbers;
}

// One token "17:1.2".
bool parse_pair(std::string_view token, std::pair<std::uint32_t, float>& out) {
  const std::size_t colon = token.find(':');
  if (colon == std::string_view::npos) return false;
  const char* middle = token.data() + colon;
  const char* end = token.data() + token.size();
  const auto index = std::from_chars(token.data(), middle, out.first);
  const auto value = std::from_chars(middle + 1, end, out.second);
  return index.ec == std::errc() && index.ptr == middle && value.ec == std::errc() && value.ptr == end &&
         std::isfinite(out.second);
}

}  // namespace

bool says_nothing(const data::SparseRow& row) {
  return std::ranges::all_of(row.value, [](float value) { return value == 0; });
}

std::uint64_t QueryBlock::add(const data::SparseRow& row, std::uint32_t features) {
  const auto known =
      static_cast<std::size_t>(std::ranges::lower_bound(row.index, features) - row.index.begin());
  index_.insert(index_.end(), row.index.begin(), row.index.begin() + static_cast<std::ptrdiff_t>(known));
  value_.insert(value_.end(), row.value.begin(), row.value.begin() + static_cast<std::ptrdiff_t>(known));
  begin_.push_back(static_cast<std::uint32_t>(index_.size()));
  return row.index.size() - known;
}

void QueryBlock::clear() {
  begin_.assign(1, 0);
  index_.clear();
  value_.clear();
}

QueryParser::QueryParser(const sparse_engine::Model& model) : model_(model) {
  if (model.featurizer.has_value()) featurizer_.emplace(*model.featurizer);
  if (model.line.has_value()) bag_.emplace(*model.line);
  names_.reserve(model.feature_names.size());
  for (std::size_t i = 0; i < model.feature_names.size(); ++i) {
    names_.emplace(model.feature_names[i], static_cast<std::uint32_t>(i));
  }
}

Result<void> QueryParser::add(std::string_view line, const std::string& place, QueryBlock& block) {
  unknown_of_last_ = 0;
  ignored_of_last_.clear();
  const std::uint64_t names_before = unknown_.unknown;
  auto done = add_any(line, place, block);
  unknown_of_last_ += unknown_.unknown - names_before;
  return done;
}

Result<void> QueryParser::add_any(std::string_view line, const std::string& place, QueryBlock& block) {
  if (const std::string_view utf16 = utf16_name(line); !utf16.empty()) return other_encoding(place, utf16);
  if (line.starts_with("\x1f\x8b")) return packed(place, "gzip", "gzip -dc");
  if (line.starts_with("\x28\xb5\x2f\xfd")) return packed(place, "zstd", "zstd -dc");
  if (line.starts_with(data::kByteOrderMark)) line.remove_prefix(data::kByteOrderMark.size());
  const std::size_t first = line.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) {
    block.add({}, static_cast<std::uint32_t>(model_.network.shape.features));
    return {};
  }
  if (line[first] == '{') return add_json(line, place, block);
  if (line[first] == '[' && !read_json<nlohmann::json>(line).is_discarded()) return json_array(place);
  return (this->*row_of(feature_kind(model_)).query)(line, place, block);
}

Result<void> QueryParser::add_text_line(std::string_view line, const std::string& place, QueryBlock& block) {
  auto done = add_text(line, block);
  if (done.ok()) return {};
  Error error = done.error();
  if (error.where.empty()) error.where = place;
  return error;
}

Result<void> QueryParser::add_text(std::string_view text, QueryBlock& block) {
  if (!reads_text()) {
    return wrong_kind({.where = {}, .got = FeatureKind::kText, .expected = feature_kind(model_)});
  }
  auto row = featurizer_->features(text, scratch_);
  if (!row.ok()) return row.error();
  block.add(*row, static_cast<std::uint32_t>(model_.network.shape.features));
  unknown_of_last_ += scratch_.unknown_words;
  return {};
}

Result<void> QueryParser::add_record(const data::JsonlRecord& record, QueryBlock& block) {
  const FeatureKind wanted = feature_kind(model_);
  if (bag_.has_value() && record.kind == data::JsonlRecord::Kind::kText) {
    return add_items(record.text, {}, block);
  }
  const FeatureKind got = kind_of(record);
  // An empty list of features is one of any kind.
  const bool none = got != FeatureKind::kText && wanted != FeatureKind::kText && record.value.empty();
  if (got != wanted && !none) return wrong_kind({.where = {}, .got = got, .expected = wanted});
  switch (wanted) {
    case FeatureKind::kText: return add_text(record.text, block);
    case FeatureKind::kSessions:
    case FeatureKind::kWords:
    case FeatureKind::kNames: add_names(record, block); break;
    case FeatureKind::kNumbers: add_numbers({record.index, record.value}, block); break;
  }
  return {};
}

void QueryParser::add_line(std::span<const std::uint32_t> items, QueryBlock& block) {
  block.add(bag_->row(items), static_cast<std::uint32_t>(model_.network.shape.features));
}

// Leaves out names that the model does not know. The last known one weighs most.
Result<void> QueryParser::add_items(std::string_view line, const std::string& place, QueryBlock& block) {
  std::size_t column = 0;
  if (auto done = data::split_session(line, items_, &column); !done.ok()) {
    Error error = done.error();
    if (!place.empty()) error.where = fmt::format("{}:{}", place, column);
    return error;
  }
  numbers_.clear();
  for (const std::string_view item : items_) {
    if (const auto number = find_name(item); number.has_value()) numbers_.push_back(*number);
  }
  add_line(numbers_, block);
  return {};
}

std::optional<std::uint32_t> QueryParser::find_name(std::string_view name) {
  ++unknown_.of;
  if (const auto known = names_.find(name); known != names_.end()) return known->second;
  if (++unknown_.unknown == 1) unknown_.first = name;
  return std::nullopt;
}

void QueryParser::add_names(const data::JsonlRecord& record, QueryBlock& block) {
  std::vector<std::pair<std::uint32_t, float>> pairs;
  for (std::size_t i = 0; i < record.name.size(); ++i) {
    const auto number = find_name(record.name[i]);
    if (number.has_value()) pairs.emplace_back(*number, record.value[i]);
  }
  add_features(pairs, block);
}

void QueryParser::add_numbers(const data::SparseRow& row, QueryBlock& block) {
  const std::uint64_t unknown = block.add(row, static_cast<std::uint32_t>(model_.network.shape.features));
  if (unknown_.unknown == 0 && unknown > 0)
    unknown_.first = fmt::format("{}", row.index[row.index.size() - unknown]);
  unknown_.unknown += unknown;
  unknown_.of += row.index.size();
}

void QueryParser::add_features(std::vector<std::pair<std::uint32_t, float>>& pairs, QueryBlock& block) {
  std::ranges::sort(pairs);
  std::vector<std::uint32_t> index;
  std::vector<float> value;
  for (const auto& [feature, amount] : pairs) {
    index.push_back(feature);
    value.push_back(amount);
  }
  unknown_of_last_ += block.add({index, value}, static_cast<std::uint32_t>(model_.network.shape.features));
}

Result<void> QueryParser::add_json(std::string_view line, const std::string& place, QueryBlock& block) {
  // Without this the reader would take a second line for a second query.
  line = line.substr(0, line.find_last_not_of(" \t\r\n") + 1);
  if (const std::size_t end = line.find('\n'); end != std::string_view::npos) {
    return Error{.kind = ErrorKind::kBadData,
                 .where = fmt::format("{}:{}", place, end + 1),
                 .what = "the query has more than one line",
                 .got = fmt::format("{} bytes after the line end", line.size() - end - 1),
                 .expected = "one JSON object on one line",
                 .fix = "mend the query"};
  }
  const auto source = data::memory_source(place, line);
  const auto read =
      data::read_jsonl(*source, {.limits = {.chunk_bytes = 1 << 12}}, [&](const data::JsonlRecord& record) {
        if (!record.context.empty()) ignored_of_last_.emplace_back("context");
        return add_record(record, block);
      });
  if (read.ok()) {
    ignored_of_last_.insert(ignored_of_last_.end(), read->other_keys.begin(), read->other_keys.end());
    return {};
  }
  Error error = read.error();
  // The reader counts lines and offers to skip bad ones. A query is one line and is not skipped.
  if (const std::string line_one = place + ":1"; error.where.starts_with(line_one)) {
    error.where = place + error.where.substr(line_one.size());
    error.fix = "mend the query";
  }
  if (error.where.empty()) error.where = place;
  return error;
}

Result<void> QueryParser::add_pairs(std::string_view line, const std::string& place, QueryBlock& block) {
  if (const FeatureKind wanted = feature_kind(model_); wanted != FeatureKind::kNumbers) {
    const bool text = line.find(':') == std::string_view::npos;
    return wrong_kind(
        {.where = place, .got = text ? FeatureKind::kText : FeatureKind::kNumbers, .expected = wanted});
  }
  std::vector<std::pair<std::uint32_t, float>> pairs;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    const std::string_view token = line.substr(at, end - at);
    std::pair<std::uint32_t, float> pair;
    const bool labels = at == 0 && token.find_first_not_of("0123456789,") == std::string_view::npos;
    if (!labels) {
      if (!parse_pair(token, pair)) return bad(place, at, token);
      pairs.push_back(pair);
    }
    at = end;
  }
  std::ranges::sort(pairs);
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (const auto twice = std::ranges::adjacent_find(pairs, same); twice != pairs.end()) {
    return bad(place, 0, fmt::format("{}: twice", twice->first));
  }
  add_features(pairs, block);
  return {};
}

}  // namespace gossamer::commands
