// SPDX-License-Identifier: Apache-2.0
//
// Where a resumed run goes on: at the newest checkpoint in its directory, whether one process or several
// nodes wrote it. Several nodes can go on with what one process wrote, and one process with what several
// nodes wrote.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include "base/counters.h"
#include "base/result.h"
#include "engines/sparse/fleet/fleet_checkpoint.h"
#include "engines/sparse/train/trainer.h"
#include "tensors/checkpoint.h"

namespace gossamer::sparse_engine {

[[nodiscard]] CheckpointedRun checkpointed_run(const TrainInputs& inputs);

// Call before train(). If a fleet's checkpoint is the newest, it becomes one of this process, which needs
// room on the disk for it. kUsage if it belongs to another run.
[[nodiscard]] Result<void> join_fleet_checkpoint(const TrainInputs& inputs, EventSink events);

struct FleetStart {
  tensors::CheckpointInfo from;  // step 0: there is nothing to go on from
  bool trained = false;          // by one process, or put together: train() has nothing left to do
};
// Call before a fleet begins. Afterwards the fleet's newest whole checkpoint is the one of `from.next_step`.
// All its pieces have the right checksum, and newer checkpoints, which are not whole, are gone. One process's
// own checkpoint becomes one of a fleet, which needs memory and room for it.
[[nodiscard]] Result<FleetStart> prepare_fleet_start(const TrainInputs& inputs, EventSink events);

}  // namespace gossamer::sparse_engine
