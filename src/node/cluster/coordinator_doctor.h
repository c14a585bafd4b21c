// SPDX-License-Identifier: Apache-2.0
//
// What stands between this machine and a coordinator: `gossamer doctor HOST:PORT`. Looks at one thing after
// the other, name, port, TLS, run, clocks, credentials, program, and stops at the first that fails: what
// comes after it cannot be seen. The clocks are seen without trusting TLS, which fails where they are far
// apart.
//
// Thread rule: a plain function; it blocks.
#pragma once

#include <vector>

#include "node/cluster/places.h"
#include "node/doctor.h"
#include "node/node_host.h"

namespace gossamer::node {

// With a token, or credentials in a directory; with neither of them only whether somebody speaks TLS there.
[[nodiscard]] std::vector<Finding> examine_coordinator(const NodeHost& host, const host::Endpoint& at,
                                                       const Asker& asker, const std::string& program);

}  // namespace gossamer::node
