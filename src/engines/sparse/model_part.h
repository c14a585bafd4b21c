// SPDX-License-Identifier: Apache-2.0
//
// A part of a model's network, read from its directory (docs/protocols/model.md) by a node that holds no
// more. Memory: that of the part; the files are mapped, and all of them that have tensors of the network are
// read once for their checksums.
//
// Thread rule: pure functions on a directory that nobody changes.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "engines/sparse/model_json.h"
#include "host/api/disk.h"
#include "learn/sparse/network.h"

namespace gossamer::engine {

[[nodiscard]] sparse::NetworkShape network_shape(const ModelHeader& header);

// Output rows in the order of labels, without moments. Requires a part of a network of the header's shape.
// Errors: as load_model(), of the files and tensors that it looks at.
[[nodiscard]] Result<sparse::Network> load_network_part(host::Disk& disk, const std::string& directory,
                                                        const sparse::NetworkPart& part);

}  // namespace gossamer::engine
