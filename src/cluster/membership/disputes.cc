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

bool Disputes::quarrels(NodeId by, NodeId of, std::uint64_t times, Epoch epoch, Instant now) {
  Quarrel& quarrel = quarrels_[{by, of}];
  if (now - quarrel.last > kQuarrelForgotten) quarrel.epochs = 0;
  const bool is_new = times > quarrel.times && (quarrel.epochs == 0 || quarrel.epoch != epoch);
  quarrel.times = std::max(quarrel.times, times);
  if (is_new) quarrel = {.epoch = epoch, .epochs = quarrel.epochs + 1, .times = times, .last = now};
  return is_new;
}

bool Disputes::quarrel_is_ripe(const std::function<bool(NodeId)>& heard) const {
  return std::ranges::any_of(quarrels_, [&](const auto& one) {
    return one.second.is_ripe() && heard(one.first.first) && heard(one.first.second);
  });
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
      const std::set<NodeId> now_with = side.others;
      for (const Cost& cost : costs->second) {
        if (cost.when > *side.ripe || !counts(cost, now_with)) continue;
        side.others.insert(cost.node);
        ++weight.lives;
        if (cost.by_word) ++weight.by_word;
      }
    }
    weight.others = side.others.size();
  }
  return weights;
}

std::optional<Disputes::Loser> Disputes::settle(const std::map<NodeId, Incarnation>& heard, Duration ripe,
                                                Instant now) {
  const std::map<NodeId, Weight> weighed = weights(heard, ripe, now);
  if (weighed.empty()) return std::nullopt;
  const auto lighter = [](const auto& a, const auto& b) { return a.second < b.second; };
  const NodeId loser = std::max_element(weighed.begin(), weighed.end(), lighter)->first;
  if (memory_ == Memory::kKept) remember(loser, weighed, now);
  // What it had said together with others is now the word of these alone.
  for (auto& [node, costs] : costs_) {
    for (Cost& cost : costs) cost.with.erase(loser);
  }
  const Loser lost{.node = loser, .quarrels_with = quarrels_with(loser)};
  anew(loser);
  costs_.erase(loser);
  for (auto& [who, quarrel] : quarrels_) {
    if (who.first == loser || who.second == loser) quarrel.epochs = 0;
  }
  return lost;
}

std::optional<NodeId> Disputes::quarrels_with(NodeId node) const {
  std::set<NodeId> others;
  for (const auto& [who, quarrel] : quarrels_) {
    if (!quarrel.is_ripe()) continue;
    if (who.first == node) others.insert(who.second);
    if (who.second == node) others.insert(who.first);
  }
  return others.size() == 1 ? std::optional(*others.begin()) : std::nullopt;
}

bool Disputes::counts(const Cost& cost, const std::set<NodeId>& partners) const {
  const auto again = [&](NodeId one) {
    return std::ranges::any_of(partners, [&](NodeId partner) { return accuses(one, partner); });
  };
  return cost.with.empty() || std::ranges::any_of(cost.with, again);
}

Disputes::Weight Disputes::towards(NodeId other, NodeId loser, Weight weight) const {
  const auto costs = costs_.find(loser);
  if (costs == costs_.end()) return weight;
  for (const Cost& cost : costs->second) {
    if (cost.node != other) continue;
    if (weight.lives > 0) --weight.lives;
    if (cost.by_word && weight.by_word > 0) --weight.by_word;
  }
  return weight;
}

void Disputes::remember(NodeId loser, const std::map<NodeId, Weight>& weights, Instant now) {
  std::set<NodeId> accusers = partners(loser);
  std::erase_if(accusers, [&](NodeId one) { return !accuses(one, loser); });
  for (const NodeId other : partners(loser)) {
    const auto weight = weights.find(other);
    const bool by_word = accusers.contains(other);
    const bool alone = weight != weights.end() &&
                       towards(other, loser, weights.at(loser)).equals_but_for_age(weight->second);
    std::set<NodeId> with = accusers;
    with.erase(other);
    if (alone) {
      costs_[other].push_back({.node = loser, .when = now, .by_word = by_word, .with = {}});
    } else if (by_word && !with.empty()) {
      costs_[other].push_back({.node = loser, .when = now, .by_word = true, .with = std::move(with)});
    }
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

void Disputes::favoured(NodeId stays, NodeId gone, Instant now) {
  this->gone(stays);
  if (memory_ == Memory::kKept)
    costs_[stays].push_back({.node = gone, .when = now, .by_word = false, .with = {}});
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
