// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/model_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "json/read_json.h"

namespace gossamer::sparse_engine {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxIndex = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 62;
constexpr std::uint64_t kMaxHidden = 65536;
constexpr std::size_t kMaxDense = 64;
constexpr std::uint64_t kMaxSubword = 16;
constexpr std::array<std::string_view, 3> kActivations = {"relu", "identity", "tanh"};
constexpr std::array<std::string_view, 3> kCountScales = {"linear", "log", "double-log"};

Error bad_field(const std::string& path, const std::string& field, std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = fmt::format("cannot use field {} of the model", field),
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "restore the model directory from its origin or train again"};
}

Error no_header(const std::string& path, std::string_view text) {
  const std::string why = why_no_json(text);
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "the file describes no model",
          .got = why.empty() ? "JSON that is no object" : why,
          .expected = "a JSON object with the fields of docs/protocols/model.md",
          .fix = "restore the model directory from its origin or train again"};
}

// Reads typed fields of an object and remembers the first that is missing or wrong. Later reads then give
// their least value.
class Fields {
 public:
  Fields(const std::string& path, const Json& object, std::string prefix = "")
      : path_(path), object_(object), prefix_(std::move(prefix)) {
    if (!object.is_object()) fail("", "no JSON object", "an object");
  }

  struct Bounds {
    std::uint64_t least = 0;
    std::uint64_t most = kMaxCount;
  };
  std::uint64_t count(const char* key, Bounds bounds) {
    const Json value = get(key);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < bounds.least ||
        value.get<std::uint64_t>() > bounds.most) {
      fail(key, describe(value), fmt::format("an integer {}..{}", bounds.least, bounds.most));
      return bounds.least;
    }
    return value.get<std::uint64_t>();
  }
  float number(const char* key) {
    const Json value = get(key);
    if (!value.is_number() || !(std::abs(value.get<double>()) <= 1e30)) {
      fail(key, describe(value), "a finite number");
      return 0;
    }
    return value.get<float>();
  }
  bool flag(const char* key) {
    const Json value = get(key);
    if (!value.is_boolean()) fail(key, describe(value), "true or false");
    return value.is_boolean() && value.get<bool>();
  }
  // 0 or false if absent, as in files older than the field.
  float number_if_present(const char* key) { return get(key).is_null() ? 0 : number(key); }
  bool flag_if_present(const char* key) { return !get(key).is_null() && flag(key); }
  std::string text(const char* key) {
    const Json value = get(key);
    if (!value.is_string()) {
      fail(key, describe(value), "a string");
      return {};
    }
    return value.get<std::string>();
  }
  std::uint64_t hash(const char* key) {
    const std::string digits = text(key);
    std::uint64_t value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 16 || status != std::errc() || end != digits.data() + digits.size()) {
      fail(key, digits, "16 hex digits");
    }
    return value;
  }
  // The position of one of the words.
  std::size_t choice(const char* key, std::span<const std::string_view> words) {
    const std::string word = text(key);
    const auto known = std::find(words.begin(), words.end(), word);
    if (known != words.end()) return static_cast<std::size_t>(known - words.begin());
    fail(key, word, fmt::format("{}", fmt::join(words, ", ")));
    return 0;
  }
  // An object, a list or null.
  Json any(const char* key) { return get(key); }

  void fail(const std::string& key, std::string got, std::string expected) {
    if (!error_) error_ = bad_field(path_, prefix_ + key, std::move(got), std::move(expected));
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  [[nodiscard]] Json get(const char* key) const {
    const auto found = object_.is_object() ? object_.find(key) : object_.end();
    return found == object_.end() ? Json() : *found;
  }
  static std::string describe(const Json& value) {
    if (value.is_null()) return "nothing";
    if (value.is_structured()) return value.type_name();
    return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 100);
  }

  const std::string& path_;
  const Json& object_;
  std::string prefix_;
  std::optional<Error> error_;
};

struct FusionNumber {
  const char* name;
  float FusionOptions::* member;
};
constexpr std::array<FusionNumber, 5> kFusionNumbers = {{
    {"input_vote_power", &FusionOptions::input_vote_power},
    {"sharp_vote_power", &FusionOptions::sharp_vote_power},
    {"hidden_vote_power", &FusionOptions::hidden_vote_power},
    {"mixed_vote_power", &FusionOptions::mixed_vote_power},
    {"vote_floor", &FusionOptions::vote_floor},
}};

// Absent in models of earlier versions, and where nothing was held out.
struct CalibrationName {
  const char* name;
  std::optional<Calibration> FusionOptions::* member;
};
constexpr std::array<CalibrationName, 2> kCalibrations = {
    {{"calibration", &FusionOptions::calibration}, {"net_calibration", &FusionOptions::net_calibration}}};
struct CalibrationNumber {
  const char* name;
  float Calibration::* member;
};
constexpr std::array<CalibrationNumber, 3> kCalibrationNumbers = {
    {{"log", &Calibration::log}, {"rest", &Calibration::rest}, {"offset", &Calibration::offset}}};

// The shortest digits that give the same float back; those of the double would be longer.
Json short_number(float value) { return read_json<Json>(fmt::format("{}", value)); }

Json fusion_json(const FusionOptions& fusion) {
  Json json = {{"candidates", fusion.candidates}, {"neighbours", fusion.neighbours}};
  for (const auto& [name, member] : kFusionNumbers) json[name] = short_number(fusion.*member);
  for (std::size_t term = 0; term < kFusionTerms; ++term) {
    json["weights"][std::string(kFusionTermNames[term])] = short_number(fusion.weights.value[term]);
  }
  for (const auto& [name, member] : kCalibrations) {
    if (!(fusion.*member)) continue;
    for (const auto& [number, value] : kCalibrationNumbers)
      json[name][number] = short_number((*(fusion.*member)).*value);
  }
  return json;
}

Json featurizer_json(const FeaturizerHeader& header) {
  const text::FeaturizerOptions& options = header.options;
  return {{"stems", options.stems},
          {"subword_min", options.subword_min},
          {"subword_max", options.subword_max},
          {"min_document_frequency", options.min_document_frequency},
          {"max_features", options.max_features},
          {"stem_weight", short_number(options.stem_weight)},
          {"subword_weight", short_number(options.subword_weight)},
          {"documents", header.documents},
          {"features", header.features}};
}

Result<FeaturizerHeader> parse_featurizer(const std::string& path, const Json& json, std::uint64_t features) {
  Fields fields(path, json, "featurizer.");
  FeaturizerHeader header;
  const auto count = [&fields](const char* key, std::uint64_t least, std::uint64_t most) {
    return static_cast<std::uint32_t>(fields.count(key, {least, most}));
  };
  header.options.stems = fields.flag("stems");
  header.options.subword_min = count("subword_min", 0, kMaxSubword);
  header.options.subword_max = count("subword_max", header.options.subword_min, kMaxSubword);
  header.options.min_document_frequency = count("min_document_frequency", 0, kMaxIndex);
  header.options.max_features = count("max_features", 0, kMaxIndex);
  header.options.stem_weight = fields.number("stem_weight");
  header.options.subword_weight = fields.number("subword_weight");
  header.documents = fields.count("documents", {});
  header.features = fields.count("features", {0, features});
  if (fields.error()) return *fields.error();
  return header;
}

// In the order of data::LineScale.
constexpr std::array<std::string_view, 2> kLineScales = {"length", "sum"};

// The shape of lines; absent in models whose queries are not lines of names.
Result<std::optional<data::LineShape>> parse_line(const std::string& path, const Json& json,
                                                  const ModelHeader& header) {
  if (json.is_null()) return std::optional<data::LineShape>();
  Fields fields(path, json, "line.");
  data::LineShape shape;
  shape.last = static_cast<std::uint32_t>(fields.count("last", {1, kMaxIndex}));
  shape.decay = fields.number("decay");
  if (!(shape.decay > 0 && shape.decay <= 1)) {
    fields.fail("decay", fmt::format("{}", shape.decay), "above 0 and at most 1");
  }
  const std::string scale = fields.text("scale");
  const auto known = std::find(kLineScales.begin(), kLineScales.end(), scale);
  if (known == kLineScales.end()) {
    fields.fail("scale", scale, "length or sum");
  } else {
    shape.scale = static_cast<data::LineScale>(known - kLineScales.begin());
  }
  if (fields.error()) return *fields.error();
  if (!header.feature_names) {
    return bad_field(path, "line", "a line of names that features do not have",
                     "feature_names: true beside it");
  }
  return std::optional(shape);
}

Result<FusionOptions> parse_fusion(const std::string& path, const Json& json) {
  Fields fields(path, json, "fusion.");
  FusionOptions fusion;
  fusion.candidates = static_cast<std::uint32_t>(fields.count("candidates", {1, kMaxIndex}));
  fusion.neighbours = static_cast<std::uint32_t>(fields.count("neighbours", {1, kMaxIndex}));
  for (const auto& [name, member] : kFusionNumbers) fusion.*member = fields.number(name);
  const Json weights_json = fields.any("weights");
  if (fields.error()) return *fields.error();
  Fields weights(path, weights_json, "fusion.weights.");
  for (std::size_t term = 0; term < kFusionTerms; ++term) {
    fusion.weights.value[term] = weights.number(std::string(kFusionTermNames[term]).c_str());
  }
  if (weights.error()) return *weights.error();
  for (const auto& [name, member] : kCalibrations) {
    if (!json.contains(name)) continue;
    Fields fields_of(path, json[name], fmt::format("fusion.{}.", name));
    Calibration calibration;
    for (const auto& [number, value] : kCalibrationNumbers) calibration.*value = fields_of.number(number);
    if (calibration.log < 0) fields_of.fail("log", fmt::format("{}", calibration.log), "at least 0");
    if (calibration.rest < 0) fields_of.fail("rest", fmt::format("{}", calibration.rest), "at least 0");
    if (fields_of.error()) return *fields_of.error();
    fusion.*member = calibration;
  }
  if (auto valid = validate(fusion); !valid.ok()) {
    Error error = valid.error();
    error.kind = ErrorKind::kBadData;
    error.where = path + ": " + error.where;
    return error;
  }
  return fusion;
}

Result<std::vector<tensors::ShardEntry>> parse_shards(const std::string& path, const Json& json) {
  if (!json.is_array() || json.empty())
    return bad_field(path, "shards", "no list", "a list of at least one shard");
  std::vector<tensors::ShardEntry> shards;
  for (std::size_t i = 0; i < json.size(); ++i) {
    Fields fields(path, json[i], fmt::format("shards[{}].", i));
    shards.push_back(
        {.file = fields.text("file"), .bytes = fields.count("bytes", {}), .xxh3 = fields.hash("xxh3")});
    // The name is prescribed, so that the file cannot choose a path.
    if (const std::string expected = tensors::shard_name(i, json.size()); shards.back().file != expected) {
      fields.fail("file", shards.back().file, expected);
    }
    if (fields.error()) return *fields.error();
  }
  return shards;
}

// The width of a hidden layer.
std::uint64_t read_width(Fields& fields, const char* key, const Json& json) {
  const std::uint64_t width = json.is_number_unsigned() ? json.get<std::uint64_t>() : 0;
  if (width >= kernels::kLanes && width <= kMaxHidden && width % kernels::kLanes == 0) return width;
  fields.fail(key, json.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 100),
              fmt::format("a multiple of {} in {}..{}", kernels::kLanes, kernels::kLanes, kMaxHidden));
  return kernels::kLanes;
}

// Reads the fields at the top that need no other field.
void read_shape(Fields& fields, ModelHeader& header) {
  const std::uint64_t format = fields.count("format", {kModelFormat, kDenseModelFormat});
  if (const std::string engine = fields.text("engine"); engine != "sparse")
    fields.fail("engine", engine, "sparse");
  header.task = fields.text("task");
  header.features = fields.count("features", {1, kMaxIndex});
  header.labels = fields.count("labels", {1, kMaxIndex});
  header.hidden = read_width(fields, "hidden", fields.any("hidden"));
  if (format == kDenseModelFormat) {
    const Json dense = fields.any("dense");
    if (!dense.is_array() || dense.empty() || dense.size() > kMaxDense) {
      fields.fail("dense", "no list of widths", fmt::format("a list of 1..{} widths", kMaxDense));
    } else {
      for (const Json& width : dense) header.dense.push_back(read_width(fields, "dense", width));
    }
  }
  header.activation = static_cast<kernels::Activation>(fields.choice("activation", kActivations));
  header.training_rows = fields.count("training_rows", {});
  header.label_names = fields.flag("label_names");
  header.feature_names = fields.flag_if_present("feature_names");
}

Result<InstanceCounts> parse_instances(const std::string& path, const Json& json) {
  Fields fields(path, json, "instances.");
  InstanceCounts counts{.rows = fields.count("rows", {0, kMaxIndex - 1}),
                        .feature_entries = fields.count("feature_entries", {0, kMaxIndex}),
                        .label_entries = fields.count("label_entries", {0, kMaxIndex}),
                        .weighting = {}};
  const Json weighting_json = fields.any("weighting");
  if (fields.error()) return *fields.error();
  Fields weighting(path, weighting_json, "instances.weighting.");
  counts.weighting = {.counts = static_cast<text::CountScale>(weighting.choice("counts", kCountScales)),
                      .idf_power = weighting.number("idf_power"),
                      .pivot = weighting.number("pivot"),
                      .local_scaling = weighting.number_if_present("local_scaling")};
  if (!(counts.weighting.idf_power >= 0 && counts.weighting.idf_power <= 4))
    weighting.fail("idf_power", fmt::format("{}", counts.weighting.idf_power), "0..4");
  if (!(counts.weighting.pivot >= 0 && counts.weighting.pivot <= 1))
    weighting.fail("pivot", fmt::format("{}", counts.weighting.pivot), "0..1");
  if (!(counts.weighting.local_scaling >= 0 && counts.weighting.local_scaling <= 4))
    weighting.fail("local_scaling", fmt::format("{}", counts.weighting.local_scaling), "0..4");
  if (weighting.error()) return *weighting.error();
  return counts;
}

}  // namespace

std::string_view name(text::CountScale counts) { return kCountScales[static_cast<std::size_t>(counts)]; }

std::string_view name(kernels::Activation activation) {
  return kActivations[static_cast<std::size_t>(activation)];
}

std::string format_header(const ModelHeader& header) {
  Json shards = Json::array();
  for (const tensors::ShardEntry& shard : header.shards) {
    shards.push_back(
        {{"file", shard.file}, {"bytes", shard.bytes}, {"xxh3", fmt::format("{:016x}", shard.xxh3)}});
  }
  Json instances;
  if (header.instances) {
    const text::NeighbourWeighting& weighting = header.instances->weighting;
    instances = {{"rows", header.instances->rows},
                 {"feature_entries", header.instances->feature_entries},
                 {"label_entries", header.instances->label_entries},
                 {"weighting",
                  {{"counts", name(weighting.counts)},
                   {"idf_power", short_number(weighting.idf_power)},
                   {"pivot", short_number(weighting.pivot)},
                   {"local_scaling", short_number(weighting.local_scaling)}}}};
  }
  Json line;
  if (header.line) {
    line = {{"last", header.line->last},
            {"decay", short_number(header.line->decay)},
            {"scale", kLineScales[static_cast<std::size_t>(header.line->scale)]}};
  }
  Json json = {
      {"format", header.dense.empty() ? kModelFormat : kDenseModelFormat},
      {"engine", "sparse"},
      {"task", header.task},
      {"features", header.features},
      {"labels", header.labels},
      {"hidden", header.hidden},
      {"activation", name(header.activation)},
      {"training_rows", header.training_rows},
      {"weighting", {{"counts", name(header.counts)}, {"l2", header.l2}, {"idf", header.idf}}},
      {"featurizer", header.featurizer ? featurizer_json(*header.featurizer) : Json()},
      {"label_names", header.label_names},
      {"feature_names", header.feature_names},
      {"line", line},
      {"instances", instances},
      {"fusion", fusion_json(header.fusion)},
      {"shards", shards},
      {"metadata", {{"total_size", header.total_size}}},
      {"weight_map", header.weight_map},
  };
  if (!header.dense.empty()) json["dense"] = header.dense;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<ModelHeader> parse_header(const std::string& path, std::string_view text) {
  const Json json = read_json<Json>(text);
  if (!json.is_object()) return no_header(path, text);
  Fields fields(path, json);
  if (json.contains("format") && json["format"] != Json(kModelFormat) &&
      json["format"] != Json(kDenseModelFormat)) {
    return Error{.kind = ErrorKind::kRefused,
                 .where = path,
                 .what = "a model of another format",
                 .got = json["format"].dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 100),
                 .expected = fmt::format("format {} or {}", kModelFormat, kDenseModelFormat),
                 .fix = "use the version of gossamer that wrote it, or train again"};
  }
  ModelHeader header;
  read_shape(fields, header);
  if (fields.error()) return *fields.error();
  const Json weighting_json = fields.any("weighting");
  Fields weighting(path, weighting_json, "weighting.");
  header.counts = static_cast<text::CountScale>(weighting.choice("counts", kCountScales));
  header.l2 = weighting.flag("l2");
  header.idf = weighting.flag("idf");
  if (weighting.error()) return *weighting.error();
  if (const Json json_of = fields.any("featurizer"); !json_of.is_null()) {
    auto featurizer = parse_featurizer(path, json_of, header.features);
    if (!featurizer.ok()) return featurizer.error();
    header.featurizer = *featurizer;
    if (header.feature_names) {
      return bad_field(path, "feature_names", "true beside a featurizer", "one of the two");
    }
  }
  auto line = parse_line(path, fields.any("line"), header);
  if (!line.ok()) return line.error();
  header.line = *line;
  if (const Json instances_json = fields.any("instances"); !instances_json.is_null()) {
    auto instances = parse_instances(path, instances_json);
    if (!instances.ok()) return instances.error();
    header.instances = *instances;
  }
  auto fusion = parse_fusion(path, fields.any("fusion"));
  if (!fusion.ok()) return fusion.error();
  header.fusion = *fusion;
  auto shards = parse_shards(path, fields.any("shards"));
  if (!shards.ok()) return shards.error();
  header.shards = *std::move(shards);
  return header;
}

}  // namespace gossamer::sparse_engine
