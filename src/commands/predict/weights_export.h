// SPDX-License-Identifier: Apache-2.0
//
// export_weights(): `gossamer export` of a model of the sparse engine. It finds the format that a user names,
// exports (model_export.h), and says how the file is read.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include "base/result.h"
#include "commands/engine/model_requests.h"
#include "run/node_host.h"

namespace gossamer::commands {

[[nodiscard]] Result<Report> export_weights(const run::NodeHost& host, const ExportModel& wanted);

}  // namespace gossamer::commands
