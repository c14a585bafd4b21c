// SPDX-License-Identifier: Apache-2.0
#include "tensors/model_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/printable.h"
#include "json/read_json.h"

namespace gossamer::tensors {
namespace {

using Json = nlohmann::json;

constexpr const char* kRestoreModel = "restore the model directory from its origin or train again";

std::string short_json(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 100);
}

std::string what_stands_there(const Json& value) {
  if (value.is_null()) return "nothing";
  if (value.is_structured()) return value.type_name();
  return short_json(value);
}

Error no_model_json(const std::string& path, std::string_view text) {
  const std::string why = why_no_json(text);
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "the file describes no model",
          .got = why.empty() ? "JSON that is no object" : why,
          .expected = "a JSON object with the fields of docs/protocols/model.md",
          .fix = kRestoreModel};
}

bool is_known_format(const Json& format, const KnownModels& known) {
  for (std::uint64_t number = known.oldest_format; number <= known.newest_format; ++number) {
    if (format == Json(number)) return true;
  }
  return false;
}

Error another_format(const std::string& path, const Json& format, const KnownModels& known) {
  std::string expected = fmt::format("format {}", known.oldest_format);
  if (known.newest_format > known.oldest_format) expected += fmt::format(" or {}", known.newest_format);
  return {.kind = ErrorKind::kRefused,
          .where = path,
          .what = "a model of another format",
          .got = short_json(format),
          .expected = std::move(expected),
          .fix = "use the version of gossamer that wrote it, or train again"};
}

Error another_engine(const std::string& path, const std::string& engine, const KnownModels& known) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "a model of another engine",
          .got = fmt::format("engine {}", quote(engine)),
          .expected = fmt::format("engine '{}'", known.engine),
          .fix = "give the directory of a model of that engine"};
}

}  // namespace

Error bad_field(const std::string& path, const std::string& field, std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = fmt::format("cannot use field {} of the model", field),
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = kRestoreModel};
}

Error bad_tensor(const std::string& path, std::string_view tensor, std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = fmt::format("cannot use tensor {} of the model", tensor),
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = kRestoreModel};
}

ModelFields::ModelFields(const std::string& path, const Json& object, std::string prefix)
    : path_(path), object_(object), prefix_(std::move(prefix)) {
  if (!object.is_object()) fail("", "no JSON object", "an object");
}

std::uint64_t ModelFields::count(const char* key, Bounds bounds) {
  const Json value = any(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() < bounds.least ||
      value.get<std::uint64_t>() > bounds.most) {
    fail(key, what_stands_there(value), fmt::format("an integer {}..{}", bounds.least, bounds.most));
    return bounds.least;
  }
  return value.get<std::uint64_t>();
}

template <class T>
T ModelFields::any_number(const char* key) {
  const Json value = any(key);
  if (!value.is_number() || !(std::abs(value.get<double>()) <= 1e30)) {
    fail(key, what_stands_there(value), "a finite number");
    return 0;
  }
  return value.get<T>();
}
float ModelFields::number(const char* key) { return any_number<float>(key); }
double ModelFields::wide_number(const char* key) { return any_number<double>(key); }

bool ModelFields::flag(const char* key) {
  const Json value = any(key);
  if (!value.is_boolean()) fail(key, what_stands_there(value), "true or false");
  return value.is_boolean() && value.get<bool>();
}

float ModelFields::number_if_present(const char* key) { return any(key).is_null() ? 0 : number(key); }
bool ModelFields::flag_if_present(const char* key) { return !any(key).is_null() && flag(key); }

std::string ModelFields::text(const char* key) {
  const Json value = any(key);
  if (!value.is_string()) {
    fail(key, what_stands_there(value), "a string");
    return {};
  }
  return value.get<std::string>();
}

std::uint64_t ModelFields::hash(const char* key) {
  const std::string digits = text(key);
  std::uint64_t value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.size() != 16 || status != std::errc() || end != digits.data() + digits.size()) {
    fail(key, digits, "16 hex digits");
  }
  return value;
}

std::size_t ModelFields::choice(const char* key, std::span<const std::string_view> words) {
  const std::string word = text(key);
  const auto known = std::find(words.begin(), words.end(), word);
  if (known != words.end()) return static_cast<std::size_t>(known - words.begin());
  fail(key, word, fmt::format("{}", fmt::join(words, ", ")));
  return 0;
}

Json ModelFields::any(const char* key) const {
  const auto found = object_.is_object() ? object_.find(key) : object_.end();
  return found == object_.end() ? Json() : *found;
}

void ModelFields::fail(const std::string& key, std::string got, std::string expected) {
  if (!error_) error_ = bad_field(path_, prefix_ + key, std::move(got), std::move(expected));
}

Result<Json> read_model_json(const std::string& path, std::string_view text, const KnownModels& known) {
  Json json = read_json<Json>(text);
  if (!json.is_object()) return no_model_json(path, text);
  if (const auto engine = json.find("engine");
      engine != json.end() && engine->is_string() && engine->get<std::string>() != known.engine)
    return another_engine(path, engine->get<std::string>(), known);
  if (json.contains("format") && !is_known_format(json["format"], known))
    return another_format(path, json["format"], known);
  ModelFields fields(path, json);
  fields.count("format", {known.oldest_format, known.newest_format});
  (void)fields.text("engine");
  if (fields.error()) return *fields.error();
  return json;
}

Result<std::vector<ShardEntry>> read_model_shards(const std::string& path, const Json& header) {
  const auto found = header.find("shards");
  if (found == header.end() || !found->is_array() || found->empty())
    return bad_field(path, "shards", "no list", "a list of at least one shard");
  const Json& json = *found;
  std::vector<ShardEntry> shards;
  for (std::size_t i = 0; i < json.size(); ++i) {
    ModelFields fields(path, json[i], fmt::format("shards[{}].", i));
    shards.push_back(
        {.file = fields.text("file"), .bytes = fields.count("bytes"), .xxh3 = fields.hash("xxh3")});
    // The name is prescribed, so that the file cannot choose a path.
    if (const std::string expected = shard_name(i, json.size()); shards.back().file != expected) {
      fields.fail("file", shards.back().file, expected);
    }
    if (fields.error()) return *fields.error();
  }
  return shards;
}

std::string format_model_json(const ModelHeading& heading, Json fields, const WrittenShards& files) {
  fields["format"] = heading.format;
  fields["engine"] = heading.engine;
  Json shards = Json::array();
  for (const ShardEntry& shard : files.shards) {
    shards.push_back(
        {{"file", shard.file}, {"bytes", shard.bytes}, {"xxh3", fmt::format("{:016x}", shard.xxh3)}});
  }
  fields["shards"] = std::move(shards);
  fields["metadata"] = {{"total_size", files.total_size}};
  fields["weight_map"] = files.weight_map;
  return fields.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gossamer::tensors
