// SPDX-License-Identifier: Apache-2.0
//
// What an engine's entry (engine_entry.h) knows of a member: the process whose engine is made, and the kinds
// of engines that it can be.
//
// Thread rule: the loop thread.
#pragma once

#include <vector>

#include "base/ids.h"
#include "cluster/control/member_process.h"
#include "node/configured_engine.h"
#include "run/node_host.h"

namespace gossamer::commands {

// A member whose engine is made. The host and the process outlive the engine.
struct MemberPlace {
  const run::NodeHost& host;
  cluster::MemberProcess& process;
  NodeId self;
  bool in_place = false;  // it may read files under paths that the coordinator names
};

struct MemberKinds {
  std::vector<node::ConfiguredEngine::Kind> kinds;
};

}  // namespace gossamer::commands
