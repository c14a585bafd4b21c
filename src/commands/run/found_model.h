// SPDX-License-Identifier: Apache-2.0
//
// The model of any engine in a directory that a user names, and what to do where there is none. Thread rule:
// plain functions.
#pragma once

#include <string>

#include "base/result.h"
#include "run/node_host.h"

namespace gossamer::commands {

// The path of the model of DIR, which is a run directory or a model directory. kFailed when there is none.
[[nodiscard]] Result<std::string> find_model(const run::NodeHost& host, const std::string& directory);
// The error of a model that was found in DIR. Where it is damaged or has lost a file, and DIR is its run, the
// error says how the run writes it again. Reads the newest checkpoint for that.
[[nodiscard]] Error model_error(const run::NodeHost& host, const std::string& directory, Error error);

}  // namespace gossamer::commands
