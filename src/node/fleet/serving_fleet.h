// SPDX-License-Identifier: Apache-2.0
//
// ServingFleet: several nodes that answer queries of one model, each with a part of it in memory
// (docs/protocols/sparse-serving.md). This process leads them, on a thread of its own. Nodes are processes
// `gossamer join`: of this same program on this machine, and one that is killed is started again; or whoever
// joins, from any machine that has the model directory under the same path. Queries wait until all parts are
// there.
//
//   DIR/nodes/coordinator, DIR/nodes/1 ...  their directories; *.log beside them what they say
//
//   auto fleet = ServingFleet::start(host, {...});
//   auto found = (*fleet)->ask({.rows = queries, .labels = 100});
//
// Thread rule: one thread. The one that leads uses the host's disk, clock and console meanwhile: they take
// any thread, as the real ones do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "engines/sparse/fleet/fleet_queries.h"
#include "engines/sparse/model_file.h"
#include "engines/sparse/model_part.h"
#include "engines/sparse/predictor.h"
#include "host/api/disk.h"
#include "host/api/endpoint.h"
#include "host/posix/serial_thread.h"
#include "node/fleet/query_desk.h"
#include "node/node_host.h"

namespace gossamer::node {

class ServingFleet {
 public:
  struct Options {
    std::string directory;  // DIR, from the root; made, and what is in it is gone at the end
    std::size_t nodes = 1;  // 1..kMostNodes, to begin with
    std::size_t threads_each = 1;
    // kShare: nodes have the training rows too, of a model that keeps some.
    engine::PartInstances instances = engine::PartInstances::kNone;
    std::string program;                           // path of the file
    std::string program_name;                      // for peers
    std::string engine;                            // for engine_configuration()
    Duration patience = from_seconds(120);         // without all parts, of a query
    Duration start_patience = from_seconds(1800);  // until they are there for the first time
    // Where others join: then no node is started here. Told where that is, once it is known.
    std::optional<host::Endpoint> join_at = {};
    std::function<Result<void>(const host::Endpoint& at, const std::string& token)> joined_at = {};
    std::function<bool()> stop = {};  // asked while start() waits: true ends waiting
  };
  // Returns when the nodes have read their parts. The model's directory is a path from the root. The host and
  // what it borrows outlive it. Errors: what a node ended with.
  [[nodiscard]] static Result<std::unique_ptr<ServingFleet>> start(const NodeHost& host,
                                                                   const engine::OpenedModel& model,
                                                                   Options options);
  ~ServingFleet();
  ServingFleet(const ServingFleet&) = delete;
  ServingFleet& operator=(const ServingFleet&) = delete;

  // As FleetQueries::ask(). kFailed: the nodes were not all there in time, or a node has failed.
  [[nodiscard]] Result<engine::FleetQueries::Answer> ask(const engine::FleetQueries::Block& block);
  // Nodes have the training rows.
  [[nodiscard]] bool fuses() const { return options_.instances == engine::PartInstances::kShare; }

 private:
  ServingFleet(const NodeHost& host, Options options);

  const NodeHost& host_;
  const Options options_;
  std::unique_ptr<host::DirectoryLock> lock_;  // of its directory
  QueryDesk desk_;
  std::uint64_t asked_ = 0;                   // blocks
  std::unique_ptr<host::SerialThread> lead_;  // whose loop leads; ends first
};

// Ranks as the predictor of one process does: by all parts where the nodes have training rows, else by the
// net alone (PredictOptions::parts = kNetAlone). Names, weighting and options are the model's, whose network
// is not looked at. Both outlive it.
[[nodiscard]] std::unique_ptr<engine::Predictor> fleet_predictor(ServingFleet& fleet,
                                                                 const engine::Model& model);

}  // namespace gossamer::node
