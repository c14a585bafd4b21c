// SPDX-License-Identifier: Apache-2.0
#include "tensors/model_directory.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <span>
#include <utility>

#include "base/check.h"
#include "host/api/files.h"

namespace gossamer::tensors {
namespace {

constexpr std::size_t kMaxModelJsonBytes = std::size_t{64} << 20;

std::string model_json_path(const std::string& directory) { return directory + "/model.json"; }

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Tensors in their order, cut into shards before one would pass the limit. There is at least one shard.
std::vector<std::vector<TensorSource>> cut_into_shards(std::vector<TensorSource> tensors,
                                                       std::uint64_t limit) {
  std::vector<std::vector<TensorSource>> shards(1);
  std::uint64_t bytes = 0;
  for (TensorSource& tensor : tensors) {
    if (!shards.back().empty() && bytes + tensor.bytes() > limit) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += tensor.bytes();
    shards.back().push_back(std::move(tensor));
  }
  return shards;
}

Result<FileDigest> write_shard(host::Disk& disk, const std::string& path,
                               std::span<const TensorSource> tensors) {
  auto file = disk.open_writable(path, host::WriteMode::kTruncate);
  if (!file.ok()) return file.error();
  auto digest = write_safetensors(**file, tensors);
  if (!digest.ok()) return digest.error();
  if (auto synced = (*file)->sync(); !synced.ok()) return synced.error();
  if (auto closed = (*file)->close(); !closed.ok()) return closed.error();
  return digest;
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

Error another_shard(const std::string& path, std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .where = path,
          .what = "the shard is not the one that model.json describes",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "restore the model directory from its origin or train again"};
}

}  // namespace

std::string shard_name(std::size_t index, std::size_t count) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

Result<WrittenShards> write_shards(host::Disk& disk, const std::string& directory,
                                   std::vector<TensorSource> tensors, std::uint64_t max_shard_bytes) {
  CHECK(max_shard_bytes > 0);
  WrittenShards written;
  const auto shards = cut_into_shards(std::move(tensors), max_shard_bytes);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string file = shard_name(i, shards.size());
    const auto digest = write_shard(disk, directory + "/" + file, shards[i]);
    if (!digest.ok()) return digest.error();
    written.shards.push_back({.file = file, .bytes = digest->bytes, .xxh3 = digest->xxh3});
    for (const TensorSource& tensor : shards[i]) {
      written.total_size += tensor.bytes();
      written.weight_map[tensor.name] = file;
    }
  }
  return written;
}

Result<std::unique_ptr<host::MappedFile>> map_shard(host::Disk& disk, const std::string& directory,
                                                    const ShardEntry& shard) {
  const std::string path = directory + "/" + shard.file;
  auto file = disk.map(path);
  if (!file.ok()) return file;
  const auto bytes = (*file)->bytes();
  if (bytes.size() != shard.bytes) {
    return another_shard(path, fmt::format("{} bytes", bytes.size()), fmt::format("{}", shard.bytes));
  }
  if (const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size()); hash != shard.xxh3) {
    return another_shard(path, fmt::format("XXH3-64 {:016x}", hash), fmt::format("{:016x}", shard.xxh3));
  }
  return file;
}

Result<void> check_shard_sizes(host::Disk& disk, const std::string& directory,
                               const std::vector<ShardEntry>& shards) {
  for (const ShardEntry& shard : shards) {
    const std::string path = directory + "/" + shard.file;
    const auto size = disk.file_size(path);
    if (!size.ok()) {
      Error error = size.error();
      if (error.fix.empty()) error.fix = "restore the model directory from its origin or train again";
      return error;
    }
    if (*size != shard.bytes)
      return another_shard(path, fmt::format("{} bytes", *size), fmt::format("{}", shard.bytes));
  }
  return {};
}

Result<void> read_shard(
    host::Disk& disk, const std::string& directory, const ShardEntry& shard,
    FunctionRef<Result<void>(const std::string& path, const std::string& name, const TensorView& tensor)>
        take) {
  const auto file = map_shard(disk, directory, shard);
  if (!file.ok()) return file.error();
  const std::string path = directory + "/" + shard.file;
  const auto all = parse_safetensors(path, (*file)->bytes());
  if (!all.ok()) return all.error();
  for (const auto& [name, tensor] : *all) {
    if (auto taken = take(path, name, tensor); !taken.ok()) return taken;
  }
  return {};
}

Result<void> replace_directory(host::Disk& disk, const std::string& directory,
                               FunctionRef<Result<void>(const std::string& fresh)> write) {
  const std::string target = without_trailing_slash(directory);
  const std::string fresh = target + ".tmp";
  if (auto tidy = tidy_up(disk, target); !tidy.ok()) return tidy;
  if (auto removed = disk.remove_all(fresh); !removed.ok()) return removed;
  if (auto made = disk.make_directories(fresh); !made.ok()) return made;
  Result<void> done = write(fresh);
  if (done.ok()) done = publish(disk, fresh, target);
  // The first error is reported. The next save begins by removing files that cannot be removed now.
  if (!done.ok()) static_cast<void>(disk.remove_all(fresh).ok());
  if (!done.ok()) static_cast<void>(tidy_up(disk, target).ok());
  return done;
}

Result<std::string> find_directory(host::Disk& disk, const std::string& directory) {
  std::string found = without_trailing_slash(directory);
  const auto exists = disk.exists(found);
  if (!exists.ok()) return exists.error();
  if (*exists) return found;
  const auto old = disk.exists(found + ".old");
  if (!old.ok()) return old.error();
  return *old ? found + ".old" : found;
}

Result<void> save_model_directory(host::Disk& disk, const std::string& directory, ModelTensors tensors,
                                  FunctionRef<std::string(const WrittenShards& files)> header) {
  return replace_directory(disk, directory, [&](const std::string& fresh) -> Result<void> {
    const auto written = write_shards(disk, fresh, std::move(tensors.tensors), tensors.max_shard_bytes);
    if (!written.ok()) return written.error();
    for (const auto& [name, bytes] : tensors.files) {
      if (auto done = host::replace_file(disk, fresh + "/" + name, bytes); !done.ok()) return done;
    }
    return host::replace_file(disk, model_json_path(fresh), header(*written));
  });
}

Result<ModelJsonText> read_model_text(host::Disk& disk, const std::string& directory) {
  auto found = find_directory(disk, directory);
  if (!found.ok()) return found.error();
  std::string path = model_json_path(*found);
  auto text = host::read_text(disk, path, kMaxModelJsonBytes);
  if (!text.ok()) return text.error();
  return ModelJsonText{.directory = *std::move(found), .path = std::move(path), .text = *std::move(text)};
}

}  // namespace gossamer::tensors
