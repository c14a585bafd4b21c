// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/model_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "engines/sparse/model/model_json.h"
#include "engines/sparse/model/model_tensors.h"
#include "tensors/model_directory.h"
#include "tensors/safetensors.h"

namespace gossamer::sparse_engine {
namespace {

// The training records that a model holds come from the user's data, which can be mended.
Result<void> check_training_rows(const Instances& instances) {
  const auto of_value =
      tensors::first_not_finite(tensors::DType::kF32, std::as_bytes(std::span(instances.value)));
  const auto of_hidden =
      tensors::first_not_finite(tensors::DType::kBf16, std::as_bytes(instances.hidden.span()));
  if (!of_value && !of_hidden) return {};
  std::size_t row = instances.rows();
  if (of_hidden) row = *of_hidden / (instances.hidden.size() / instances.rows());
  if (of_value) {
    const auto behind = std::ranges::upper_bound(instances.feature_begin, *of_value);
    row = std::min(row, static_cast<std::size_t>(behind - instances.feature_begin.begin()) - 1);
  }
  return Error{.kind = ErrorKind::kBadData,
               .where = fmt::format("training record {}", row + 1),
               .what = "the network's numbers for a training record are not finite",
               .got = "values that are too large",
               .expected = "values whose weighted sums a float can hold",
               .fix = "mend the record, or scale rows with data.weighting=l2, in a new run"};
}

}  // namespace

Result<void> save_model(host::Disk& disk, const std::string& directory, const Model& model,
                        const SaveModelOptions& options) {
  if (auto valid = validate(model.fusion); !valid.ok()) return valid;
  if (model.instances) {
    if (auto checked = check_training_rows(*model.instances); !checked.ok()) return checked;
  }
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
