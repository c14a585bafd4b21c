// SPDX-License-Identifier: Apache-2.0
//
// `gossamer doctor HOST:PORT` finds out what stands between this machine and a coordinator. It looks
// at name, port, TLS, run, clocks, credentials and program, in this order. It stops at the first that
// fails, because what comes after cannot be seen. The clocks are seen without trusting TLS, which
// fails where they are far apart.
//
// Thread rule: a plain function; it blocks.
#pragma once

#include <vector>

#include "commands/doctor.h"
#include "node/places.h"
#include "run/node_host.h"

namespace gossamer::commands {

// The asker has a token, or credentials in a directory. With neither, the doctor looks at
// name, port, TLS and clocks alone.
[[nodiscard]] std::vector<Finding> examine_coordinator(const run::NodeHost& host, const host::Endpoint& at,
                                                       const node::Asker& asker, const std::string& program);

}  // namespace gossamer::commands
