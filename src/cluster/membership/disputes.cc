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

void Disputes::quarrels(NodeId by, NodeId of, Epoch epoch, Instant now) {
  Quarrel& quarrel = quarrels_[{by, of}];
  if (now - quarrel.last > kQuarrelForgotten) quarrel = {};
  if (quarrel.epochs > 0 && quarrel.epoch == epoch) return;
  quarrel = {.epoch = epoch, .epochs = quarrel.epochs + 1, .last = now};
}

bool Disputes::quarrel_is_ripe() const {
  return std::ranges::any_of(quarrels_, [](const auto& one) { return one.second.is_ripe(); });
}

bool Disputes::accuses(NodeId by, NodeId of) const {
  const auto quarrel = quarrels_.find({by, of});
  return since(by, of) || (quarrel != quarrels_.end() && quarrel->second.is_ripe());
}

// Weighs the members with a ripe dispute.
std::map<NodeId, Disputes::Weight> Disputes::weights(const std::map<NodeId, Incarnation>& heard,
                                                     Duration ripe, Instant now) const {
  struct Side {
    std::set<NodeId> others;
    std::optional<Instant> ripe;  // when the latest of its ripe disputes began
  };
  std::map<NodeId, Side> sides;
  const auto add = [&](NodeId by, NodeId of, Instant since, bool is_ripe) {
    if (!heard.contains(by) || !heard.contains(of)) return;
    for (const auto& [one, other] : std::array{std::pair(by, of), std::pair(of, by)}) {
      sides[one].others.insert(other);
      if (is_ripe) sides[one].ripe = std::max(sides[one].ripe, std::optional(since));
    }
  };
  for (const auto& [by, said] : said_) {
    for (const auto& [of, since] : said) add(by, of, since, now - since >= std::max(kRipe, ripe));
  }
  for (const auto& [who, quarrel] : quarrels_) {
    if (quarrel.is_ripe()) add(who.first, who.second, quarrel.last, true);
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
  const Weight& own = weights.at(loser);
  for (const NodeId other : partners(loser)) {
    if (accuses(other, loser)) {
      costs_[other].push_back({.node = loser, .when = now, .by_word = true});
      continue;
    }
    const auto weight = weights.find(other);
    const bool only_older = weight != weights.end() && weight->second.others == own.others &&
                            weight->second.by_word == own.by_word && weight->second.lives == own.lives;
    if (only_older) costs_[other].push_back({.node = loser, .when = now, .by_word = false});
  }
}

std::set<NodeId> Disputes::partners(NodeId node) const {
  std::set<NodeId> partners;
  for (const auto& [by, said] : said_) {
    if (said.contains(node)) partners.insert(by);
  }
  if (const auto said = said_.find(node); said != said_.end()) {
    for (const auto& [of, since] : said->second) partners.insert(of);
  }
  for (const auto& [who, quarrel] : quarrels_) {
    if (quarrel.is_ripe() && who.first == node) partners.insert(who.second);
    if (quarrel.is_ripe() && who.second == node) partners.insert(who.first);
  }
  return partners;
}

void Disputes::gone(NodeId node) {
  anew(node);
  std::erase_if(quarrels_,
                [&](const auto& one) { return one.first.first == node || one.first.second == node; });
  costs_.erase(node);
}

void Disputes::anew(NodeId node) {
  said_.erase(node);
  for (auto& [other, said] : said_) said.erase(node);
  std::erase_if(said_, [](const auto& one) { return one.second.empty(); });
}

}  // namespace gossamer::cluster
