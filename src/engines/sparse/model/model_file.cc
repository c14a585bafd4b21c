// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/model_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <memory>
#include <utility>

#include "base/check.h"
#include "engines/sparse/model/model_json.h"
#include "engines/sparse/model/model_tensors.h"
#include "host/api/files.h"
#include "tensors/safetensors.h"

namespace gossamer::sparse_engine {
namespace {

constexpr std::size_t kMaxHeaderBytes = std::size_t{64} << 20;

std::string header_path(const std::string& directory) { return directory + "/model.json"; }

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Tensors in their order, cut into shards before one would pass the limit. There is at least one shard.
std::vector<std::vector<tensors::TensorSource>> cut_into_shards(std::vector<tensors::TensorSource> tensors,
                                                                std::uint64_t limit) {
  std::vector<std::vector<tensors::TensorSource>> shards(1);
  std::uint64_t bytes = 0;
  for (tensors::TensorSource& tensor : tensors) {
    if (!shards.back().empty() && bytes + tensor.bytes() > limit) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += tensor.bytes();
    shards.back().push_back(std::move(tensor));
  }
  return shards;
}

Result<tensors::FileDigest> write_shard(host::Disk& disk, const std::string& path,
                                        std::span<const tensors::TensorSource> tensors) {
  auto file = disk.open_writable(path, host::WriteMode::kTruncate);
  if (!file.ok()) return file.error();
  auto digest = tensors::write_safetensors(**file, tensors);
  if (!digest.ok()) return digest.error();
  if (auto synced = (*file)->sync(); !synced.ok()) return synced.error();
  if (auto closed = (*file)->close(); !closed.ok()) return closed.error();
  return digest;
}

// Writes all files of the model into an empty directory, durably.
Result<void> write_files(host::Disk& disk, const std::string& directory, const Model& model,
                         const SaveModelOptions& options) {
  ModelHeader header = header_of(model);
  const Names featurizer_features = featurizer_features_of(model);
  const auto shards =
      cut_into_shards(tensors_of(model, featurizer_features, options.network), options.max_shard_bytes);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string file = shard_name(i, shards.size());
    const auto digest = write_shard(disk, directory + "/" + file, shards[i]);
    if (!digest.ok()) return digest.error();
    header.shards.push_back({.file = file, .bytes = digest->bytes, .xxh3 = digest->xxh3});
    for (const tensors::TensorSource& tensor : shards[i]) {
      header.total_size += tensor.bytes();
      header.weight_map[tensor.name] = file;
    }
  }
  return host::replace_file(disk, header_path(directory), format_header(header));
}

// Repairs the traces of a crash in publish(): undoes its first rename, or removes the old model after its
// second.
Result<void> tidy_up(host::Disk& disk, const std::string& directory) {
  const std::string old = directory + ".old";
  const auto old_exists = disk.exists(old);
  if (!old_exists.ok()) return old_exists.error();
  if (!*old_exists) return {};
  const auto exists = disk.exists(directory);
  if (!exists.ok()) return exists.error();
  if (*exists) return disk.remove_all(old);
  if (auto renamed = disk.rename(old, directory); !renamed.ok()) return renamed;
  return disk.sync_directory(host::parent(directory));
}

// Puts the complete `fresh` in the place of `directory`. Each rename is durable before the next. So a reader
// finds one of the two states of docs/protocols/model.md.
Result<void> publish(host::Disk& disk, const std::string& fresh, const std::string& directory) {
  const std::string old = directory + ".old";
  const auto exists = disk.exists(directory);
  if (!exists.ok()) return exists.error();
  if (*exists) {
    if (auto renamed = disk.rename(directory, old); !renamed.ok()) return renamed;
    if (auto synced = disk.sync_directory(host::parent(directory)); !synced.ok()) return synced;
  }
  if (auto renamed = disk.rename(fresh, directory); !renamed.ok()) return renamed;
  if (auto synced = disk.sync_directory(host::parent(directory)); !synced.ok()) return synced;
  return *exists ? disk.remove_all(old) : Result<void>();
}

Error damaged(const std::string& path, std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "the shard is not the one that model.json describes",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "restore the model directory from its origin or train again"};
}

}  // namespace

Result<void> save_model(host::Disk& disk, const std::string& directory, const Model& model,
                        const SaveModelOptions& options) {
  CHECK(options.max_shard_bytes > 0);
  const std::string target = without_trailing_slash(directory);
  const std::string fresh = target + ".tmp";
  if (auto tidy = tidy_up(disk, target); !tidy.ok()) return tidy;
  if (auto removed = disk.remove_all(fresh); !removed.ok()) return removed;
  if (auto made = disk.make_directories(fresh); !made.ok()) return made;
  Result<void> done = write_files(disk, fresh, model, options);
  if (done.ok()) done = publish(disk, fresh, target);
  // The first error is reported. The next save begins by removing files that cannot be removed now.
  if (!done.ok()) static_cast<void>(disk.remove_all(fresh).ok());
  if (!done.ok()) static_cast<void>(tidy_up(disk, target).ok());
  return done;
}

Result<std::unique_ptr<host::MappedFile>> map_model_shard(host::Disk& disk, const std::string& directory,
                                                          const ShardEntry& shard) {
  const std::string path = directory + "/" + shard.file;
  auto file = disk.map(path);
  if (!file.ok()) return file;
  const auto bytes = (*file)->bytes();
  if (bytes.size() != shard.bytes) {
    return damaged(path, fmt::format("{} bytes", bytes.size()), fmt::format("{}", shard.bytes));
  }
  if (const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size()); hash != shard.xxh3) {
    return damaged(path, fmt::format("XXH3-64 {:016x}", hash), fmt::format("{:016x}", shard.xxh3));
  }
  return file;
}

Result<void> read_model_shard(host::Disk& disk, const std::string& directory, const ShardEntry& shard,
                              FunctionRef<Result<void>(const std::string& path, const std::string& name,
                                                       const tensors::TensorView& tensor)>
                                  take) {
  const auto file = map_model_shard(disk, directory, shard);
  if (!file.ok()) return file.error();
  const std::string path = directory + "/" + shard.file;
  const auto tensors = tensors::parse_safetensors(path, (*file)->bytes());
  if (!tensors.ok()) return tensors.error();
  for (const auto& [name, tensor] : *tensors) {
    if (auto taken = take(path, name, tensor); !taken.ok()) return taken;
  }
  return {};
}

Result<OpenedModel> open_model_header(host::Disk& disk, const std::string& directory) {
  std::string source = without_trailing_slash(directory);
  const auto exists = disk.exists(source);
  if (!exists.ok()) return exists.error();
  if (!*exists) {
    const auto old = disk.exists(source + ".old");
    if (!old.ok()) return old.error();
    if (*old) source += ".old";
  }
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
  for (const ShardEntry& shard : opened->header.shards) {
    const auto mapped = map_model_shard(disk, opened->directory, shard);
    if (!mapped.ok()) return mapped.error();
  }
  return {};
}

Result<Model> load_model(host::Disk& disk, const std::string& directory, Reading reading) {
  const auto opened = open_model_header(disk, directory);
  if (!opened.ok()) return opened.error();
  ModelBuilder builder(opened->header, reading);
  for (const ShardEntry& shard : opened->header.shards) {
    auto loaded = read_model_shard(
        disk, opened->directory, shard,
        [&builder](const std::string& path, const std::string& name, const tensors::TensorView& tensor) {
          return builder.add(path, name, tensor);
        });
    if (!loaded.ok()) return loaded.error();
  }
  return builder.finish(opened->directory);
}

}  // namespace gossamer::sparse_engine
