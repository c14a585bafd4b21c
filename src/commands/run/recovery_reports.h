// SPDX-License-Identifier: Apache-2.0
//
// Recovery reports are what members tell of recoveries, for the run's events and summary. They lie in
// DIRECTORY/NODE.recoveries, a JSON object a line. All members tell of the same recovery. It counts with the
// figures of the member that it cost most. The reports are worth no more than a log.
//
// Thread rule: each object one thread; a file may be read while it is written.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "commands/run/line_tails.h"
#include "engines/run/fleet_recovery.h"
#include "host/api/disk.h"

namespace gossamer::commands {

class RecoveryReports {
 public:
  // Writes the reports of one member. The file appears with the first recovery.
  RecoveryReports(host::Disk& disk, const std::string& directory, NodeId self);
  void add(const engine::FleetRecovery& recovery);

 private:
  host::Disk& disk_;
  const std::string path_;
  std::unique_ptr<host::WritableFile> file_;
};

class RecoveryReportReader {
 public:
  RecoveryReportReader(host::Disk& disk, std::string directory)
      : tails_(disk, std::move(directory), ".recoveries") {}

  // Those that ended before step `before`, in their order; each is given out once. Members tell of a recovery
  // before they do the step after the next.
  [[nodiscard]] std::vector<engine::FleetRecovery> read(StepNumber before);

 private:
  void take(std::string_view line);

  LineTails tails_;
  std::map<Epoch, engine::FleetRecovery> told_;  // not given out yet
  std::set<Epoch> given_;
};

}  // namespace gossamer::commands
