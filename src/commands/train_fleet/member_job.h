// SPDX-License-Identifier: Apache-2.0
//
// What a coordinator and its members make of a prepared run. The coordinator makes the shape
// that is placed. Each member makes its job, with all that the job borrows. Both open the cache
// that `train --nodes` has filled.
//
// Thread rule: the thread that owns the Compute. At a member that is the thread that does its Work.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "commands/train_fleet/fleet_configuration.h"
#include "engines/sparse/fleet/fleet_workload.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/fleet/step/layout.h"
#include "node/files/supply.h"
#include "run/node_host.h"

namespace gossamer::commands {

// Writes down with which step the run in DIR begins. Removes DIR/nodes, with all that the nodes had there.
[[nodiscard]] Result<void> write_start(host::Disk& disk, const std::string& run, StepNumber start);

struct FleetLead {
  FleetConfiguration configuration;
  sparse_engine::FleetShape shape;
  sparse_engine::FleetWorkload::Options workload = {};
  node::Supply supply = {};
};
// Prepares the lead of the run in DIR, a path from the root. kUsage if its config is not resolved or its data
// are not imported. The run begins with the step that write_start() wrote down, or with step 0.
[[nodiscard]] Result<FleetLead> prepare_lead(const run::NodeHost& host, const std::string& run,
                                             std::size_t nodes);

// Adds the checkpoint that the run begins with to the files that members get,
// because members may be elsewhere.
[[nodiscard]] Result<void> supply_start(host::Disk& disk, FleetLead& lead);

// Makes a member's job. `host` and what it borrows outlive it. `self` names the files that it delivers. A
// member elsewhere finds the checkpoint that the run begins with among the supplied files, and delivers
// checkpoints like anything else. kBadData where the data are not those that the coordinator found.
[[nodiscard]] Result<std::shared_ptr<const sparse_engine::FleetJob>> make_member_job(
    const run::NodeHost& host, const std::string& configuration, const node::Supplied& supplied, NodeId self);

}  // namespace gossamer::commands
