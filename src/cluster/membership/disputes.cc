// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/disputes.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gossamer::cluster {

void Disputes::says(NodeId by, const std::set<NodeId>& unreachable, Instant now) {
  std::map<NodeId, Instant> said;
  for (const NodeId node : unreachable) said[node] = since(by, node).value_or(now);
  if (said.empty()) {
    said_.erase(by);
  } else {
    said_[by] = std::move(said);
  }
}

std::optional<Instant> Disputes::since(NodeId by, NodeId of) const {
  const auto said = said_.find(by);
  if (said == said_.end()) return std::nullopt;
  const auto place = said->second.find(of);
  return place == said->second.end() ? std::nullopt : std::optional(place->second);
}

// Weighs the members with a ripe dispute.
std::map<NodeId, Disputes::Weight> Disputes::weights(const std::map<NodeId, Incarnation>& heard,
                                                     Duration ripe, Instant now) const {
  struct Side {
    std::set<NodeId> others;
    std::optional<Instant> ripe;  // when the latest of its ripe disputes began
  };
  std::map<NodeId, Side> sides;
  for (const auto& [by, said] : said_) {
    for (const auto& [of, since] : said) {
      if (!heard.contains(by) || !heard.contains(of)) continue;
      for (const auto& [one, other] : std::array{std::pair(by, of), std::pair(of, by)}) {
        sides[one].others.insert(other);
        if (now - since >= std::max(kRipe, ripe))
          sides[one].ripe = std::max(sides[one].ripe, std::optional(since));
      }
    }
  }
  std::map<NodeId, Weight> weights;
  for (auto& [node, side] : sides) {
    if (!side.ripe) continue;
    Weight& weight = weights[node];
    weight.life = heard.at(node);
    if (const auto costs = costs_.find(node); costs != costs_.end()) {
      for (const Cost& cost : costs->second) {
        if (cost.when > *side.ripe) continue;
        side.others.insert(cost.node);
        ++weight.lives;
        if (cost.by_word) ++weight.by_word;
      }
    }
    weight.others = side.others.size();
  }
  return weights;
}

std::optional<NodeId> Disputes::settle(const std::map<NodeId, Incarnation>& heard, Duration ripe,
                                       Instant now) {
  const std::map<NodeId, Weight> weighed = weights(heard, ripe, now);
  if (weighed.empty()) return std::nullopt;
  const auto lighter = [](const auto& a, const auto& b) { return a.second < b.second; };
  const NodeId loser = std::max_element(weighed.begin(), weighed.end(), lighter)->first;
  if (memory_ == Memory::kKept) remember(loser, weighed, now);
  gone(loser);
  return loser;
}

void Disputes::remember(NodeId loser, const std::map<NodeId, Weight>& weights, Instant now) {
  for (const auto& [other, said] : said_) {
    if (said.contains(loser)) costs_[other].push_back({.node = loser, .when = now, .by_word = true});
  }
  const auto said = said_.find(loser);
  if (said == said_.end()) return;
  const Weight& own = weights.at(loser);
  for (const auto& [other, since] : said->second) {
    const auto weight = weights.find(other);
    const bool only_older = weight != weights.end() && weight->second.others == own.others &&
                            weight->second.by_word == own.by_word && weight->second.lives == own.lives;
    if (only_older && !this->since(other, loser))
      costs_[other].push_back({.node = loser, .when = now, .by_word = false});
  }
}

void Disputes::gone(NodeId node) {
  anew(node);
  costs_.erase(node);
}

void Disputes::anew(NodeId node) {
  said_.erase(node);
  for (auto& [other, said] : said_) said.erase(node);
  std::erase_if(said_, [](const auto& one) { return one.second.empty(); });
}

}  // namespace gossamer::cluster
