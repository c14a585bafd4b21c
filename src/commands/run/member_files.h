// SPDX-License-Identifier: Apache-2.0
//
// MemberFiles: the files that a member of a led run writes for its lead, the checkpoint that it begins with,
// and its reports. A state is named sections (tensors/fleet_files.h), of which each member has some.
//
//   checkpoints                         in the run's directory, or delivered from elsewhere
//   the member's part of the result     as a checkpoint of the last step, delivered
//
// Thread rule: one thread, that which computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "commands/run/led_configuration.h"
#include "commands/run/member_report.h"
#include "host/api/disk.h"
#include "node/files/supply.h"
#include "tensors/checkpoint.h"

namespace gossamer::commands {

class MemberFiles {
 public:
  // The disk outlives it.
  MemberFiles(host::Disk& disk, const node::Supplied& supplied, NodeId self);

  // The path of a file of the Supply, by its name.
  [[nodiscard]] std::string path_of(const std::string& name) const;
  // Takes what the lead tells of the run. kBadData where the checkpoint that it begins with cannot be read.
  [[nodiscard]] Result<void> begin(const LedConfiguration& told);
  // A section of so many bytes in that checkpoint; nothing where the run began with step 0. kBadData for a
  // section that the checkpoint lacks, has damaged, or has in another size.
  // A damaged file in whose place another was read is told.
  [[nodiscard]] Result<std::optional<std::span<const std::byte>>> at_start(const std::string& section,
                                                                           std::uint64_t bytes);

  void tell(const MemberReport& report) const { supplied_.tell(report_bytes(report)); }
  // Saves this member's sections before step `next`. A failure costs one checkpoint and is told. The
  // checkpoint that the run began with is there already, and is left alone.
  void save(StepNumber next, std::span<const tensors::NamedTensor> sections);
  // Delivers this member's part of the result.
  [[nodiscard]] Result<void> deliver(std::span<const tensors::NamedTensor> sections);
  // Whether all that was saved and delivered is where it outlives this node.
  [[nodiscard]] bool lasts() const;

 private:
  [[nodiscard]] tensors::CheckpointInfo info(StepNumber next) const;
  [[nodiscard]] const std::string& checkpoints() const;

  host::Disk& disk_;
  const node::Supplied supplied_;
  const NodeId self_;
  LedConfiguration told_;
  std::vector<tensors::CheckpointFile> start_;
  DamageReports damage_{[tell = supplied_.tell](const MemberReport& one) { tell(report_bytes(one)); }};
};

// Whether the coordinator has all files, of checkpoints and of the result, that this machine is to deliver
// from the directory.
[[nodiscard]] bool fleet_files_brought(host::Disk& disk, const std::string& directory);

}  // namespace gossamer::commands
