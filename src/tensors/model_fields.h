// SPDX-License-Identifier: Apache-2.0
//
// model.json of any engine (docs/protocols/model.md): what all of them have in it, and a reader of typed
// fields for what each engine has beside. No tensor is read here.
//
//   const auto json = read_model_json(path, text, {.engine = "lm", .oldest_format = 1, .newest_format = 1});
//   if (!json.ok()) return json.error();
//   ModelFields fields(path, *json);
//   header.steps = fields.count("steps");
//   if (fields.error()) return *fields.error();
//
// Errors: kBadData with the path and the field; kRefused for another format. Thread rule: pure functions; one
// owner for a ModelFields.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensors/model_directory.h"

namespace gossamer::tensors {

// Errors of one wording for all engines. `path`: of model.json, of a shard, or of the directory.
[[nodiscard]] Error bad_field(const std::string& path, const std::string& field, std::string got,
                              std::string expected);
[[nodiscard]] Error bad_tensor(const std::string& path, std::string_view tensor, std::string got,
                               std::string expected);

// Reads typed fields of an object and remembers the first that is missing or wrong. Later reads then give
// their least value. The path and the object outlive it.
class ModelFields {
 public:
  // `prefix` stands before the names of fields in messages: "fusion."
  ModelFields(const std::string& path, const nlohmann::json& object, std::string prefix = "");

  struct Bounds {
    std::uint64_t least = 0;
    std::uint64_t most = std::uint64_t{1} << 62;
  };
  std::uint64_t count(const char* key, Bounds bounds);
  std::uint64_t count(const char* key) { return count(key, Bounds{}); }
  // At most 1e30, of either sign.
  float number(const char* key);
  double wide_number(const char* key);
  bool flag(const char* key);
  // 0 or false if absent, as in files older than the field.
  float number_if_present(const char* key);
  bool flag_if_present(const char* key);
  std::string text(const char* key);
  // 16 hex digits.
  std::uint64_t hash(const char* key);
  // The position of one of the words.
  std::size_t choice(const char* key, std::span<const std::string_view> words);
  // Any value; null for a field that is not there.
  [[nodiscard]] nlohmann::json any(const char* key) const;

  // Remembers this field as wrong, unless there is an earlier one.
  void fail(const std::string& key, std::string got, std::string expected);
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  template <class T>
  T any_number(const char* key);

  const std::string& path_;
  const nlohmann::json& object_;
  std::string prefix_;
  std::optional<Error> error_;
};

// The engine and the formats of the models that a reader knows.
struct KnownModels {
  std::string_view engine;
  std::uint64_t oldest_format;
  std::uint64_t newest_format;
};
// The object of model.json, whose fields `format` and `engine` are right. A model of another engine is named
// as such, whatever its format.
[[nodiscard]] Result<nlohmann::json> read_model_json(const std::string& path, std::string_view text,
                                                     const KnownModels& known);
// Its field `shards`: at least one, with the names that the format prescribes.
[[nodiscard]] Result<std::vector<ShardEntry>> read_model_shards(const std::string& path,
                                                                const nlohmann::json& header);

struct ModelHeading {
  std::string_view engine;
  std::uint64_t format;
};
// The text of model.json: the engine's own fields, an object, and those that every engine has.
[[nodiscard]] std::string format_model_json(const ModelHeading& heading, nlohmann::json fields,
                                            const WrittenShards& files);

}  // namespace gossamer::tensors
