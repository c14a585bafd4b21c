// SPDX-License-Identifier: Apache-2.0
//
// ServingFleet is several nodes that answer queries of one model, each with a part of it in memory
// (docs/protocols/sparse-serving.md). This process leads them, on a thread of its own. Queries
// wait until all parts are there.
//
// The nodes are processes `gossamer join`. Either they are of this same program on this machine, and one that
// is killed is started again. Or they join from any machine that has the model directory under the same path.
//
//   DIR/nodes/coordinator, DIR/nodes/1 ...  directories of the processes; *.log beside them what they say
//
//   auto fleet = ServingFleet::start(host, {...});
//   auto found = (*fleet)->ask({.rows = queries, .labels = 100});
//
// Thread rule: one thread. The leading thread uses the host's disk, clock and console meanwhile. They take
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
#include "commands/ask_fleet/query_desk.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/model_part.h"
#include "engines/sparse/predict/predictor.h"
#include "engines/sparse/serve/fleet_queries.h"
#include "host/api/disk.h"
#include "host/api/endpoint.h"
#include "host/posix/serial_thread.h"
#include "run/node_host.h"

namespace gossamer::commands {

class ServingFleet {
 public:
  struct Options {
    std::string directory;  // DIR, from the root; made here, and gone at the end
    std::size_t nodes = 1;  // 1..kMostOwnNodes, to begin with
    std::size_t threads_each = 1;
    // kShare: nodes have the training rows too, if the model keeps some.
    sparse_engine::PartInstances instances = sparse_engine::PartInstances::kNone;
    std::string program;                           // path of the file
    std::string program_name;                      // for peers
    Duration patience = from_seconds(120);         // of a query, while parts are missing
    Duration start_patience = from_seconds(1800);  // until they are there for the first time
    // Where other nodes join. If it is set, no node is started here, and joined_at is
    // called once the address is known.
    std::optional<host::Endpoint> join_at = {};
    std::function<Result<void>(const host::Endpoint& at, const std::string& token)> joined_at = {};
    // Asked while start() or ask() waits. True ends waiting, for an answer of nodes that are away after
    // kLastAnswer.
    std::function<bool()> stop = {};
    static constexpr Duration kLastAnswer{5'000'000'000};
  };
  // Returns when the nodes have read their parts. The model's directory is a path from the root. The host and
  // what it borrows outlive the fleet. An error says what a node ended with.
  [[nodiscard]] static Result<std::unique_ptr<ServingFleet>> start(const run::NodeHost& host,
                                                                   const sparse_engine::OpenedModel& model,
                                                                   Options options);
  ~ServingFleet();
  ServingFleet(const ServingFleet&) = delete;
  ServingFleet& operator=(const ServingFleet&) = delete;

  // Asks as FleetQueries::ask() does. kFailed when the nodes were not all there in time, or a node has
  // failed. The next calls then fail at once, until the nodes are heard again.
  // Once the lead has ended, all calls fail.
  [[nodiscard]] Result<sparse_engine::FleetQueries::Answer> ask(
      const sparse_engine::FleetQueries::Block& block);
  // Why all later calls fail, if they do: a node failed before all were there, or the lead has ended.
  [[nodiscard]] std::optional<Error> ended() { return desk_.ended(); }
  // Whether nodes have the training rows.
  [[nodiscard]] bool fuses() const { return options_.instances == sparse_engine::PartInstances::kShare; }

 private:
  ServingFleet(const run::NodeHost& host, Options options);

  const run::NodeHost& host_;
  const Options options_;
  std::unique_ptr<host::DirectoryLock> lock_;  // lock of its directory
  QueryDesk desk_;
  std::uint64_t asked_ = 0;                   // blocks that were asked
  std::unique_ptr<host::SerialThread> lead_;  // thread of the leading loop; ends first
};

// A predictor that ranks as the predictor of one process does. It uses all parts where the nodes have
// training rows, else the net alone (PredictOptions::parts = kNetAlone). It takes names, weighting and
// options of the model, and does not look at the model's network. Fleet and model outlive it.
[[nodiscard]] std::unique_ptr<sparse_engine::Predictor> fleet_predictor(ServingFleet& fleet,
                                                                        const sparse_engine::Model& model);

}  // namespace gossamer::commands
