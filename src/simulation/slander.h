// SPDX-License-Identifier: Apache-2.0
//
// Slander: whom a coordinator fences because a liar says that it does not reach them, and nobody else. One
// coordinator's process; what it knows of a lead is forgotten with it. Thread rule: the simulation's.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/ids.h"
#include "net/link/peer_id.h"

namespace gossamer::simulation {

class Slander {
 public:
  explicit Slander(std::function<bool(Incarnation)> lies) : lies_(std::move(lies)) {}

  void heard(net::PeerId from, const membership::ToCoordinator& said);
  // It is fenced because it and others do not reach each other. That one innocent too many was, if so.
  [[nodiscard]] std::optional<std::string> fenced(net::PeerId peer);
  // It is, for another reason.
  void gone(net::PeerId peer) { accused_.erase(peer); }
  void forget();

 private:
  std::function<bool(Incarnation)> lies_;
  std::map<net::PeerId, std::set<NodeId>> accused_;  // by whom: what its last beat says
  std::set<Incarnation> disputed_;                   // who had a dispute that cost a life
  std::map<Incarnation, std::uint64_t> cost_;        // by a liar's word alone
};

}  // namespace gossamer::simulation
