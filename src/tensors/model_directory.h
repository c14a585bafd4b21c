// SPDX-License-Identifier: Apache-2.0
//
// The directory of a trained model, of any engine: shards in the safetensors format, and model.json. The
// engine says what is in model.json and which tensors there are. This code writes shards, checks and reads
// them, and puts a whole directory in the place of another (docs/protocols/model.md).
//
// Thread rule: one thread per call; two calls on the same directory at once are not allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "host/api/disk.h"
#include "tensors/safetensors.h"

namespace gossamer::tensors {

inline constexpr std::uint64_t kMaxShardBytes = std::uint64_t{2} << 30;

// A shard as model.json tells of it.
struct ShardEntry {
  std::string file;
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;
};

// "model-00002-of-00003.safetensors" for index 1 of 3.
[[nodiscard]] std::string shard_name(std::size_t index, std::size_t count);

struct WrittenShards {
  std::vector<ShardEntry> shards;                 // at least one
  std::uint64_t total_size = 0;                   // bytes of all tensors
  std::map<std::string, std::string> weight_map;  // tensor: its file
};
// Writes tensors durably into shards of `directory`, in their order. A shard is closed before it would pass
// `max_shard_bytes`; a larger tensor has a shard of its own.
[[nodiscard]] Result<WrittenShards> write_shards(host::Disk& disk, const std::string& directory,
                                                 std::vector<TensorSource> tensors,
                                                 std::uint64_t max_shard_bytes);

// Maps a shard, and checks its size and checksum. kBadData for another file.
[[nodiscard]] Result<std::unique_ptr<host::MappedFile>> map_shard(host::Disk& disk,
                                                                  const std::string& directory,
                                                                  const ShardEntry& shard);
// Whether all shards are there with their sizes. It reads no contents.
[[nodiscard]] Result<void> check_shard_sizes(host::Disk& disk, const std::string& directory,
                                             const std::vector<ShardEntry>& shards);
// Passes all tensors of a shard to `take`, whose error ends it. Checks the checksum first.
[[nodiscard]] Result<void> read_shard(
    host::Disk& disk, const std::string& directory, const ShardEntry& shard,
    FunctionRef<Result<void>(const std::string& path, const std::string& name, const TensorView& tensor)>
        take);

// Calls `write` with an empty directory beside `directory`, and then puts that in its place. The parent must
// exist. A crash or a full disk at any moment leaves the earlier directory, if there was one, or the new one.
[[nodiscard]] Result<void> replace_directory(host::Disk& disk, const std::string& directory,
                                             FunctionRef<Result<void>(const std::string& fresh)> write);
// The path at which `directory` is found: after a crash NAME.old may be the model NAME.
[[nodiscard]] Result<std::string> find_directory(host::Disk& disk, const std::string& directory);

struct ModelTensors {
  std::vector<TensorSource> tensors;
  // A shard is closed before it would pass this size. A larger tensor has a shard of its own.
  std::uint64_t max_shard_bytes = kMaxShardBytes;
  std::map<std::string, std::string_view> files = {};  // other files of the directory, with their bytes
};
// Puts a whole model in the place of `directory`: its shards and other files, and model.json with the text
// that `header` gives.
[[nodiscard]] Result<void> save_model_directory(host::Disk& disk, const std::string& directory,
                                                ModelTensors tensors,
                                                FunctionRef<std::string(const WrittenShards& files)> header);

// model.json of a directory, as it is found.
struct ModelJsonText {
  std::string directory;
  std::string path;
  std::string text;
};
// kBadData for more than 64 MiB.
[[nodiscard]] Result<ModelJsonText> read_model_text(host::Disk& disk, const std::string& directory);

}  // namespace gossamer::tensors
