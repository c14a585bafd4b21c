// SPDX-License-Identifier: Apache-2.0
//
// Who answers queries of a model: this process, or with --nodes several, of which each has a part of the
// network and of the training records; then this one has only names and weighting. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "apps/cli/command.h"
#include "base/result.h"
#include "engines/sparse/model.h"
#include "node/fleet/serving_fleet.h"
#include "node/node_host.h"
#include "node/prediction.h"

namespace gossamer::cli {

struct AnswerFlags {
  std::string directory;
  std::string top = "5";
  bool net_alone = false;
  std::string retrieval = "exact";
  std::string nodes;    // empty: this process
  std::string join_at;  // empty: processes of this machine
};
// DIR, --net-alone, --retrieval, --nodes and --join-at.
void add_answering(Parser& parser, AnswerFlags& flags);
void add_nodes(Parser& parser, std::string& nodes, std::string& join_at);

struct Answering {
  std::unique_ptr<node::ServingFleet> fleet;  // null: this process has the network
  std::unique_ptr<node::PredictSession> session;
};
// `stop` is asked while it waits for nodes; may be empty. kUsage for flags that do not go together.
[[nodiscard]] Result<Answering> open_answering(Context& context, const node::NodeHost& host,
                                               const AnswerFlags& flags, std::size_t top,
                                               const std::function<bool()>& stop);

struct NodesRequest {
  const std::string& directory;
  const std::string& nodes;
  const std::string& join_at;
  bool net_alone = false;
  engine::Retrieval retrieval = engine::Retrieval::kExact;
  std::function<bool()> stop = {};
};
struct ModelNodes {
  engine::Model model;  // without its network
  std::unique_ptr<node::ServingFleet> fleet;
};
// Returns when the nodes are ready. kUsage for what nodes cannot do.
[[nodiscard]] Result<ModelNodes> open_model_nodes(Context& context, const node::NodeHost& host,
                                                  const NodesRequest& request);

}  // namespace gossamer::cli
