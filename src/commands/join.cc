// SPDX-License-Identifier: Apache-2.0
#include "commands/join.h"

#include <string>
#include <utility>
#include <vector>

#include "commands/engine/member_place.h"
#include "node/configured_engine.h"

namespace gossamer::commands {
namespace {

std::vector<node::ConfiguredEngine::Kind> kinds(const EngineList& engines, const MemberPlace& place) {
  std::vector<node::ConfiguredEngine::Kind> kinds;
  for (const EngineEntry& engine : engines.all()) {
    if (!engine.member) continue;
    for (node::ConfiguredEngine::Kind& kind : engine.member(place).kinds) kinds.push_back(std::move(kind));
  }
  return kinds;
}

}  // namespace

Result<std::unique_ptr<node::MemberNode>> start_member(const run::NodeHost& host, const EngineList& engines,
                                                       node::MemberOptions options, std::string directory) {
  const std::string program = options.program;
  return node::MemberNode::start(
      host, std::move(options), [&](cluster::MemberProcess& process, NodeId self, node::Aside aside) {
        return std::make_unique<node::ConfiguredEngine>(
            host.disk, process,
            node::ConfiguredEngine::Options{
                .kinds = kinds(engines, {.host = host, .process = process, .self = self}),
                .program = program,
                .supply = {.directory = std::move(directory), .seed = self.value},
                .aside = std::move(aside)});
      });
}

}  // namespace gossamer::commands
