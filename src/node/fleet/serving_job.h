// SPDX-License-Identifier: Apache-2.0
//
// What the lead and the members of a serving run make of a model directory that all of them can read
// (docs/protocols/sparse-serving.md).
//
// Thread rule: the thread that owns the Compute: of a member the one that does its Work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "engines/sparse/fleet/layout.h"
#include "engines/sparse/fleet/serving_engine.h"
#include "engines/sparse/model_file.h"
#include "engines/sparse/model_part.h"
#include "node/node_host.h"

namespace gossamer::node {

struct ServingLead {
  std::string configuration;  // for the members' engines
  engine::FleetShape shape;
  std::optional<engine::InstanceCounts> instances = {};  // that members share out; nothing: by the net alone
  std::uint64_t bytes = 0;  // in the memory of all members together, however many workers each has
};
// Of an opened model, whose directory is a path from the root, and so many nodes. kShare: of one that keeps
// training rows.
[[nodiscard]] ServingLead prepare_serving(const engine::OpenedModel& model, std::size_t nodes,
                                          engine::PartInstances instances);

// `host` and what it borrows outlive the job. kBadData where the model is not that of the lead.
[[nodiscard]] Result<std::shared_ptr<const engine::ServingJob>> make_serving_job(
    const NodeHost& host, const std::string& configuration);

}  // namespace gossamer::node
