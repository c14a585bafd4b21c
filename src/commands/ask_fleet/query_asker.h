// SPDX-License-Identifier: Apache-2.0
//
// QueryAsker: the lead's side of queries, in the loop of its node. It takes query blocks from the desk, asks
// the members that hold the model's parts, and puts the answers back (fleet_queries.h). Long computations are
// done aside.
//
// Thread rule: the loop thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "commands/ask_fleet/query_desk.h"
#include "engines/sparse/serve/fleet_queries.h"
#include "net/link/links.h"
#include "node/companion.h"
#include "node/files/file_exchange.h"

namespace gossamer::commands {

class QueryAsker {
 public:
  // A node that was asked, and of which nothing has come for so long, is not there.
  static constexpr Duration kSilent{5'000'000'000};

  // The desk outlives it. What it has given aside comes back before it ends, or never.
  QueryAsker(sparse_engine::ModelInParts model, QueryDesk& desk, node::Aside aside)
      : aside_(std::move(aside)), queries_(std::move(model)), desk_(desk) {}
  QueryAsker(const QueryAsker&) = delete;
  QueryAsker& operator=(const QueryAsker&) = delete;

  // As of a node::Companion.
  void connect(net::Links* links) {
    links_ = links;
    asked_.clear();
  }
  void placed(Epoch epoch, const std::string& decision) { queries_.placed(epoch, decision); }
  void on(const net::Arrived& arrived, Instant now);
  [[nodiscard]] std::vector<node::Misdeed> take_misdeeds() { return std::exchange(misdeeds_, {}); }
  void tick(Instant now);

  // Whether the parts of all ready members are the whole model.
  [[nodiscard]] bool whole() const { return queries_.whole(); }
  // The epoch that the ready members have their parts of; 0 before the first one is ready.
  [[nodiscard]] Epoch epoch() const { return queries_.epoch(); }
  [[nodiscard]] std::set<NodeId> members() const { return queries_.nodes(); }

 private:
  void go_on(Instant now);
  [[nodiscard]] bool reaches(Instant now) const;

  const node::Aside aside_;
  sparse_engine::FleetQueries queries_;
  QueryDesk& desk_;
  net::Links* links_ = nullptr;
  std::uint64_t number_ = 0;  // of the block under way
  QueryDesk::Ready shown_;
  // The links that the last questions went over, as in net::Ticket; 0: there was none.
  std::map<NodeId, std::uint64_t> asked_;
  bool reaches_ = false;
  std::vector<node::Misdeed> misdeeds_;
};

}  // namespace gossamer::commands
