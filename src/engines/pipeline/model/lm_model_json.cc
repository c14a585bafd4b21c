// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/model/lm_model_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "learn/tokens/tokenizer.h"
#include "tensors/model_fields.h"

namespace gossamer::pipeline {
namespace {

using LmJson = nlohmann::json;
using tensors::ModelFields;

constexpr std::string_view kLmEngine = "lm";

// Words in the order of their enums; they are those of the keys model.activation and so on.
constexpr std::array<std::string_view, 2> kActivationWords = {"gelu", "swiglu"};
constexpr std::array<std::string_view, 2> kNormWords = {"layer", "rms"};
constexpr std::array<std::string_view, 2> kPositionWords = {"learned", "rotary"};
constexpr std::array<std::string_view, 3> kBiasWords = {"none", "no-key", "all"};

// The types of weights.
constexpr std::array<tensors::DType, 2> kWeightTypes = {tensors::DType::kF32, tensors::DType::kF64};
constexpr std::array<std::string_view, 2> kWeightTypeWords = {"F32", "F64"};

// The sizes of a shape, up to the largest that the keys of a run allow.
struct LmSize {
  const char* name;
  std::uint32_t LmShape::* member;
  std::uint64_t most;
};
constexpr std::array<LmSize, 7> kLmSizes = {{
    {"vocabulary", &LmShape::vocabulary, tokens::kMostVocabulary},
    {"context", &LmShape::context, std::uint64_t{1} << 20},
    {"width", &LmShape::width, std::uint64_t{1} << 16},
    {"heads", &LmShape::heads, 1024},
    {"hidden", &LmShape::hidden, std::uint64_t{1} << 20},
    {"layers", &LmShape::layers, 1000},
    {"applied", &LmShape::applied, 1000},
}};

template <class Enum>
std::string_view lm_word(std::span<const std::string_view> words, Enum value) {
  return words[static_cast<std::size_t>(value)];
}

LmJson shape_json(const LmShape& shape) {
  LmJson json = {{"activation", lm_word(kActivationWords, shape.activation)},
                 {"norm", lm_word(kNormWords, shape.norm)},
                 {"positions", lm_word(kPositionWords, shape.positions)},
                 {"biases", lm_word(kBiasWords, shape.biases)}};
  for (const LmSize& size : kLmSizes) json[size.name] = shape.*size.member;
  return json;
}

Result<LmShape> parse_shape(const std::string& path, const LmJson& json) {
  ModelFields fields(path, json, "model.");
  LmShape shape;
  for (const LmSize& size : kLmSizes)
    shape.*size.member = static_cast<std::uint32_t>(fields.count(size.name, {1, size.most}));
  shape.activation = static_cast<LmActivation>(fields.choice("activation", kActivationWords));
  shape.norm = static_cast<LmNorm>(fields.choice("norm", kNormWords));
  shape.positions = static_cast<LmPositions>(fields.choice("positions", kPositionWords));
  shape.biases = static_cast<LmBiases>(fields.choice("biases", kBiasWords));
  if (fields.error()) return *fields.error();
  if (const Result<void> good = check_shape(shape); !good.ok())
    return tensors::bad_field(path, good.error().where, good.error().got, good.error().expected);
  return shape;
}

Result<LmTokenizer> parse_tokenizer(const std::string& path, const LmJson& json) {
  ModelFields fields(path, json, "tokenizer.");
  LmTokenizer tokenizer{.name = fields.text("name"), .digest = fields.hash("digest")};
  if (fields.error()) return *fields.error();
  return tokenizer;
}

}  // namespace

std::string format_lm_header(const LmAbout& about, tensors::DType dtype,
                             const tensors::WrittenShards& files) {
  LmJson fields = {
      {"model", shape_json(about.shape)},
      {"tokenizer",
       {{"name", about.tokenizer.name}, {"digest", fmt::format("{:016x}", about.tokenizer.digest)}}},
      {"dtype", tensors::name(dtype)},
      {"steps", about.steps}};
  return tensors::format_model_json({.engine = kLmEngine, .format = kLmModelFormat}, std::move(fields),
                                    files);
}

Result<LmHeader> parse_lm_header(const std::string& path, std::string_view text) {
  const auto json = tensors::read_model_json(
      path, text, {.engine = kLmEngine, .oldest_format = kLmModelFormat, .newest_format = kLmModelFormat});
  if (!json.ok()) return json.error();
  ModelFields fields(path, *json);
  LmHeader header;
  header.dtype = kWeightTypes[fields.choice("dtype", kWeightTypeWords)];
  header.about.steps = fields.count("steps");
  const auto shape = parse_shape(path, fields.any("model"));
  if (!shape.ok()) return shape.error();
  header.about.shape = *shape;
  auto tokenizer = parse_tokenizer(path, fields.any("tokenizer"));
  if (!tokenizer.ok()) return tokenizer.error();
  header.about.tokenizer = *std::move(tokenizer);
  if (fields.error()) return *fields.error();
  auto shards = tensors::read_model_shards(path, *json);
  if (!shards.ok()) return shards.error();
  header.shards = *std::move(shards);
  return header;
}

std::uint64_t least_numbers(const LmShape& shape) {
  const std::uint64_t width = shape.width;
  const std::uint64_t positions = shape.positions == LmPositions::kLearned ? shape.context : 0;
  const std::uint64_t layer = width * width + 2 * width * shape.hidden;
  return 2 * width * shape.vocabulary + width * positions + layer * shape.layers;
}

}  // namespace gossamer::pipeline
