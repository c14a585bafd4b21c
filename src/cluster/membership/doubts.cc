// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/doubts.h"

#include <algorithm>
#include <utility>

namespace gossamer::cluster {

// A life that joins holds nothing, and a node may begin many. So it counts only where nobody serves.
std::set<NodeId> Doubts::together(const Fleet& fleet) {
  const bool some_serve =
      std::ranges::any_of(fleet, [](const auto& one) { return one.second.elsewhere && one.second.serves; });
  std::set<NodeId> silent;
  std::size_t elsewhere = 0;
  std::size_t counted = 0;
  std::size_t silent_counted = 0;
  for (const auto& [node, peer] : fleet) {
    if (!peer.elsewhere) continue;
    ++elsewhere;
    if (!peer.heard) silent.insert(node);
    if (some_serve && !peer.serves) continue;
    ++counted;
    if (!peer.heard) ++silent_counted;
  }
  const bool alone = silent.size() == elsewhere;  // nobody is left to ask
  if (alone || silent_counted < 2 || 3 * silent_counted < counted) silent.clear();
  return silent;
}

bool Doubts::says(NodeId by, const std::set<NodeId>& hears, const std::set<NodeId>& quiet) {
  std::map<NodeId, bool> word;
  for (const NodeId node : quiet) word[node] = false;
  for (const NodeId node : hears) word[node] = true;
  if (word.empty()) return words_.erase(by) != 0;
  std::map<NodeId, bool>& said = words_[by];
  if (said == word) return false;
  said = std::move(word);
  return true;
}

void Doubts::came_back(NodeId node, Duration silence, Silence how, Instant now) {
  spared_until_ = std::max(spared_until_, now + std::min(silence, kComeBack));
  last_returns_[how] = now;
  for (auto& [by, word] : words_) word.erase(node);
}

void Doubts::gone(NodeId node) {
  words_.erase(node);
  for (auto& [by, word] : words_) word.erase(node);
}

// The best of the members that are heard and could take the node's things over.
Doubts::Survivor Doubts::survivor(NodeId node, const Fleet& fleet) {
  const bool elsewhere = fleet.at(node).elsewhere;
  Survivor best = Survivor::kNone;
  for (const auto& [other, peer] : fleet) {
    if (other == node || !peer.heard || (elsewhere && !peer.elsewhere)) continue;
    best = std::max(best, !peer.serves ? Survivor::kJoins : !peer.holds ? Survivor::kIdle : Survivor::kHolds);
  }
  return best;
}

std::optional<Instant> Doubts::spares(NodeId node, const Fleet& fleet, Duration patience, Instant now,
                                      Duration abandoned) const {
  const Peer& silent = fleet.at(node);
  const Instant given_up = silent.last_sign + patience;
  if (given_up <= now) return std::nullopt;
  const Survivor who = survivor(node, fleet);
  if (!silent.elsewhere) {  // no network stands between
    return who == Survivor::kNone ? std::optional(given_up) : std::nullopt;
  }
  if (const auto until = others_return_until(now)) return until;
  const auto waits_until = [&](Instant until) { return until > now ? std::optional(until) : std::nullopt; };
  switch (who) {
    case Survivor::kNone: return given_up;
    case Survivor::kJoins:
    case Survivor::kIdle: {
      // With all that hold something the run would lose all that it has learnt.
      const Witnesses all = witnesses(node, fleet);
      const bool dead = who == Survivor::kIdle && all.quiet >= all.hear + 2;
      if (!silent.holds || !silent.serves || dead) break;
      // A joining member's lie costs the others time, and only where all that hold something are gone. Its
      // word only spares: those that have joined meanwhile may be on this side of a cut, and never heard the
      // others.
      const Witnesses joining_too = witnesses(node, fleet, Whose::kAll);
      if (all.hear > all.quiet || joining_too.hear > joining_too.quiet) return given_up;
      return waits_until(std::min(given_up, silent.last_sign + abandoned));
    }
    case Survivor::kHolds: break;
  }
  if (heard_by_others(node, fleet)) return given_up;
  if (!together(fleet).contains(node)) return std::nullopt;
  const auto until = spares_together(node, fleet, given_up, now);
  return until ? std::optional(std::min(*until, given_up)) : std::nullopt;
}

Doubts::Witnesses Doubts::witnesses(NodeId node, const Fleet& fleet, Whose whose) const {
  Witnesses all;
  for (const auto& [by, word] : words_) {
    const auto witness = fleet.find(by);
    if (witness == fleet.end() || !witness->second.heard || !witness->second.elsewhere) continue;
    if (!witness->second.serves && whose == Whose::kServing) continue;
    const auto said = word.find(node);
    if (said != word.end()) ++(said->second ? all.hear : all.quiet);
  }
  return all;
}

bool Doubts::anybody_says(NodeId node, const Fleet& fleet) const {
  const Witnesses all = witnesses(node, fleet);
  return all.hear + all.quiet > 0;
}

bool Doubts::heard_by_others(NodeId node, const Fleet& fleet) const {
  const Witnesses all = witnesses(node, fleet);
  return all.hear > all.quiet;
}

std::optional<Instant> Doubts::spares_together(NodeId node, const Fleet& fleet, Instant given_up,
                                               Instant now) const {
  const Witnesses all = witnesses(node, fleet);
  // One word alone may be a lie, unless there is nobody else to ask.
  const auto asked = std::ranges::count_if(
      fleet, [](const auto& one) { return one.second.heard && one.second.elsewhere && one.second.serves; });
  if (all.quiet >= all.hear + 2 || (all.quiet == 1 && asked == 1)) return std::nullopt;
  if (all.hear > 0 && all.hear >= all.quiet) return given_up;
  // Nobody knows for sure. Another one that is back shows that what made both silent is over.
  const auto back = last_returns_.find(fleet.at(node).silence);
  if (back == last_returns_.end() || back->second < fleet.at(node).last_sign) return given_up;
  const Instant until = back->second + kComeBack;
  return until > now ? std::optional(until) : std::nullopt;
}

Hearing hearing_of(const std::vector<Presence>& members, Instant began, Instant now) {
  const auto heard = static_cast<std::size_t>(std::ranges::count_if(members, &Presence::heard));
  Hearing hearing{.heard = heard, .all = members.size()};
  std::vector<Instant> since;
  const bool any_came = std::ranges::any_of(members, &Presence::came);
  for (const Presence& one : members) {
    if (one.heard || (!one.came && any_came && one.since > now)) continue;
    since.push_back(one.came || any_came ? one.since : began);
  }
  if (2 * since.size() <= members.size()) return hearing;
  std::ranges::sort(since);
  hearing.misses_most_since = since[members.size() / 2];
  return hearing;
}

}  // namespace gossamer::cluster
