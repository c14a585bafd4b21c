// SPDX-License-Identifier: Apache-2.0
//
// KeyedLead: `gossamer coordinator NAME`, which leads a run that has nothing but keys: no data, and no
// result. Its engine is any that has a workload. (A training run is led by run_training(), commands/run.)
//
// Thread rule: the loop thread, which is the caller's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/engine/engine_entry.h"
#include "commands/engine/training.h"
#include "node/coordinator_node.h"
#include "run/engine_key.h"
#include "run/lead_file.h"
#include "run/node_host.h"

namespace gossamer::commands {

class KeyedLead {
 public:
  struct Wanted {
    const EngineEntry& engine;       // with a workload
    std::vector<std::string> words;  // key=value, as the user wrote them
    std::string directory;           // of the lead, as the user wrote it
    // With what kept() gave in `file`.
    node::CoordinatorOptions options;
  };
  // What a coordinator has kept of the run in the directory; nothing where there is no run. kUsage for a run
  // of another engine, and for a training run.
  [[nodiscard]] static Result<run::LeadFile> kept(host::Disk& disk, const run::RunEngine& engine,
                                                  const std::string& directory);
  // kUsage for keys that differ from those of the run in the directory. Other errors are those of
  // CoordinatorNode::start(). The host and what it borrows outlive it.
  [[nodiscard]] static Result<std::unique_ptr<KeyedLead>> start(const run::NodeHost& host, Wanted wanted);

  [[nodiscard]] node::CoordinatorNode& node() { return *node_; }
  // For a run that was not there before: the token with which members join. Else empty.
  [[nodiscard]] Result<std::string> first_token();

 private:
  explicit KeyedLead(Led led) : led_(std::move(led)) {}

  Led led_;
  std::unique_ptr<node::CoordinatorNode> node_;
};

}  // namespace gossamer::commands
