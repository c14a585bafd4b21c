// SPDX-License-Identifier: Apache-2.0
//
// View: the members of the run at an epoch (docs/protocols/membership.md). It is the same at everyone that
// has the epoch, as it changes only by the differences that the coordinator sends. Thread rule: one owner.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "cluster/membership/fenced_incarnations.h"
#include "net/link/links.h"

namespace gossamer::cluster {

// The node that leads.
inline constexpr NodeId kCoordinatorNode{1};

class View {
 public:
  View() = default;
  View(Epoch epoch, std::map<NodeId, membership::MemberRecord> members, FencedIncarnations fenced,
       std::set<NodeId> expelled = {});

  [[nodiscard]] Epoch epoch() const { return epoch_; }
  // Members that serve or drain.
  [[nodiscard]] const std::map<NodeId, membership::MemberRecord>& members() const { return members_; }
  [[nodiscard]] const FencedIncarnations& fenced() const { return fenced_; }
  // Nodes that somebody has expelled: none of their lives is a member again.
  [[nodiscard]] const std::set<NodeId>& expelled() const { return expelled_; }
  // Null if the node is no member, or lives another life.
  [[nodiscard]] const membership::MemberRecord* find(net::PeerId peer) const;

  // Whether the difference starts from this view, or is a whole view of a later epoch.
  [[nodiscard]] bool follows(const membership::Change& change) const;
  // Applies the difference. Requires follows(). The error is kBadData, and nothing is changed, for a
  // difference that makes no view: numbers of 0 or the coordinator's, fenced or expelled members.
  [[nodiscard]] Result<void> apply(const membership::Change& change);
  // Whether this life may go on, in the view or about to join. kRefused: it is fenced, or its node expelled.
  // kBadData: another life of its node is in the view, though the coordinator must fence this one first.
  [[nodiscard]] Result<void> lives(net::PeerId self) const;
  // The whole view as a difference from nothing.
  [[nodiscard]] membership::Change whole() const;

  // The whole view as bytes, equal for equal views. Tests compare them.
  [[nodiscard]] std::string bytes() const { return whole().SerializeAsString(); }

 private:
  Epoch epoch_;
  std::map<NodeId, membership::MemberRecord> members_;
  FencedIncarnations fenced_;
  std::set<NodeId> expelled_;
};

// Adds fenced incarnations to a difference.
void add_fenced(const std::vector<FencedIncarnations::Run>& runs, membership::Change& change);
// Adds to a difference from `view` the nodes of `expelled` that it does not know as expelled.
void add_expelled(const std::set<NodeId>& expelled, const View& view, membership::Change& change);
// The words of a refusal to a node that was expelled: kRefused.
[[nodiscard]] Error expelled_error(NodeId node);
[[nodiscard]] net::PeerId peer_of(const membership::MemberRecord& record);
// The lives that serve or drain.
[[nodiscard]] std::set<net::PeerId> peers_of(const View& view);
// Endpoints are empty if the member listens nowhere.
[[nodiscard]] net::PeerAddress address_of(NodeId node, const membership::Listening& listening);
[[nodiscard]] membership::Listening listening_of(const net::PeerAddress& address);
[[nodiscard]] bool listens(const membership::Listening& listening);
// Whether `from` may open a connection to `to`: `to` listens, and a loopback address is on their common
// machine.
[[nodiscard]] bool reaches(const membership::MemberRecord& from, const membership::MemberRecord& to);

}  // namespace gossamer::cluster
