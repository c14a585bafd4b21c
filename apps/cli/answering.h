// SPDX-License-Identifier: Apache-2.0
//
// Opens what answers queries of a model: this process, or with --nodes several nodes. Each node
// has a part of the network and of the training records, and this process has only names and
// weighting. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "base/result.h"
#include "commands/predict/prediction.h"
#include "commands/serve_fleet/serving_fleet.h"
#include "engines/sparse/model/model.h"
#include "run/node_host.h"

namespace gossamer::cli {

struct AnswerFlags {
  std::string directory;
  std::string top = "5";
  bool net_alone = false;
  std::string retrieval = "exact";
  std::string nodes;    // empty: this process
  std::string join_at;  // empty: processes of this machine
};
// Adds DIR, --net-alone, --retrieval, --nodes and --join-at.
void add_answering(Parser& parser, AnswerFlags& flags);
void add_nodes(Parser& parser, std::string& nodes, std::string& join_at);

struct Answering {
  std::unique_ptr<commands::ServingFleet> fleet;  // null: this process has the network
  std::unique_ptr<commands::PredictSession> session;
};
// Opens a model. `stop` is asked while it waits for nodes, and may be empty. kUsage for
// flags that do not go together.
[[nodiscard]] Result<Answering> open_answering(Context& context, const run::NodeHost& host,
                                               const AnswerFlags& flags, std::size_t top,
                                               const std::function<bool()>& stop);

struct NodesRequest {
  const std::string& directory;
  const std::string& nodes;
  const std::string& join_at;
  bool net_alone = false;
  sparse_engine::Retrieval retrieval = sparse_engine::Retrieval::kExact;
  std::function<bool()> stop = {};
};
struct ModelNodes {
  sparse_engine::Model model;  // without its network
  std::unique_ptr<commands::ServingFleet> fleet;
};
// Starts the nodes of a model, and returns when they are ready. kUsage for what nodes cannot do.
[[nodiscard]] Result<ModelNodes> open_model_nodes(Context& context, const run::NodeHost& host,
                                                  const NodesRequest& request);

}  // namespace gossamer::cli
