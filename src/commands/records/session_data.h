// SPDX-License-Identifier: Apache-2.0
//
// Sessions in `data import` and `data inspect`. DIR/records.sessions has the sessions of all sources in their
// order, every line good. Each run makes records of them with its own sessions.* keys.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <string>

#include "base/result.h"
#include "commands/records/data_import.h"
#include "learn/data/read/reading.h"
#include "run/node_host.h"

namespace gossamer::commands {

// Checks the sessions of the request's sources and writes them to `path`, which appears whole or not at all.
[[nodiscard]] Result<data::ReadReport> copy_sessions(const run::NodeHost& host,
                                                     const DataImportRequest& request,
                                                     const std::string& path);

// Looks at the records that the sessions of a file make, with items as features and labels.
[[nodiscard]] Result<DataLook> look_at_sessions(const run::NodeHost& host, const std::string& path);

}  // namespace gossamer::commands
