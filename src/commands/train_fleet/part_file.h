// SPDX-License-Identifier: Apache-2.0
//
// A part file is what a member has trained, as it delivers it: DIRECTORY/part-NODE-STEP. It has weights and
// biases alone, in f32, with a checksum. It appears whole or not at all. Parts of one step, from any members,
// that cover the network between them are the network, also where some overlap.
//
//   8 bytes  length of the header, little endian
//   header   sparse_fleet.Delivered
//   weights  columns of every embedding row; of each dense layer the units' rows, then their biases; of each
//            shard its rows, then their biases; without padding
//   8 bytes  XXH3 of all bytes before
//
// Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engines/sparse/fleet/step/layout.h"
#include "host/api/disk.h"
#include "learn/sparse/network/network.h"

namespace gossamer::commands {

struct PartHeader {
  NodeId node;
  StepNumber step;  // all steps before it are applied
  sparse::NetworkPart part;
  std::string run = {};  // the id of the run; empty in a file of an earlier version
};

// Requires that `network` is the part.
[[nodiscard]] Result<void> save_part(host::Disk& disk, const std::string& directory, const PartHeader& header,
                                     sparse::Network& network);

struct PartFile {
  std::string path;
  PartHeader header;
};
// The parts of that step in the directory; none if the directory is missing. Weights are not looked at.
[[nodiscard]] Result<std::vector<PartFile>> list_parts(host::Disk& disk, const std::string& directory,
                                                       const sparse_engine::FleetShape& shape,
                                                       StepNumber step);
[[nodiscard]] bool cover(const std::vector<PartFile>& parts, const sparse_engine::FleetShape& shape);

// What the name of a part file says.
struct PartName {
  NodeId node;
  StepNumber step;
};
[[nodiscard]] std::string part_name(const PartName& part);
[[nodiscard]] std::optional<PartName> read_part_name(std::string_view name);
// Looks whether the file is undamaged, of that run, node and step, and has no pieces but these. kBadData if
// not.
struct OwnedPart {
  sparse_engine::FleetShape shape;
  PartName name;
  sparse_engine::Pieces owned;
  std::string run;
};
[[nodiscard]] Result<void> check_part(host::Disk& disk, const std::string& path, const OwnedPart& part);

// A part's weights, where they lie in the file.
struct MappedPart {
  PartHeader header;
  std::shared_ptr<const host::MappedFile> file;
  std::span<const std::byte> weights;  // in the order above; not aligned
};
// kBadData for a damaged file.
[[nodiscard]] Result<MappedPart> map_part(host::Disk& disk, const PartFile& part);
[[nodiscard]] Error damaged_part(const std::string& path, std::string got);
// The part of a range of columns or units that is no padding.
[[nodiscard]] host::Range without_padding(const host::Range& range, std::size_t width);

// The whole network, without moments. Its output rows are no longer in `order`, the order of the parts, but
// in the order of labels. Requires cover(). kBadData for a damaged file.
[[nodiscard]] Result<sparse::Network> put_together(host::Disk& disk, const std::vector<PartFile>& parts,
                                                   const sparse_engine::FleetShape& shape,
                                                   const sparse::RowOrder& order);

}  // namespace gossamer::commands
