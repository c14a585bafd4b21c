// SPDX-License-Identifier: Apache-2.0
//
// FleetCheckpoint: the state of a run between two steps, as its members have written it, each what it held
// (docs/protocols/checkpoint.md, "Of several nodes"). Files of one step that have all pieces of the network
// between them are the state, whoever wrote them and where they overlap; others are worth nothing. Any number
// of members, with shards of any size, may go on from it.
//
// Thread rule: plain functions and values; one thread each.
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
#include "engines/sparse/checkpoint.h"
#include "engines/sparse/fleet/layout.h"
#include "host/api/disk.h"
#include "learn/sparse/network.h"

namespace gossamer::engine {

// What a part holds, copied, so that it can be written while steps go on.
class PartCopy {
 public:
  // Copies all of `part`, which has moments.
  PartCopy(const FleetShape& shape, const sparse::TableMoments& moments, sparse::Network& part);

  // As the file of `node`, durably. An error leaves all other files as they are.
  [[nodiscard]] Result<void> write(host::Disk& disk, const std::string& directory, NodeId node,
                                   const CheckpointInfo& info);

 private:
  struct Section {
    std::string name;
    std::vector<std::byte> bytes;
  };
  std::vector<Section> sections_;
};

// What a checkpoint must be of.
struct CheckpointedRun {
  sparse::NetworkShape network;
  sparse::TableMoments moments;
  std::string fingerprint;
};

class FleetCheckpoint {
 public:
  // The newest of which there are all pieces; empty when there is none. kUsage for files of another run.
  // Where `verify` is kAll no piece counts whose checksum is wrong: such a file is told of as event
  // `checkpoint_damaged`, and the next older checkpoint taken if no other file has the piece.
  enum class Verify { kAll, kWhenRead };
  [[nodiscard]] static Result<std::optional<FleetCheckpoint>> open_newest(host::Disk& disk,
                                                                          const std::string& directory,
                                                                          const CheckpointedRun& run,
                                                                          Verify verify, EventSink events);
  // That of one step: kBadData if not all of it is there.
  [[nodiscard]] static Result<FleetCheckpoint> open(host::Disk& disk, const std::string& directory,
                                                    const CheckpointedRun& run, StepNumber step);

  [[nodiscard]] StepNumber step() const { return step_; }
  // Of the run that wrote it; cost and losses are those of the record beside it, if there is one.
  [[nodiscard]] const CheckpointInfo& info() const { return info_; }
  // Fills what `part` holds, in the order of rows that it has. `label_count` is [labels], by label. kBadData
  // names a file that is damaged.
  [[nodiscard]] Result<void> restore(sparse::Network& part, std::span<const std::uint32_t> label_count) const;

 private:
  FleetCheckpoint() = default;
  [[nodiscard]] static Result<std::optional<FleetCheckpoint>> gather(host::Disk& disk,
                                                                     const std::string& directory,
                                                                     const CheckpointedRun& run,
                                                                     StepNumber step, EventSink events);
  void find_pieces();
  [[nodiscard]] bool whole() const { return pieces_.size() == all_pieces(shape_); }
  void verify(EventSink events);
  [[nodiscard]] Result<std::span<const std::byte>> bytes_of(PieceId piece) const;

  StepNumber step_;
  FleetShape shape_;
  sparse::TableMoments moments_ = {};
  CheckpointInfo info_;
  std::vector<CheckpointFile> files_;
  std::map<PieceId, std::vector<std::size_t>> pieces_;  // the files that have it
};

// Says what the run had cost when it had come to `info.next_step`: for the summary of a run that goes on from
// there. It is no part of the checkpoint.
[[nodiscard]] Result<void> write_run_record(host::Disk& disk, const std::string& directory,
                                            const CheckpointInfo& info);

// Whether a finished file of a fleet's checkpoint can have this name.
[[nodiscard]] bool is_fleet_checkpoint_file(std::string_view name);
// Files of fleets' checkpoints in the directory, unfinished ones too, by step.
[[nodiscard]] Result<std::map<StepNumber, std::vector<std::string>>> fleet_checkpoint_files(
    host::Disk& disk, const std::string& directory);

}  // namespace gossamer::engine
