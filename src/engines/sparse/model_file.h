// SPDX-License-Identifier: Apache-2.0
//
// The model directory: safetensors shards and model.json, as docs/protocols/model.md says. Python users read
// the shards with the `safetensors` package; nobody needs Gossamer for that.
//
// Thread rule: one thread per call; two calls on the same directory at once are not allowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engines/sparse/model.h"
#include "engines/sparse/safetensors.h"
#include "host/api/disk.h"

namespace gossamer::engine {

inline constexpr std::uint64_t kMaxShardBytes = std::uint64_t{2} << 30;

struct SaveModelOptions {
  // A shard is closed before it would pass this; a tensor that alone is larger has a shard of its own.
  std::uint64_t max_shard_bytes = kMaxShardBytes;
  // Of a network that is in no memory as a whole: its tensors, all that docs/protocols/model.md has for one.
  // Then of the model's network only the shape is looked at. What they look at outlives the call.
  std::vector<TensorSource> network = {};
};

// Writes `directory` (its parent must exist) so that a crash or a full disk at any moment leaves the model
// that was there before, if any, or the new one. Requires a consistent model (sizes agree; our bug
// otherwise).
[[nodiscard]] Result<void> save_model(host::Disk& disk, const std::string& directory, const Model& model,
                                      const SaveModelOptions& options = {});

// Reads and checks everything: checksums, shapes, types, every index, every number finite. Errors: kBadData
// with the file and the field or tensor; kRefused for a format number that this program does not know.
[[nodiscard]] Result<Model> load_model(host::Disk& disk, const std::string& directory);

}  // namespace gossamer::engine
