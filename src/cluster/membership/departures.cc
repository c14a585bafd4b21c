// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/departures.h"

#include <algorithm>

namespace gossamer::cluster {

void Departures::add(NodeId node, const std::set<NodeId>& with, Instant now) {
  if (members_.empty()) pause_ = kFirstLook;
  members_.try_emplace(node, Member{.with = with, .since = now});
}

std::set<NodeId> Departures::gone(NodeId node) {
  members_.erase(node);
  favoured_.erase(node);
  std::set<NodeId> stay;
  for (auto& [other, member] : members_) {
    if (member.with.erase(node) != 0 && member.with.empty() && member.spoilt >= kMostSpoilt)
      stay.insert(other);
  }
  std::erase_if(members_, [&](const auto& one) { return stay.contains(one.first); });
  favoured_.insert(stay.begin(), stay.end());
  if (members_.empty()) look_.reset();
  return stay;
}

void Departures::installed(Instant now) {
  if (!members_.empty()) look_ = now + pause_;
}

void Departures::stepped(Instant now) {
  for (auto& [node, member] : members_) member.since = now;
}

void Departures::spoilt(NodeId by, NodeId of) {
  for (auto& [node, member] : members_) {
    if (node == by || node == of) ++member.spoilt;
  }
}

std::set<NodeId> Departures::nodes() const {
  std::set<NodeId> nodes;
  for (const auto& [node, member] : members_) nodes.insert(node);
  return nodes;
}

std::set<NodeId> Departures::in_its_place(NodeId node) const {
  const auto found = members_.find(node);
  const bool may =
      found != members_.end() && found->second.spoilt >= kMostSpoilt && !favoured_.contains(node);
  return may ? found->second.with : std::set<NodeId>();
}

bool Departures::is_over(NodeId node, Duration patience, Instant now) const {
  const auto found = members_.find(node);
  if (found == members_.end()) return false;
  return found->second.spoilt >= kMostSpoilt || now - found->second.since >= patience;
}

bool Departures::take_due(Instant now) {
  if (!look_ || *look_ > now) return false;
  look_.reset();
  pause_ = std::min(Duration{2 * pause_.ns}, kLastLook);
  return true;
}

}  // namespace gossamer::cluster
