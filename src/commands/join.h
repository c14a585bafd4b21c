// SPDX-License-Identifier: Apache-2.0
//
// start_member(): `gossamer join`. It starts a node that has whichever engine its coordinator's run needs.
//
// Thread rule: the loop thread, which is the caller's.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "commands/engine/engine_list.h"
#include "node/member_node.h"
#include "run/node_host.h"

namespace gossamer::commands {

// The host and what it borrows outlive the node. `directory` is that of the options, from the root: the node
// keeps the files there that it gets for the run. Errors are those of MemberNode::start().
[[nodiscard]] Result<std::unique_ptr<node::MemberNode>> start_member(const run::NodeHost& host,
                                                                     const EngineList& engines,
                                                                     node::MemberOptions options,
                                                                     std::string directory);

}  // namespace gossamer::commands
