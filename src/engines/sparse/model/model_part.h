// SPDX-License-Identifier: Apache-2.0
//
// A part of a model's network and of its training rows. A node that holds no more reads it from the model's
// directory (docs/protocols/model.md). Memory: the part. Files are mapped, and all files with tensors of the
// network are read once for their checksums.
//
// Thread rule: pure functions on a directory that nobody changes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "engines/sparse/model/instance_part.h"
#include "engines/sparse/model/model_json.h"
#include "host/api/compute.h"
#include "host/api/disk.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse_engine {

[[nodiscard]] sparse::NetworkShape network_shape(const ModelHeader& header);

struct ModelPart {
  sparse::Network network;                // output rows in the order of labels, without moments
  std::optional<InstancePart> instances;  // the training rows that belong to its output shards
};

// Whether a part includes its share of the training rows that the model keeps.
enum class PartInstances { kNone, kShare };

// Requires a part of a network of the header's shape; kShare requires a model that keeps training rows.
// Errors are those of load_model(), for the files and tensors that are read.
[[nodiscard]] Result<ModelPart> load_model_part(host::Disk& disk, const std::string& directory,
                                                const sparse::NetworkPart& part, PartInstances instances,
                                                host::Compute& compute);

}  // namespace gossamer::sparse_engine
