// SPDX-License-Identifier: Apache-2.0
//
// What a coordinator and its members make of a run whose data are imported. The coordinator makes the shape
// that is placed. Each member makes its job, with all that the job borrows, from the coordinator's bytes.
//
// Thread rule: the thread that owns the Compute. At a member that is the thread that does its Work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "commands/engine/training.h"
#include "commands/train_fleet/fleet_configuration.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/config/recipe.h"
#include "engines/sparse/fleet/fleet_workload.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/fleet/step/layout.h"
#include "host/api/disk.h"
#include "node/files/supply.h"
#include "run/node_host.h"

namespace gossamer::commands {

// The engine of members that train, as a configuration names it.
inline constexpr std::string_view kSparseEngine = "sparse";

// A run of several nodes. Its data are imported.
struct FleetRun {
  std::string directory;  // DIR, from the root
  std::string id;
  sparse_engine::TrainConfig config;  // resolved
  sparse_engine::Recipe recipe;
  std::uint32_t features = 0;
  std::uint32_t labels = 0;
};

struct FleetLead {
  FleetConfiguration configuration;
  sparse_engine::FleetShape shape;
  sparse_engine::FleetWorkload::Options workload = {};
  node::Supply supply = {};
};
// Prepares a lead. kUsage where the run has no data. Members elsewhere get the checkpoint that they begin
// with as they get the data.
[[nodiscard]] Result<FleetLead> prepare_lead(host::Disk& disk, const FleetRun& run,
                                             const FleetWanted& wanted);

// Makes a member's job. `host` and what it borrows outlive it. `self` names the files that it delivers. A
// member elsewhere finds the checkpoint that the run begins with among the supplied files, and delivers
// checkpoints like anything else. kBadData where the data are not those that the coordinator found.
[[nodiscard]] Result<std::shared_ptr<const sparse_engine::FleetJob>> make_member_job(
    const run::NodeHost& host, const std::string& configuration, const node::Supplied& supplied, NodeId self);

}  // namespace gossamer::commands
