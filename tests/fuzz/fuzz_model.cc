// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a model directory. Loading answers with an error, or with a model that saves, loads again and
// predicts. The input is model.json, a zero byte, and the shard. Checksum and size of the shard are made
// right first, so that the fuzzer gets past them.
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/model_json.h"
#include "engines/sparse/predict/predictor.h"
#include "host/api/files.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"

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

void predict(const sparse_engine::Model& model) {
  host::SimCompute compute({});
  const auto predictor = sparse_engine::Predictor::create(model, kernels::kernels_for(kernels::best_isa()),
                                                          compute, sparse_engine::default_options(model));
  CHECK(predictor.ok(), predictor.error().message());
  const std::vector<std::uint32_t> begin = {0, 1, 1};
  const std::vector<std::uint32_t> index = {static_cast<std::uint32_t>(model.network.shape.features - 1)};
  const std::vector<float> value = {1};
  sparse_engine::PredictionBlock out;
  CHECK((*predictor)->predict({begin, index, value}, 5, out).ok());
  for (std::size_t q = 0; q < out.queries(); ++q) {
    for (const sparse_engine::Scored& entry : out.row(q))
      CHECK(entry.id < model.network.shape.labels, entry.id);
  }
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
  const auto model = sparse_engine::load_model(disk, "m");
  if (!model.ok()) {
    CHECK(!model.error().where.empty() && !model.error().what.empty(), model.error().message());
    return 0;
  }
  CHECK(sparse_engine::save_model(disk, "again", *model).ok());
  const auto again = sparse_engine::load_model(disk, "again");
  CHECK(again.ok(), again.error().message());
  predict(*again);
  return 0;
}
