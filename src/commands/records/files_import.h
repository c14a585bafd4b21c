// SPDX-License-Identifier: Apache-2.0
//
// import_files(): `gossamer data import` of the kinds of files that the sparse engine trains on.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <vector>

#include "base/result.h"
#include "commands/engine/engine_entry.h"
#include "commands/engine/model_requests.h"
#include "run/node_host.h"

namespace gossamer::commands {

[[nodiscard]] std::vector<ImportKind> import_kinds();

// Requires a kind of import_kinds(). On an error the directory is as before.
[[nodiscard]] Result<Report> import_files(const run::NodeHost& host, const ImportFiles& wanted);

}  // namespace gossamer::commands
