// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/departures.h"

#include <algorithm>

namespace gossamer::cluster {
namespace {

constexpr Duration kLongestPause{Departures::kFirstLook.ns << (Departures::kMostLooks - 1)};

void add_spoilt(std::set<Epoch>& epochs, Epoch epoch) {
  if (epochs.size() < Departures::kMostSpoilt) epochs.insert(epoch);
}

}  // namespace

void Departures::add(NodeId node, std::optional<NodeId> quarrels_with) {
  if (members_.empty()) pause_ = kFirstLook;
  members_.try_emplace(node, Member{.quarrels_with = quarrels_with});
}

std::set<NodeId> Departures::gone(NodeId node) {
  members_.erase(node);
  favoured_.erase(node);
  std::set<NodeId> stay;
  for (const auto& [other, member] : members_) {
    if (in_its_place(other) == node) stay.insert(other);
  }
  std::erase_if(members_, [&](const auto& one) { return stay.contains(one.first); });
  favoured_.insert(stay.begin(), stay.end());
  for (auto& [other, member] : members_) {
    if (member.quarrels_with == node) member.quarrels_with.reset();
  }
  if (members_.empty()) {
    look_.reset();
    planned_.reset();
  }
  return stay;
}

void Departures::installed(Instant now) {
  if (members_.empty()) return;
  if (!planned_) planned_ = now + pause_;
  look_ = std::max(*planned_, now + kFirstLook);
}

void Departures::stepped() {
  for (auto& [node, member] : members_) member.looks = 0;
}

void Departures::spoilt(NodeId by, NodeId of, Epoch epoch) {
  for (auto& [node, member] : members_) {
    if (node != by && node != of) continue;
    add_spoilt(member.spoilt, epoch);
    if (member.quarrels_with == (node == by ? of : by)) add_spoilt(member.spoilt_with, epoch);
  }
}

std::set<NodeId> Departures::nodes() const {
  std::set<NodeId> nodes;
  for (const auto& [node, member] : members_) nodes.insert(node);
  return nodes;
}

std::optional<NodeId> Departures::in_its_place(NodeId node) const {
  const auto found = members_.find(node);
  const bool may =
      found != members_.end() && found->second.spoilt_with.size() >= kMostSpoilt && !favoured_.contains(node);
  return may ? found->second.quarrels_with : std::nullopt;
}

bool Departures::is_over(NodeId node) const {
  const auto found = members_.find(node);
  return found != members_.end() &&
         (found->second.spoilt.size() >= kMostSpoilt || found->second.looks >= kMostLooks);
}

void Departures::looks() {
  look_.reset();
  planned_.reset();
  pause_ = std::min(Duration{2 * pause_.ns}, kLongestPause);
  for (auto& [node, member] : members_) ++member.looks;
}

}  // namespace gossamer::cluster
