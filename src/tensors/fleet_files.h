// SPDX-License-Identifier: Apache-2.0
//
// The files of a checkpoint that several members have written (docs/protocols/checkpoint.md, "Of several
// nodes"). Each member writes what it held, in a file of its own:
//
//   step-000000000012.3.part   what node 3 held before step 12
//   step-000000000012.run      what the run had cost by then; no part of the checkpoint
//
// Which sections make a checkpoint whole is known to the engine alone.
//
// Thread rule: plain functions and values; one thread uses each.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "base/function_ref.h"
#include "base/ids.h"
#include "base/result.h"
#include "host/api/disk.h"
#include "tensors/checkpoint.h"

namespace gossamer::tensors {

// Writes the file of a member durably, for the step `info.next_step`. An error leaves all other files as they
// are.
[[nodiscard]] Result<void> write_fleet_file(host::Disk& disk, const std::string& directory, NodeId node,
                                            const CheckpointInfo& info, std::span<const NamedTensor> tensors);
// Records what the run had cost when it had come to `info.next_step`. A run that goes on from there shows it
// in its summary.
[[nodiscard]] Result<void> write_run_record(host::Disk& disk, const std::string& directory,
                                            const CheckpointInfo& info);

// What the name of a member's file says. The name of a file of the same step and member is always the same.
struct FleetFileName {
  StepNumber step;
  NodeId node;
};
[[nodiscard]] std::string fleet_file_name(const FleetFileName& file);
// Nothing for any other name, such as that of a record.
[[nodiscard]] std::optional<FleetFileName> read_fleet_file_name(std::string_view name);

// Whether it is the name of a record of what the run had cost.
[[nodiscard]] bool is_run_record(std::string_view name);
// Whether a finished file of a fleet's checkpoint can have this name.
[[nodiscard]] bool is_fleet_file(std::string_view name);
// The files of fleets' checkpoints in the directory, unfinished ones too, by step.
[[nodiscard]] Result<std::map<StepNumber, std::vector<std::string>>> list_fleet_files(
    host::Disk& disk, const std::string& directory);

// Looks whether a member's file is undamaged, of that step and fingerprint, and has no sections but those
// that `may_have` allows by name and size. kBadData if not.
struct WantedFleetFile {
  StepNumber step;
  std::string fingerprint;
};
[[nodiscard]] Result<void> check_fleet_file(
    host::Disk& disk, const std::string& path, const WantedFleetFile& wanted,
    FunctionRef<bool(const std::string& name, std::uint64_t bytes)> may_have);

// The readable files of members of one step, whether they are a whole checkpoint or not.
struct FleetFiles {
  std::vector<CheckpointFile> files;
  CheckpointInfo info;  // of the record beside them, if there is one
};
// Nothing if no file can be read. A damaged file is reported as event `checkpoint_damaged`. kUsage for files
// of another run.
[[nodiscard]] Result<std::optional<FleetFiles>> open_fleet_files(host::Disk& disk,
                                                                 const std::string& directory,
                                                                 std::string_view fingerprint,
                                                                 StepNumber step, EventSink events);
// The bytes of a section, from the first file that has it undamaged; the others are reported as event
// `checkpoint_damaged`. kBadData if no file has it undamaged.
[[nodiscard]] Result<std::span<const std::byte>> fleet_section(std::span<const CheckpointFile> files,
                                                               const std::string& name, EventSink events);

}  // namespace gossamer::tensors
