// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the directory of a language model. Opening and loading answer with an error, or with a model
// that saves, loads again with the same bits, and adds tokens of its vocabulary. The input is model.json, a
// zero byte, and the shard. Checksum and size of the shard are made right first, so that the fuzzer gets past
// them. The model is a toy of the shape: its tensors are those that files must have here.
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "engines/pipeline/model/lm_model_file.h"
#include "engines/pipeline/predict/text_generator.h"
#include "engines/pipeline/stage/toy_stage.h"
#include "host/api/files.h"
#include "host/sim/disk.h"
#include "learn/tokens/byte_tokenizer.h"

namespace {

using namespace gossamer;
using Json = nlohmann::json;

// The header text with the true size and checksum of the shard, if it has places for them.
std::string seal(std::string_view header, std::string_view shard) {
  Json json = Json::parse(header, nullptr, false);
  if (!json.is_object() || !json.contains("shards") || !json["shards"].is_array() || json["shards"].empty() ||
      !json["shards"][0].is_object()) {
    return std::string(header);
  }
  json["shards"][0]["bytes"] = shard.size();
  json["shards"][0]["xxh3"] = fmt::format("{:016x}", XXH3_64bits(shard.data(), shard.size()));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write(host::Disk& disk, const std::string& path, std::string_view content) {
  CHECK(host::replace_file(disk, path, content).ok(), path);
}

// A toy of the model's shape with the weights of the files, or nothing where they are refused.
std::unique_ptr<pipeline::StageBackend> loaded(host::Disk& disk, const pipeline::OpenedLm& opened) {
  const pipeline::LmShape& shape = opened.header.about.shape;
  auto model = pipeline::make_toy_stage({.vocabulary = shape.vocabulary,
                                         .context = shape.context,
                                         .width = shape.width,
                                         .hidden = shape.hidden,
                                         .layers = shape.layers},
                                        {.first = 0, .last = shape.layers, .layers = shape.layers}, 1);
  const auto done = pipeline::load_lm_model(disk, opened, *model);
  if (done.ok()) return model;
  CHECK(!done.error().where.empty() && !done.error().fix.empty(), done.error().message());
  return nullptr;
}

// A library of pieces of words is not what is fuzzed here.
Result<std::unique_ptr<tokens::Tokenizer>> make_tokenizer(const std::string& name, std::string,
                                                          const std::string& where) {
  if (name == "bytes") return std::unique_ptr<tokens::Tokenizer>(std::make_unique<tokens::ByteTokenizer>());
  return Error{.kind = ErrorKind::kRefused, .where = where, .what = "no such tokenizer"};
}

bool same_weights(pipeline::StageBackend& one, pipeline::StageBackend& other) {
  return std::ranges::equal(one.tensors(), other.tensors(), [](const auto& a, const auto& b) {
    return std::ranges::equal(std::get<std::span<double>>(a.weights), std::get<std::span<double>>(b.weights));
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  const std::size_t cut = input.find('\0');
  if (cut == std::string_view::npos) return 0;
  const std::string_view shard = input.substr(cut + 1);
  host::SimDisk disk;
  CHECK(disk.make_directories("m").ok());
  write(disk, "m/model.json", seal(input.substr(0, cut), shard));
  write(disk, "m/" + tensors::shard_name(0, 1), shard);
  const auto opened = pipeline::open_lm_model(disk, "m");
  if (!opened.ok()) {
    CHECK(!opened.error().where.empty() && !opened.error().what.empty(), opened.error().message());
    return 0;
  }
  const auto tokenizer = pipeline::tokenizer_of(disk, *opened, make_tokenizer);
  CHECK(tokenizer.ok() || (!tokenizer.error().where.empty() && !tokenizer.error().what.empty()));
  const auto model = loaded(disk, *opened);
  if (model == nullptr) return 0;
  CHECK(pipeline::save_lm_model(disk, "again", {.model = *model, .about = opened->header.about}).ok());
  const auto reopened = pipeline::open_lm_model(disk, "again");
  CHECK(reopened.ok() && reopened->header.about == opened->header.about);
  const auto again = loaded(disk, *reopened);
  CHECK(again != nullptr && same_weights(*model, *again));
  auto generator = pipeline::TextGenerator::begin(*again, {}, {.tokens = 3, .end_of_text = 0});
  CHECK(generator.ok());
  // Weights may be so large that scores are not finite.
  for (auto token = generator->next(); token.ok() && token->has_value(); token = generator->next())
    CHECK(**token < again->vocabulary(), **token);
  return 0;
}
