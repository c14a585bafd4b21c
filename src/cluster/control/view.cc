// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/view.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "base/check.h"
#include "base/node_name.h"

namespace gossamer::cluster {
namespace {

using membership::Change;
using membership::MemberRecord;

Error no_view(std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .what = "the coordinator sent what is no change of the view",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "look whether coordinator and nodes run the same version"};
}

}  // namespace

View::View(Epoch epoch, std::map<NodeId, MemberRecord> members, FencedIncarnations fenced,
           std::set<NodeId> expelled)
    : epoch_(epoch),
      members_(std::move(members)),
      fenced_(std::move(fenced)),
      expelled_(std::move(expelled)) {}

const MemberRecord* View::find(net::PeerId peer) const {
  const auto found = members_.find(peer.node);
  if (found == members_.end() || found->second.incarnation() != peer.incarnation.value) return nullptr;
  return &found->second;
}

bool View::follows(const Change& change) const {
  return change.epoch() > epoch_.value && (change.from() == 0 || change.from() == epoch_.value);
}

Result<void> View::apply(const Change& change) {
  CHECK(follows(change), change.epoch(), change.from(), epoch_.value);
  View next = change.from() == 0 ? View() : *this;
  next.epoch_ = Epoch(change.epoch());
  std::vector<FencedIncarnations::Run> runs = next.fenced_.runs();
  for (const membership::FencedRun& run : change.fenced()) {
    if (run.first() > run.last() || run.last() == std::numeric_limits<std::uint64_t>::max())
      return no_view(fmt::format("fenced {}..{}", run.first(), run.last()), "a rising range");
    runs.push_back({Incarnation(run.first()), Incarnation(run.last())});
  }
  next.fenced_ = FencedIncarnations(runs);
  for (const std::uint64_t node : change.expelled()) {
    if (NodeId(node) <= kCoordinatorNode)
      return no_view(fmt::format("node {} expelled", node), "a member's number, above the coordinator's");
    next.expelled_.insert(NodeId(node));
  }
  std::erase_if(next.members_, [&](const auto& one) {
    return next.fenced_.contains(peer_of(one.second).incarnation) || next.expelled_.contains(one.first);
  });
  for (const MemberRecord& record : change.members()) {
    const net::PeerId peer = peer_of(record);
    if (peer.node <= kCoordinatorNode || peer.incarnation.value == 0)
      return no_view(fmt::format("member {} in incarnation {}", peer.node.value, peer.incarnation.value),
                     "a member's number, above the coordinator's, and an incarnation from 1");
    if (next.fenced_.contains(peer.incarnation))
      return no_view(
          fmt::format("member {} in the fenced incarnation {}", peer.node.value, peer.incarnation.value),
          "a living one");
    if (next.expelled_.contains(peer.node))
      return no_view(fmt::format("member {}, which was expelled", peer.node.value), "another node");
    next.members_[peer.node] = record;
  }
  *this = std::move(next);
  return {};
}

Result<void> View::lives(net::PeerId self) const {
  if (expelled_.contains(self.node)) return expelled_error(self.node);
  if (fenced_.contains(self.incarnation)) {
    return Error{.kind = ErrorKind::kRefused,
                 .what = "this incarnation was declared dead",
                 .fix = "it joins again as a new one"};
  }
  const auto own = members_.find(self.node);
  if (own != members_.end() && peer_of(own->second) != self) {
    return no_view(fmt::format("another life of this node, incarnation {}", own->second.incarnation()),
                   fmt::format("{}, or that it is fenced", self.incarnation.value));
  }
  return {};
}

Change View::whole() const {
  Change change;
  change.set_epoch(epoch_.value);
  for (const auto& [node, record] : members_) *change.add_members() = record;
  add_fenced(fenced_.runs(), change);
  for (const NodeId node : expelled_) change.add_expelled(node.value);
  return change;
}

void add_fenced(const std::vector<FencedIncarnations::Run>& runs, Change& change) {
  for (const FencedIncarnations::Run& run : runs) {
    membership::FencedRun& fenced = *change.add_fenced();
    fenced.set_first(run.first.value);
    fenced.set_last(run.last.value);
  }
}

void add_expelled(const std::set<NodeId>& expelled, const View& view, Change& change) {
  for (const NodeId node : expelled) {
    if (!view.expelled().contains(node)) change.add_expelled(node.value);
  }
}

Error expelled_error(NodeId node) {
  return {.kind = ErrorKind::kRefused,
          .where = certificate_name(node),
          .what = "this node was expelled from the run",
          .expected = "a node that may take part",
          .fix = "ask whoever leads the run for a new token, if it was expelled by mistake"};
}

net::PeerId peer_of(const MemberRecord& record) {
  return {NodeId(record.node()), Incarnation(record.incarnation())};
}

bool listens(const membership::Listening& listening) {
  return listening.control().port() != 0 && listening.bulk().port() != 0;
}

bool reaches(const MemberRecord& from, const MemberRecord& to) {
  if (!listens(to.listening())) return false;
  const bool alone =
      host::is_loopback(to.listening().control().host()) || host::is_loopback(to.listening().bulk().host());
  return !alone || from.machine() == to.machine();
}

std::set<net::PeerId> peers_of(const View& view) {
  std::set<net::PeerId> peers;
  for (const auto& [node, record] : view.members()) peers.insert(peer_of(record));
  return peers;
}

net::PeerAddress address_of(NodeId node, const membership::Listening& listening) {
  const auto endpoint = [](const membership::Address& address) {
    return host::Endpoint{.host = address.host(), .port = static_cast<std::uint16_t>(address.port())};
  };
  return {.node = node, .control = endpoint(listening.control()), .bulk = endpoint(listening.bulk())};
}

membership::Listening listening_of(const net::PeerAddress& address) {
  const auto fill = [](membership::Address& to, const host::Endpoint& from) {
    to.set_host(from.host);
    to.set_port(from.port);
  };
  membership::Listening listening;
  fill(*listening.mutable_control(), address.control);
  fill(*listening.mutable_bulk(), address.bulk);
  return listening;
}

}  // namespace gossamer::cluster
