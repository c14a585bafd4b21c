// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/model_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <memory>
#include <utility>

#include "engines/sparse/model/model_json.h"
#include "engines/sparse/model/model_tensors.h"
#include "tensors/model_directory.h"
#include "tensors/safetensors.h"

namespace gossamer::sparse_engine {

Result<void> save_model(host::Disk& disk, const std::string& directory, const Model& model,
                        const SaveModelOptions& options) {
  ModelHeader header = header_of(model);
  const Names featurizer_features = featurizer_features_of(model);
  return tensors::save_model_directory(disk, directory,
                                       {.tensors = tensors_of(model, featurizer_features, options.network),
                                        .max_shard_bytes = options.max_shard_bytes},
                                       [&header](const tensors::WrittenShards& files) {
                                         header.shards = files.shards;
                                         header.total_size = files.total_size;
                                         header.weight_map = files.weight_map;
                                         return format_header(header);
                                       });
}

Result<OpenedModel> open_model_header(host::Disk& disk, const std::string& directory) {
  auto found = tensors::read_model_text(disk, directory);
  if (!found.ok()) return found.error();
  auto header = parse_header(found->path, found->text);
  if (!header.ok()) return header.error();
  return OpenedModel{.directory = std::move(found->directory),
                     .header_hash = XXH3_64bits(found->text.data(), found->text.size()),
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
