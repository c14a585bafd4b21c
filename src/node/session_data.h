// SPDX-License-Identifier: Apache-2.0
//
// Sessions in `data import` and `data inspect`: DIR/records.sessions, every line good, of all sources in
// their order. Of it each run makes records with its own sessions.* keys.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <string>

#include "base/result.h"
#include "learn/data/reading.h"
#include "node/data_import.h"
#include "node/node_host.h"

namespace gossamer::node {

// Checks the sessions of the request's sources and writes them to `path`, which appears whole or not at all.
[[nodiscard]] Result<data::ReadReport> copy_sessions(const NodeHost& host, const DataImportRequest& request,
                                                     const std::string& path);

// The records that the sessions of a file make: items as features and labels.
[[nodiscard]] Result<DataLook> look_at_sessions(const NodeHost& host, const std::string& path);

}  // namespace gossamer::node
