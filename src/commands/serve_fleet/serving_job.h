// SPDX-License-Identifier: Apache-2.0
//
// What the lead and the members of a serving run make of a model directory that all of them can read
// (docs/protocols/sparse-serving.md).
//
// Thread rule: the thread that owns the Compute. At a member that is the thread that does its Work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/model_part.h"
#include "engines/sparse/serve/serving_engine.h"
#include "run/node_host.h"

namespace gossamer::commands {

// The engine of members that serve, as a configuration names it.
inline constexpr std::string_view kServingEngine = "sparse-serving";

struct ServingLead {
  std::string configuration;  // for the members' engines
  sparse_engine::FleetShape shape;
  // Counts of the training rows that members share out. Nothing: members answer by the net alone.
  std::optional<sparse_engine::InstanceCounts> instances = {};
  // Bytes in the memory of all members together, however many workers each has.
  std::uint64_t bytes = 0;
};
// Prepares to serve an opened model with so many nodes. Its directory is a path from the root. kShare
// requires a model that keeps training rows.
[[nodiscard]] ServingLead prepare_serving(const sparse_engine::OpenedModel& model, std::size_t nodes,
                                          sparse_engine::PartInstances instances);

// Makes a member's job. `host` and what it borrows outlive it. kBadData where the
// model is not that of the lead.
[[nodiscard]] Result<std::shared_ptr<const sparse_engine::ServingJob>> make_serving_job(
    const run::NodeHost& host, const std::string& configuration);

}  // namespace gossamer::commands
