// SPDX-License-Identifier: Apache-2.0
//
// Opens a model of the sparse engine for queries or a measurement: in this process, or in several nodes. Each
// node has a part of the network and of the training records, and this process then has only names and
// weighting.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <memory>

#include "base/result.h"
#include "commands/engine/model_requests.h"
#include "commands/engine/query_session.h"
#include "run/node_host.h"

namespace gossamer::commands {

// kUsage for wishes that do not go together.
[[nodiscard]] Result<std::unique_ptr<QuerySession>> open_session(const run::NodeHost& host,
                                                                 const OpenModel& wanted);

// Measures a model on test records.
[[nodiscard]] Result<Report> measure_model(const run::NodeHost& host, const MeasureModel& wanted);

}  // namespace gossamer::commands
