// SPDX-License-Identifier: Apache-2.0
//
// The model directory: safetensors shards and model.json, as docs/protocols/model.md says. Python users read
// the shards with the `safetensors` package; nobody needs Gossamer for that.
//
// Thread rule: one thread per call; two calls on the same directory at once are not allowed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/model/model_json.h"
#include "engines/sparse/model/model_tensors.h"
#include "host/api/disk.h"
#include "tensors/model_directory.h"
#include "tensors/safetensors.h"

namespace gossamer::sparse_engine {

struct SaveModelOptions {
  // A shard is closed before it would pass this size. A larger tensor has a shard of its own.
  std::uint64_t max_shard_bytes = tensors::kMaxShardBytes;
  // For a network that is in no memory as a whole: all its tensors (docs/protocols/model.md). Then only the
  // shape of the model's network is used. The tensors' data outlives the call.
  std::vector<tensors::TensorSource> network = {};
};

// Writes `directory` (its parent must exist). A crash or a full disk at any moment leaves the earlier model,
// if any, or the new one. Requires a consistent model (sizes agree; otherwise it is our bug). kBadData for
// what load_model() refuses: a number that is not finite, with its training record or its tensor.
[[nodiscard]] Result<void> save_model(host::Disk& disk, const std::string& directory, const Model& model,
                                      const SaveModelOptions& options = {});

// Reads and checks everything: checksums, shapes, types, every index, every number finite. The error is
// kBadData with the file and the field or tensor, and kRefused for a format number that this program does not
// know.
[[nodiscard]] Result<Model> load_model(host::Disk& disk, const std::string& directory,
                                       Reading reading = Reading::kAll);

// Whether all files of the model are there, with the sizes and checksums that model.json tells. The error is
// that of load_model().
[[nodiscard]] Result<void> check_model_files(host::Disk& disk, const std::string& directory);

// The same in steps, for callers that want parts of it.
struct OpenedModel {
  std::string directory;          // of its files: after a crash NAME.old may be the model NAME
  std::uint64_t header_hash = 0;  // XXH3-64 of model.json, which names the contents of all other files
  ModelHeader header;
};
[[nodiscard]] Result<OpenedModel> open_model_header(host::Disk& disk, const std::string& directory);

}  // namespace gossamer::sparse_engine
