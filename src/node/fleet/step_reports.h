// SPDX-License-Identifier: Apache-2.0
//
// What members tell of their steps, for progress, curve and summary: DIRECTORY/NODE.steps, a line a step with
// epoch, step, rank, members, the member's share of the loss, and what this life of it has sent, for steps
// and otherwise; and a line "failed STEP MESSAGE" for a checkpoint that could not be written. Worth no more
// than a log: what cannot be written or was lost with a member is missing, and the run goes on; of
// checkpoints it is told when the disk has room again.
//
// Thread rule: each object one thread; a file may be read while it is written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engines/sparse/fleet/fleet_job.h"
#include "host/api/disk.h"
#include "node/fleet/line_tails.h"

namespace gossamer::node {

class StepReports {
 public:
  StepReports(host::Disk& disk, const std::string& directory, NodeId self);
  void add(const engine::FleetStep& step);
  void add_failure(StepNumber checkpoint, const Error& error);

 private:
  void tell_failures();
  [[nodiscard]] bool append(const std::string& lines);

  std::unique_ptr<host::WritableFile> file_;  // null: it cannot be opened
  bool torn_ = false;                         // the last line may not be whole
  std::string untold_;                        // lines of failures
};

struct StepLoss {
  StepNumber step;
  double loss = 0;
};

struct CheckpointFailure {
  StepNumber step;
  std::string message;
};

// Steps of which all members have told, in their order. Those that were done again count once.
class StepReportReader {
 public:
  StepReportReader(host::Disk& disk, std::string directory) : tails_(disk, std::move(directory), ".steps") {}

  // What has come since the last call.
  [[nodiscard]] std::vector<StepLoss> read();
  // Those that came with read() since the last call.
  [[nodiscard]] std::vector<CheckpointFailure> take_failures() { return std::exchange(failures_, {}); }

  // Bytes that a member has sent for a step, and otherwise during one: means over all steps of all members.
  struct BytesOfStep {
    double steps = 0;
    double background = 0;
  };
  [[nodiscard]] BytesOfStep bytes_of_step() const;

 private:
  struct Told {
    std::map<std::size_t, double> loss;  // by rank
    std::size_t members = 0;
  };
  // Of one member.
  struct Sender {
    engine::SentBytes before;  // by lives that are over
    engine::SentBytes life;
    std::uint64_t steps = 0;
  };

  void take(const std::string& file, std::string_view line);
  void take_sent(Sender& sender, const engine::SentBytes& sent);
  void take_failure(std::string_view line);

  LineTails tails_;
  std::map<std::string, Sender> senders_;              // by file
  std::map<std::pair<StepNumber, Epoch>, Told> told_;  // not by all yet
  std::map<StepNumber, double> whole_;                 // not given out yet
  std::vector<CheckpointFailure> failures_;
  StepNumber next_;  // all before it are given out, or lost
};

}  // namespace gossamer::node
