// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/model_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <memory>
#include <utility>

#include "engines/sparse/model/model_json.h"
#include "engines/sparse/model/model_tensors.h"
#include "host/api/files.h"
#include "tensors/model_directory.h"
#include "tensors/safetensors.h"

namespace gossamer::sparse_engine {
namespace {

constexpr std::size_t kMaxHeaderBytes = std::size_t{64} << 20;

std::string header_path(const std::string& directory) { return directory + "/model.json"; }

// Writes all files of the model into an empty directory, durably.
Result<void> write_files(host::Disk& disk, const std::string& directory, const Model& model,
                         const SaveModelOptions& options) {
  ModelHeader header = header_of(model);
  const Names featurizer_features = featurizer_features_of(model);
  auto written = tensors::write_shards(
      disk, directory, tensors_of(model, featurizer_features, options.network), options.max_shard_bytes);
  if (!written.ok()) return written.error();
  header.shards = std::move(written->shards);
  header.total_size = written->total_size;
  header.weight_map = std::move(written->weight_map);
  return host::replace_file(disk, header_path(directory), format_header(header));
}

}  // namespace

Result<void> save_model(host::Disk& disk, const std::string& directory, const Model& model,
                        const SaveModelOptions& options) {
  return tensors::replace_directory(
      disk, directory, [&](const std::string& fresh) { return write_files(disk, fresh, model, options); });
}

Result<OpenedModel> open_model_header(host::Disk& disk, const std::string& directory) {
  auto found = tensors::find_directory(disk, directory);
  if (!found.ok()) return found.error();
  std::string source = *std::move(found);
  const auto text = host::read_text(disk, header_path(source), kMaxHeaderBytes);
  if (!text.ok()) return text.error();
  auto header = parse_header(header_path(source), *text);
  if (!header.ok()) return header.error();
  return OpenedModel{.directory = std::move(source),
                     .header_hash = XXH3_64bits(text->data(), text->size()),
                     .header = *std::move(header)};
}

Result<void> check_model_files(host::Disk& disk, const std::string& directory) {
  const auto opened = open_model_header(disk, directory);
  if (!opened.ok()) return opened.error();
  for (const tensors::ShardEntry& shard : opened->header.shards) {
    const auto mapped = tensors::map_shard(disk, opened->directory, shard);
    if (!mapped.ok()) return mapped.error();
  }
  return {};
}

Result<Model> load_model(host::Disk& disk, const std::string& directory, Reading reading) {
  const auto opened = open_model_header(disk, directory);
  if (!opened.ok()) return opened.error();
  ModelBuilder builder(opened->header, reading);
  for (const tensors::ShardEntry& shard : opened->header.shards) {
    auto loaded = tensors::read_shard(
        disk, opened->directory, shard,
        [&builder](const std::string& path, const std::string& name, const tensors::TensorView& tensor) {
          return builder.add(path, name, tensor);
        });
    if (!loaded.ok()) return loaded.error();
  }
  return builder.finish(opened->directory);
}

}  // namespace gossamer::sparse_engine
