// SPDX-License-Identifier: Apache-2.0
//
// CheckpointKeeper looks after the checkpoints that the members of a run write. It finds those that have
// become whole, notes what the run had cost by then, and removes old ones. Owner: the lead, one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/ids.h"
#include "commands/engine/training.h"
#include "host/api/disk.h"
#include "tensors/checkpoint.h"

namespace gossamer::commands {

class CheckpointKeeper {
 public:
  struct Options {
    std::string directory;
    std::string fingerprint;  // of the run's checkpoints
    // Whether the files of a step are a whole checkpoint.
    std::function<bool(StepNumber step)> whole;
    std::size_t keep = 1;  // whole ones, >= 1
    // The step that the run begins with. Its checkpoint is there. 0: there is none.
    StepNumber start;
    // Whether it keeps the start's checkpoint, whatever is newer: a node that comes late begins with it, too.
    bool keeps_start = false;
    std::string delivered =
        {};  // directory into which checkpoints of members elsewhere come; empty: there are none
  };
  CheckpointKeeper(host::Disk& disk, Options options);

  // Files of a member of checkpoints that are not whole. Its oldest ones go.
  static constexpr std::size_t kMostUnfinished = 16;
  // A step whose files are as many as before is looked at again after so many looks. A file of it may have
  // been replaced, or could not be read.
  static constexpr std::uint64_t kLookAgain = 50;

  // Looks for new checkpoints, and sends the event `checkpoint_written` for each that has
  // become whole. `info` is what is known of the run by now. One with a record was found by an earlier lead,
  // which has told of it. A file that cannot be read or removed now is tried again the next time.
  void look(const tensors::CheckpointInfo& info, EventSink events);
  // Notes anew what is known of the run by now, beside the newest checkpoint.
  void record(tensors::CheckpointInfo info) const;
  // Adds a checkpoint of step `step` that this object has not found itself.
  void add(StepNumber step);
  // The newest step, after the newest whole checkpoint, of which there are some files.
  [[nodiscard]] std::optional<StepNumber> unfinished() const;
  // Removes the files of all steps after the newest whole checkpoint.
  void forget_unfinished();
  // The step of the newest whole checkpoint; 0 where there is none.
  [[nodiscard]] StepNumber newest() const { return whole_.empty() ? StepNumber() : whole_.back(); }

 private:
  void take_delivered();
  void bound_unfinished(const std::map<StepNumber, std::vector<std::string>>& delivered);
  void remove_old();

  host::Disk& disk_;
  const Options options_;
  std::deque<StepNumber> whole_;
  std::map<StepNumber, std::size_t> seen_;  // files of steps that are not whole yet
  std::uint64_t looks_ = 0;
};

// What the run had cost by the last of its whole checkpoints, as earlier leads have noted it.
[[nodiscard]] tensors::RunCost cost_by_checkpoints(host::Disk& disk, const std::string& directory,
                                                   const LedTraining& training);

}  // namespace gossamer::commands
