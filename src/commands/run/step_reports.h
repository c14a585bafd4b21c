// SPDX-License-Identifier: Apache-2.0
//
// Step reports are what members tell of their steps, for progress, curve and summary. They lie in
// DIRECTORY/NODE.steps. Lines are of two kinds:
//
//   EPOCH STEP RANK MEMBERS LOSS SENT_STEPS SENT_BACKGROUND   a step
//   failed STEP MESSAGE                                       a checkpoint that could not be written
//
// LOSS is the member's loss. The last two are bytes that this life of the member has sent so far, for steps
// and otherwise. The reports are worth no more than a log. A line that cannot be written, or that was lost
// with a member, is missing, and the run goes on. A failed checkpoint is told when the disk has room again.
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
#include "commands/run/line_tails.h"
#include "engines/run/member_step.h"
#include "host/api/disk.h"

namespace gossamer::commands {

// Suffixes of the files that members write line by line: these, and those of recovery_reports.h.
[[nodiscard]] inline std::vector<std::string> growing_reports() { return {".steps", ".recoveries"}; }

class StepReports {
 public:
  StepReports(host::Disk& disk, const std::string& directory, NodeId self);
  void add(const engine::MemberStep& step);
  void add_failure(StepNumber checkpoint, const Error& error);

 private:
  void tell_failures();
  [[nodiscard]] bool append(const std::string& lines);

  std::unique_ptr<host::WritableFile> file_;  // null: the file cannot be opened
  bool torn_ = false;                         // the last line may not be whole
  std::string untold_;                        // lines of failures that are not written yet
};

struct StepLoss {
  StepNumber step;
  double loss = 0;
};

struct CheckpointFailure {
  StepNumber step;
  std::string message;
};

// Reads the steps of which all members have told, in their order. A step that was done again counts once.
class StepReportReader {
 public:
  StepReportReader(host::Disk& disk, std::string directory) : tails_(disk, std::move(directory), ".steps") {}

  // The steps that have come since the last call.
  [[nodiscard]] std::vector<StepLoss> read();
  // The failures that came with read() since the last call.
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
  // What one member has sent.
  struct Sender {
    engine::SentBytes before;  // bytes of earlier lives
    engine::SentBytes life;
    std::uint64_t steps = 0;
  };

  void take(const std::string& file, std::string_view line);
  void take_sent(Sender& sender, const engine::SentBytes& sent);
  void take_failure(std::string_view line);

  LineTails tails_;
  std::map<std::string, Sender> senders_;              // by file
  std::map<std::pair<StepNumber, Epoch>, Told> told_;  // told, but not by all members yet
  std::map<StepNumber, double> whole_;                 // not given out yet
  std::vector<CheckpointFailure> failures_;
  StepNumber next_;  // all steps before it are given out, or lost
};

}  // namespace gossamer::commands
