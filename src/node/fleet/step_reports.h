// SPDX-License-Identifier: Apache-2.0
//
// What members tell of their steps, for progress and curve: DIRECTORY/NODE.steps, a line a step with epoch,
// step, rank, members and the member's share of the loss. Worth no more than a log: what cannot be written
// or was lost with a member is missing, and the run goes on.
//
// Thread rule: each object one thread; a file may be read while it is written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "engines/sparse/fleet/fleet_job.h"
#include "host/api/disk.h"

namespace gossamer::node {

class StepReports {
 public:
  StepReports(host::Disk& disk, const std::string& directory, NodeId self);
  void add(const engine::FleetStep& step);

 private:
  std::unique_ptr<host::WritableFile> file_;  // null: it cannot be written
};

struct StepLoss {
  StepNumber step;
  double loss = 0;
};

// Steps of which all members have told, in their order. Those that were done again count once.
class StepReportReader {
 public:
  StepReportReader(host::Disk& disk, std::string directory) : disk_(disk), directory_(std::move(directory)) {}

  // What has come since the last call.
  [[nodiscard]] std::vector<StepLoss> read();

 private:
  struct Source {
    std::unique_ptr<host::SequentialFile> file;
    std::string rest = {};  // of a line that is not whole yet
  };
  struct Told {
    std::map<std::size_t, double> loss;  // by rank
    std::size_t members = 0;
  };

  void read_from(Source& source);
  void take(const std::string& line);

  host::Disk& disk_;
  std::string directory_;
  std::map<std::string, Source> sources_;              // by name
  std::map<std::pair<StepNumber, Epoch>, Told> told_;  // not by all yet
  std::map<StepNumber, double> whole_;                 // not given out yet
  StepNumber next_;                                    // all before it are given out, or lost
};

}  // namespace gossamer::node
