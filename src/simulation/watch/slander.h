// SPDX-License-Identifier: Apache-2.0
//
// Slander: members that a coordinator fences because a liar, and nobody else, says that it does not reach
// them, or breaks rules towards them so that they break off their links with it. One object for one
// coordinator's process. Its knowledge of a lead is forgotten with the lead. Thread rule: the simulation's.
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
  // The peer has to go because it and others do not reach each other. Returns a violation if it is one
  // innocent too many for one liar.
  [[nodiscard]] std::optional<std::string> has_to_go(net::PeerId peer);
  // Whether two liars or more, and nobody else, say that the peer broke a rule. Where they are more than half
  // of its judges, their word costs it its life: accusations promise no more
  // (cluster/membership/accusations.h).
  [[nodiscard]] bool framed(net::PeerId peer) const;
  // Whether the peer has a dispute, and with liars alone. Nobody knows which of two is one. Broken rules
  // count also while the link is up again: a quarrel is over several views.
  [[nodiscard]] bool disputes_with_liars(net::PeerId peer) const;
  // The peer is fenced.
  void gone(net::PeerId peer) {
    accused_.erase(peer);
    broke_.erase(peer);
  }
  void forget();

 private:
  // Those that accuse the peer, and those that it accuses.
  [[nodiscard]] std::set<net::PeerId> in_dispute_with(net::PeerId peer) const;
  // Those that say that the peer broke a rule, and those that did by its word.
  [[nodiscard]] std::set<net::PeerId> broke_rules_with(net::PeerId peer) const;

  std::function<bool(Incarnation)> lies_;
  std::map<net::PeerId, std::set<NodeId>> accused_;     // by accuser: the accused of its last beat
  std::map<net::PeerId, std::set<net::PeerId>> broke_;  // likewise: of a broken rule
  std::set<Incarnation> disputed_;                      // had a dispute that cost a life
  std::map<Incarnation, std::uint64_t> cost_;           // lives, by liar: its word alone
};

}  // namespace gossamer::simulation
