// SPDX-License-Identifier: Apache-2.0
//
// Where a run goes on that is resumed: from the newest checkpoint in its directory, whoever wrote it. What
// one process wrote several nodes can go on with, and the other way round.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include "base/counters.h"
#include "base/result.h"
#include "engines/sparse/checkpoint.h"
#include "engines/sparse/fleet/fleet_checkpoint.h"
#include "engines/sparse/trainer.h"

namespace gossamer::engine {

[[nodiscard]] CheckpointedRun checkpointed_run(const TrainInputs& inputs);

// Before train(): if a fleet's checkpoint is the newest it becomes one of this process, which needs room on
// the disk for it. kUsage where it is of another run.
[[nodiscard]] Result<void> join_fleet_checkpoint(const TrainInputs& inputs, EventSink events);

struct FleetStart {
  CheckpointInfo from;   // step 0: there is nothing to go on from
  bool trained = false;  // by one process, or put together: train() has nothing left to do
};
// Before a fleet begins: afterwards its newest whole checkpoint is that of `from.next_step`, all pieces of
// which have the right checksum; what is newer and not whole is gone. An own checkpoint of one process
// becomes one of a fleet, which needs memory and room for it.
[[nodiscard]] Result<FleetStart> prepare_fleet_start(const TrainInputs& inputs, EventSink events);

}  // namespace gossamer::engine
