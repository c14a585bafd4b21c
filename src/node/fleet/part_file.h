// SPDX-License-Identifier: Apache-2.0
//
// Part files: what a member has trained, as it delivers it: DIRECTORY/part-NODE-STEP. Weights and biases
// alone, in f32, with a checksum; a file appears whole or not at all. Parts of one step from any members that
// cover the network between them are the network, also where some overlap.
//
//   8 bytes  length of the header, little endian
//   header   sparse_fleet.Delivered
//   weights  columns of every embedding row; of each dense layer the units' rows, then their biases; of each
//            shard its rows, then their biases; without padding
//   8 bytes  XXH3 of all before
//
// Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engines/sparse/fleet/layout.h"
#include "host/api/disk.h"
#include "learn/sparse/network.h"

namespace gossamer::node {

struct PartHeader {
  NodeId node;
  StepNumber step;  // all before it are applied
  sparse::NetworkPart part;
};

// Requires that `network` is the part.
[[nodiscard]] Result<void> save_part(host::Disk& disk, const std::string& directory, const PartHeader& header,
                                     sparse::Network& network);

struct PartFile {
  std::string path;
  PartHeader header;
};
// Of that step, in the directory; none if that is missing. Weights are not looked at.
[[nodiscard]] Result<std::vector<PartFile>> list_parts(host::Disk& disk, const std::string& directory,
                                                       const engine::FleetShape& shape, StepNumber step);
[[nodiscard]] bool cover(const std::vector<PartFile>& parts, const engine::FleetShape& shape);

// A part's weights, where they lie.
struct MappedPart {
  PartHeader header;
  std::shared_ptr<const host::MappedFile> file;
  std::span<const std::byte> weights;  // in the order above; not aligned
};
// kBadData for a damaged file.
[[nodiscard]] Result<MappedPart> map_part(host::Disk& disk, const PartFile& part);
[[nodiscard]] Error damaged_part(const std::string& path, std::string got);
// Of a run of columns or units, what is no padding.
[[nodiscard]] host::Range without_padding(const host::Range& range, std::size_t width);

// The whole network, without moments, its output rows no longer in `order`, that of the parts, but in that of
// labels. Requires cover(). kBadData for a damaged file.
[[nodiscard]] Result<sparse::Network> put_together(host::Disk& disk, const std::vector<PartFile>& parts,
                                                   const engine::FleetShape& shape,
                                                   const sparse::RowOrder& order);

}  // namespace gossamer::node
