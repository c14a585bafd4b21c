// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/model_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "json/read_json.h"
#include "tensors/model_fields.h"

namespace gossamer::sparse_engine {
namespace {

using Json = nlohmann::json;
using tensors::bad_field;
using tensors::ModelFields;

constexpr std::string_view kEngine = "sparse";
constexpr std::uint64_t kMaxIndex = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMaxHidden = 65536;
constexpr std::size_t kMaxDense = 64;
constexpr std::uint64_t kMaxSubword = 16;
constexpr std::array<std::string_view, 3> kActivations = {"relu", "identity", "tanh"};
constexpr std::array<std::string_view, 3> kCountScales = {"linear", "log", "double-log"};

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
  ModelFields fields(path, json, "featurizer.");
  FeaturizerHeader header;
  const auto count = [&fields](const char* key, std::uint64_t least, std::uint64_t most) {
    return static_cast<std::uint32_t>(fields.count(key, {least, most}));
  };
  header.options.stems = fields.flag("stems");
  header.options.subword_min = count("subword_min", 0, kMaxSubword);
  header.options.subword_max = count("subword_max", header.options.subword_min, kMaxSubword);
  header.options.min_document_frequency = count("min_document_frequency", 0, kMaxIndex);
  header.options.max_features = count("max_features", 1, kMaxIndex - 1);
  header.options.stem_weight = fields.number("stem_weight");
  header.options.subword_weight = fields.number("subword_weight");
  header.documents = fields.count("documents");
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
  ModelFields fields(path, json, "line.");
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
  ModelFields fields(path, json, "fusion.");
  FusionOptions fusion;
  fusion.candidates = static_cast<std::uint32_t>(fields.count("candidates", {1, kMaxIndex}));
  fusion.neighbours = static_cast<std::uint32_t>(fields.count("neighbours", {1, kMaxIndex}));
  for (const auto& [name, member] : kFusionNumbers) fusion.*member = fields.number(name);
  const Json weights_json = fields.any("weights");
  if (fields.error()) return *fields.error();
  ModelFields weights(path, weights_json, "fusion.weights.");
  for (std::size_t term = 0; term < kFusionTerms; ++term) {
    fusion.weights.value[term] = weights.number(std::string(kFusionTermNames[term]).c_str());
  }
  if (weights.error()) return *weights.error();
  for (const auto& [name, member] : kCalibrations) {
    if (!json.contains(name)) continue;
    ModelFields fields_of(path, json[name], fmt::format("fusion.{}.", name));
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

// The width of a hidden layer.
std::uint64_t read_width(ModelFields& fields, const char* key, const Json& json) {
  const std::uint64_t width = json.is_number_unsigned() ? json.get<std::uint64_t>() : 0;
  if (width >= kernels::kLanes && width <= kMaxHidden && width % kernels::kLanes == 0) return width;
  fields.fail(key, json.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 100),
              fmt::format("a multiple of {} in {}..{}", kernels::kLanes, kernels::kLanes, kMaxHidden));
  return kernels::kLanes;
}

// Reads the fields at the top that need no other field.
void read_shape(ModelFields& fields, ModelHeader& header) {
  const std::uint64_t format = fields.count("format");
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
  header.training_rows = fields.count("training_rows");
  header.label_names = fields.flag("label_names");
  header.feature_names = fields.flag_if_present("feature_names");
}

Result<InstanceCounts> parse_instances(const std::string& path, const Json& json) {
  ModelFields fields(path, json, "instances.");
  InstanceCounts counts{.rows = fields.count("rows", {0, kMaxIndex - 1}),
                        .feature_entries = fields.count("feature_entries", {0, kMaxIndex}),
                        .label_entries = fields.count("label_entries", {0, kMaxIndex}),
                        .weighting = {}};
  const Json weighting_json = fields.any("weighting");
  if (fields.error()) return *fields.error();
  ModelFields weighting(path, weighting_json, "instances.weighting.");
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
  };
  if (!header.dense.empty()) json["dense"] = header.dense;
  return tensors::format_model_json(
      {.engine = kEngine, .format = header.dense.empty() ? kModelFormat : kDenseModelFormat}, std::move(json),
      {.shards = header.shards, .total_size = header.total_size, .weight_map = header.weight_map});
}

Result<ModelHeader> parse_header(const std::string& path, std::string_view text) {
  const auto read = tensors::read_model_json(
      path, text, {.engine = kEngine, .oldest_format = kModelFormat, .newest_format = kDenseModelFormat});
  if (!read.ok()) return read.error();
  const Json& json = *read;
  ModelFields fields(path, json);
  ModelHeader header;
  read_shape(fields, header);
  if (fields.error()) return *fields.error();
  const Json weighting_json = fields.any("weighting");
  ModelFields weighting(path, weighting_json, "weighting.");
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
  auto shards = tensors::read_model_shards(path, json);
  if (!shards.ok()) return shards.error();
  header.shards = *std::move(shards);
  return header;
}

}  // namespace gossamer::sparse_engine
