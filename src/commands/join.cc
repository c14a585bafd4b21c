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

Result<JoiningMember> JoiningMember::start(const run::NodeHost& host, const EngineList& engines,
                                           node::MemberOptions options, std::string directory) {
  JoiningMember member(host, engines, std::move(options), std::move(directory));
  if (auto begun = member.begin(); !begun.ok()) return begun.error();
  return member;
}

// The one before listens where the next one will, and its threads use the directory: it ends first.
Result<void> JoiningMember::begin() {
  node_.reset();
  auto node = node::MemberNode::start(
      *host_, options_, [this](cluster::MemberProcess& process, NodeId self, node::Aside aside) {
        return std::make_unique<node::ConfiguredEngine>(
            host_->disk, process,
            node::ConfiguredEngine::Options{
                .kinds =
                    kinds(*engines_,
                          {.host = *host_, .process = process, .self = self, .in_place = options_.in_place}),
                .program = options_.program,
                .supply = {.directory = directory_, .seed = self.value, .in_place = options_.in_place},
                .aside = std::move(aside)});
      });
  if (!node.ok()) return node.error();
  node_ = *std::move(node);
  return {};
}

Result<void> JoiningMember::run(const host::PosixSignals& signals) {
  for (;;) {
    auto done = node_->run(signals);
    if (!done.ok() || !node_->begins_anew() || signals.stop_requested()) return done;
    if (auto begun = begin(); !begun.ok()) return begun;
  }
}

}  // namespace gossamer::commands
