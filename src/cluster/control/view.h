// SPDX-License-Identifier: Apache-2.0
//
// View: who is in the run at an epoch (docs/protocols/membership.md). The same at everyone who has the epoch:
// it changes only by the differences that the coordinator sends. Thread rule: one owner.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <map>
#include <string>

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
  View(Epoch epoch, std::map<NodeId, membership::MemberRecord> members, FencedIncarnations fenced);

  [[nodiscard]] Epoch epoch() const { return epoch_; }
  // Those that serve or drain.
  [[nodiscard]] const std::map<NodeId, membership::MemberRecord>& members() const { return members_; }
  [[nodiscard]] const FencedIncarnations& fenced() const { return fenced_; }
  // Null if the node is none, or lives another life.
  [[nodiscard]] const membership::MemberRecord* find(net::PeerId peer) const;

  // Whether the difference is one from this view, or a whole view of a later epoch.
  [[nodiscard]] bool follows(const membership::Change& change) const;
  // kBadData, and nothing is changed, for what is no view: numbers of 0 or the coordinator's, members that
  // are fenced. Requires follows().
  [[nodiscard]] Result<void> apply(const membership::Change& change);
  // Whether this life may go on, in the view or about to join: kRefused if it is fenced, kBadData if another
  // one of its node stands there, which the coordinator must have fenced it for.
  [[nodiscard]] Result<void> lives(net::PeerId self) const;
  // The whole view as a difference from nothing.
  [[nodiscard]] membership::Change whole() const;

  // All of it as bytes: equal for equal views. Tests compare them.
  [[nodiscard]] std::string bytes() const { return whole().SerializeAsString(); }

 private:
  Epoch epoch_;
  std::map<NodeId, membership::MemberRecord> members_;
  FencedIncarnations fenced_;
};

[[nodiscard]] net::PeerId peer_of(const membership::MemberRecord& record);
// Empty endpoints where the member listens nowhere.
[[nodiscard]] net::PeerAddress address_of(NodeId node, const membership::Listening& listening);
[[nodiscard]] membership::Listening listening_of(const net::PeerAddress& address);
[[nodiscard]] bool listens(const membership::Listening& listening);
// Whether `from` may open a connection to `to`: it listens, and a loopback address is one of both.
[[nodiscard]] bool reaches(const membership::MemberRecord& from, const membership::MemberRecord& to);

}  // namespace gossamer::cluster
