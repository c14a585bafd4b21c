// SPDX-License-Identifier: Apache-2.0
//
// FleetCheckpoint: the state of a run between two steps, as its members have written it
// (docs/protocols/checkpoint.md, "Of several nodes"). Each member writes what it held. The files of one step
// are the state if together they have all pieces of the network. It does not matter which members wrote them,
// or where they overlap. Files that lack a piece are worth nothing. Any number of members, with shards of any
// size, may go on from the state.
//
// Thread rule: plain functions and values; one thread uses each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "base/ids.h"
#include "base/result.h"
#include "engines/sparse/fleet/step/layout.h"
#include "host/api/disk.h"
#include "learn/sparse/network/network.h"
#include "tensors/checkpoint.h"

namespace gossamer::sparse_engine {

// The most bytes of a member's file: it has all pieces, in the padded rows that they have on the disk.
[[nodiscard]] std::uint64_t most_part_bytes(const FleetShape& shape, const sparse::TableMoments& moments);

// A copy of a member's part, so that it can be written while steps go on.
class PartCopy {
 public:
  // Copies all of `part`, which has moments.
  PartCopy(const FleetShape& shape, const sparse::TableMoments& moments, sparse::Network& part);

  // Writes the copy durably, as the file of `node`. An error leaves all other files as they are.
  [[nodiscard]] Result<void> write(host::Disk& disk, const std::string& directory, NodeId node,
                                   const tensors::CheckpointInfo& info);

 private:
  struct Section {
    std::string name;
    std::vector<std::byte> bytes;
  };
  std::vector<Section> sections_;
};

// What a checkpoint must match to belong to a run.
struct CheckpointedRun {
  sparse::NetworkShape network;
  sparse::TableMoments moments;
  std::string fingerprint;
};

// Looks whether a member's file of that step is undamaged, and has no pieces but these. kBadData if not.
struct OwnedFile {
  FleetShape shape;
  StepNumber step;
  Pieces owned;
};
[[nodiscard]] Result<void> check_part_file(host::Disk& disk, const std::string& path,
                                           const CheckpointedRun& run, const OwnedFile& file);

class FleetCheckpoint {
 public:
  // Opens the newest checkpoint that has all pieces. Empty when there is none. kUsage for files of another
  // run. With Verify::kAll a piece whose checksum is wrong does not count. Its file is reported as event
  // `checkpoint_damaged`. If no other file has the piece, the next older checkpoint is taken.
  enum class Verify { kAll, kWhenRead };
  [[nodiscard]] static Result<std::optional<FleetCheckpoint>> open_newest(host::Disk& disk,
                                                                          const std::string& directory,
                                                                          const CheckpointedRun& run,
                                                                          Verify verify, EventSink events);
  // Opens the checkpoint of one step. kBadData if a piece of it is missing. A file that cannot be read is
  // reported as event `checkpoint_damaged`.
  [[nodiscard]] static Result<FleetCheckpoint> open(host::Disk& disk, const std::string& directory,
                                                    const CheckpointedRun& run, StepNumber step,
                                                    EventSink events);

  [[nodiscard]] StepNumber step() const { return step_; }
  // The facts of the run that wrote it. Cost and losses come from the record beside the checkpoint, if there
  // is one.
  [[nodiscard]] const tensors::CheckpointInfo& info() const { return info_; }
  // Fills the part that the network holds, in the network's own order of rows. `label_count` is [labels], by
  // label. A damaged copy of a piece is reported as event `checkpoint_damaged`, and the next file that has
  // the piece is read. kBadData names a damaged file where no copy of a piece is left.
  [[nodiscard]] Result<void> restore(sparse::Network& part, std::span<const std::uint32_t> label_count,
                                     EventSink events) const;

 private:
  FleetCheckpoint() = default;
  [[nodiscard]] static Result<std::optional<FleetCheckpoint>> gather(host::Disk& disk,
                                                                     const std::string& directory,
                                                                     const CheckpointedRun& run,
                                                                     StepNumber step, EventSink events);
  void find_pieces();
  [[nodiscard]] bool whole() const { return pieces_.size() == all_pieces(shape_); }
  void verify(EventSink events);
  [[nodiscard]] Result<std::span<const std::byte>> bytes_of(PieceId piece, EventSink events) const;

  StepNumber step_;
  FleetShape shape_;
  sparse::TableMoments moments_ = {};
  tensors::CheckpointInfo info_;
  std::vector<tensors::CheckpointFile> files_;
  std::map<PieceId, std::vector<std::size_t>> pieces_;  // the files that have the piece
};

}  // namespace gossamer::sparse_engine
