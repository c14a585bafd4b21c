// SPDX-License-Identifier: Apache-2.0
//
// CheckpointKeeper: looks after the checkpoints that the members of a run write: which have become whole,
// what the run had cost by then, which are too old. Owner: the launcher, one thread.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>

#include "base/counters.h"
#include "base/ids.h"
#include "engines/sparse/checkpoint.h"
#include "engines/sparse/fleet/fleet_checkpoint.h"
#include "host/api/disk.h"

namespace gossamer::node {

class CheckpointKeeper {
 public:
  struct Options {
    std::string directory;
    engine::CheckpointedRun run;
    std::size_t keep = 1;      // whole ones, >= 1
    StepNumber start;          // with which the run begins: its checkpoint is there; 0: there is none
    bool keeps_start = false;  // whatever is newer: whoever comes late begins with it, too
    std::string delivered =
        {};  // directory into which those of members elsewhere come; empty: there are none
  };
  CheckpointKeeper(host::Disk& disk, Options options);

  // Event `checkpoint_written` for one that has become whole since; `info` is what is known of the run by
  // now. What cannot be read or removed now may be so the next time.
  void look(engine::CheckpointInfo info, EventSink events);
  // One of step `step` is there that this object does not look after.
  void add(StepNumber step);
  // 0: there is none.
  [[nodiscard]] StepNumber newest() const { return whole_.empty() ? StepNumber() : whole_.back(); }

 private:
  void take_delivered();
  void remove_old();

  host::Disk& disk_;
  const Options options_;
  std::deque<StepNumber> whole_;
  std::map<StepNumber, std::size_t> seen_;  // files of steps that are not whole yet
};

}  // namespace gossamer::node
