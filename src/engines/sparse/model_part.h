// SPDX-License-Identifier: Apache-2.0
//
// A part of a model's network and of its training rows, read from its directory (docs/protocols/model.md) by
// a node that holds no more. Memory: that of the part; the files are mapped, and all of them that have
// tensors of the network are read once for their checksums.
//
// Thread rule: pure functions on a directory that nobody changes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "engines/sparse/instance_part.h"
#include "engines/sparse/model_json.h"
#include "host/api/compute.h"
#include "host/api/disk.h"
#include "learn/sparse/network.h"

namespace gossamer::engine {

[[nodiscard]] sparse::NetworkShape network_shape(const ModelHeader& header);

struct ModelPart {
  sparse::Network network;                // output rows in the order of labels, without moments
  std::optional<InstancePart> instances;  // those that go with its output shards
};

// Of the training rows that a model keeps, what a reader of a part wants.
enum class PartInstances { kNone, kShare };

// Requires a part of a network of the header's shape; kShare: of a model that keeps training rows. Errors: as
// load_model(), of the files and tensors that it looks at.
[[nodiscard]] Result<ModelPart> load_model_part(host::Disk& disk, const std::string& directory,
                                                const sparse::NetworkPart& part, PartInstances instances,
                                                host::Compute& compute);

}  // namespace gossamer::engine
