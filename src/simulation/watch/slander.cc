// SPDX-License-Identifier: Apache-2.0
#include "simulation/watch/slander.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace gossamer::simulation {

void Slander::heard(net::PeerId from, const membership::ToCoordinator& said) {
  if (!said.has_beat()) return;
  std::set<NodeId>& accused = accused_[from];
  accused.clear();
  std::set<net::PeerId>& broken = broke_[from];
  broken.clear();
  for (const membership::Broke& broke : said.beat().broke())
    broken.insert({.node = NodeId(broke.node()), .incarnation = Incarnation(broke.incarnation())});
  for (const std::uint64_t node : said.beat().unreachable()) accused.emplace(node);
  for (const membership::Broke& broke : said.beat().broke()) {
    if (std::ranges::find(said.beat().lost(), broke.node()) != said.beat().lost().end())
      accused.emplace(broke.node());
  }
}

std::set<net::PeerId> Slander::in_dispute_with(net::PeerId peer) const {
  const auto own = accused_.find(peer);
  std::set<net::PeerId> others;
  for (const auto& [by, accused] : accused_) {
    if (accused.contains(peer.node) || (own != accused_.end() && own->second.contains(by.node)))
      others.insert(by);
  }
  return others;
}

std::set<net::PeerId> Slander::broke_rules_with(net::PeerId peer) const {
  std::set<net::PeerId> others;
  for (const auto& [by, broken] : broke_) {
    if (broken.contains(peer)) others.insert(by);
    if (by == peer) others.insert(broken.begin(), broken.end());
  }
  return others;
}

bool Slander::disputes_with_liars(net::PeerId peer) const {
  std::set<net::PeerId> others = in_dispute_with(peer);
  others.merge(broke_rules_with(peer));
  return !others.empty() &&
         std::ranges::all_of(others, [this](const net::PeerId& one) { return lies_(one.incarnation); });
}

std::optional<std::string> Slander::has_to_go(net::PeerId peer) {
  const std::set<net::PeerId> others = in_dispute_with(peer);
  const bool known = disputed_.contains(peer.incarnation) || lies_(peer.incarnation);
  for (const net::PeerId& other : others) disputed_.insert(other.incarnation);
  if (known || others.size() != 1 || !lies_(others.begin()->incarnation)) return std::nullopt;
  const Incarnation liar = others.begin()->incarnation;
  if (++cost_[liar] < 2) return std::nullopt;
  return fmt::format("incarnation {}, which lies, has another fenced by its word alone, incarnation {}",
                     liar.value, peer.incarnation.value);
}

bool Slander::framed(net::PeerId peer) const {
  std::size_t liars = 0;
  for (const auto& [by, broken] : broke_) {
    if (!broken.contains(peer)) continue;
    if (!lies_(by.incarnation)) return false;
    ++liars;
  }
  return liars >= 2;
}

void Slander::forget() {
  accused_.clear();
  broke_.clear();
  disputed_.clear();
  cost_.clear();
}

}  // namespace gossamer::simulation
