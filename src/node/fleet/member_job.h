// SPDX-License-Identifier: Apache-2.0
//
// What a coordinator and its members make of a prepared run: the shape that is placed, and the job of each
// member with all that it borrows. Both open the cache that `train --nodes` has filled.
//
// Thread rule: the thread that owns the Compute: of a member the one that does its Work.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engines/sparse/fleet/fleet_job.h"
#include "engines/sparse/fleet/fleet_workload.h"
#include "engines/sparse/fleet/layout.h"
#include "node/cluster/stored_file.h"
#include "node/fleet/fleet_configuration.h"
#include "node/node_host.h"

namespace gossamer::node {

// Says with which step the run in DIR begins. What the nodes have had so far in DIR/nodes is gone.
[[nodiscard]] Result<void> write_start(host::Disk& disk, const std::string& run, StepNumber start);

struct FleetLead {
  FleetConfiguration configuration;
  engine::FleetShape shape;
  engine::FleetWorkload::Options workload = {};
  std::vector<StoredFile> data = {};  // that members get
};
// Of the run in DIR, a path from the root, whose config is resolved and whose data are imported: kUsage if
// they are not. It begins with the step that write_start() has said, or with step 0.
[[nodiscard]] Result<FleetLead> prepare_lead(const NodeHost& host, const std::string& run, std::size_t nodes);

// Of a run whose members may be elsewhere: they get the checkpoint that it begins with, too.
[[nodiscard]] Result<void> supply_start(host::Disk& disk, FleetLead& lead);

// `host` and what it borrows outlive the job. `self` names the files that it delivers. kBadData where the
// data are not those that the coordinator found.
[[nodiscard]] Result<std::shared_ptr<const engine::FleetJob>> make_member_job(
    const NodeHost& host, const std::string& configuration, NodeId self);

}  // namespace gossamer::node
