// SPDX-License-Identifier: Apache-2.0
//
// JoiningMember: `gossamer join`. It is a node that has whichever engine its coordinator's run needs.
//
// Thread rule: the loop thread, which is the caller's.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "commands/engine/engine_list.h"
#include "node/member_node.h"
#include "run/node_host.h"

namespace gossamer::commands {

// A member that has started. The host and what it borrows outlive it.
class JoiningMember {
 public:
  // `directory` is that of the options, from the root: the node keeps the files there that it gets for the
  // run. Errors are those of MemberNode::start().
  [[nodiscard]] static Result<JoiningMember> start(const run::NodeHost& host, const EngineList& engines,
                                                   node::MemberOptions options, std::string directory);
  // Runs until the member has left, as MemberNode::run() says. If its run begins anew from a checkpoint, so
  // does the member.
  [[nodiscard]] Result<void> run(const host::PosixSignals& signals);

 private:
  JoiningMember(const run::NodeHost& host, const EngineList& engines, node::MemberOptions options,
                std::string directory)
      : host_(&host), engines_(&engines), options_(std::move(options)), directory_(std::move(directory)) {}
  [[nodiscard]] Result<void> begin();

  const run::NodeHost* host_;
  const EngineList* engines_;
  node::MemberOptions options_;
  std::string directory_;
  std::unique_ptr<node::MemberNode> node_;
};

}  // namespace gossamer::commands
