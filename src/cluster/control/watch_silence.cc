// SPDX-License-Identifier: Apache-2.0
//
// Watch, which silent members are spared, and for how long.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "cluster/control/watch.h"

namespace gossamer::cluster {

Duration Watch::patience_of(const LedMember& member, const Patience& all) const {
  return silent_times_.left_of(is_elsewhere(member) ? all.elsewhere : all.here,
                               Incarnation(member.record.incarnation()));
}

// One write for all, at most once a second: many may be back at once.
void Watch::count_silences(Instant now) {
  if (now < next_count_) return;
  next_count_ = now + kLookAgain;
  bool changed = false;
  for (const auto& [node, member] : run_.members) {
    if (member.record.state() == membership::JOINING || now - member.silent_since() < kLookAgain) continue;
    if (silent_times_.lasts(Incarnation(member.record.incarnation()), now - member.silent_since()))
      changed = true;
  }
  if (changed || std::exchange(a_silence_ended_, false)) outbox_.put(put_silent(silent_times_.rows()));
}

void Watch::ends_silence(const LedMember& member) {
  if (silent_times_.ends(Incarnation(member.record.incarnation()))) a_silence_ended_ = true;
}

Hearing Watch::hears_elsewhere(Instant now) const {
  std::vector<Presence> members;
  for (const auto& [node, member] : run_.members) {
    if (!is_elsewhere(member) || member.record.state() == membership::JOINING) continue;
    const bool came = member.detector.has_value();
    members.push_back(
        {.heard = member.is_heard(now), .came = came, .since = came ? member.last_sign : here_until(member)});
  }
  return hearing_of(members, began_, now);
}

std::optional<Instant> Watch::spares(LedMember& member, const Doubts::Fleet& fleet, const Patience& all,
                                     Instant now) {
  if (!options_.guarded(Defect::kSilenceFences)) return std::nullopt;
  const NodeId node(member.record.node());
  const Duration patience = patience_of(member, all);
  if (!fleet.contains(node)) {
    // It began and never came. If nobody elsewhere is heard, that may be our doing.
    const Instant given_up = member.silent_since() + patience;
    const auto until = alone_since(now) ? std::optional(given_up) : doubts_.others_return_until(now);
    if (!until || given_up <= now) return std::nullopt;
    member.spared = LedMember::Spared::kWithOthers;
    return std::min(*until, given_up);
  }
  const Duration abandoned =
      silent_times_.left_of(Doubts::kAbandoned, Incarnation(member.record.incarnation()));
  const auto until = doubts_.spares(node, fleet, patience, now, abandoned);
  if (!until) return std::nullopt;
  const bool alone = !together_ && doubts_.heard_by_others(node, fleet);
  spare(member, alone ? LedMember::Spared::kAlone : LedMember::Spared::kWithOthers);
  return until;
}

void Watch::spare(LedMember& member, LedMember::Spared how) {
  const auto before = std::exchange(member.spared, how);
  if (how == LedMember::Spared::kAlone) {
    if (before != LedMember::Spared::kNo) return;
    reach(ControlProbe::kHeardByOthers);
    outbox_.note("unheard", peer_of(member.record), "other members hear it; it is not fenced");
  } else if (asked_about_.empty() && !std::exchange(cut_off_, true)) {
    reach(ControlProbe::kCutOff);
    outbox_.note("cut_off", {},
                 "no member is heard that could take over from the silent ones; none is fenced");
  }
}

// Those whose silence is long enough to ask about, if others are heard that can be asked.
std::set<NodeId> Watch::doubtful(const Doubts::Fleet& fleet, Instant now) {
  std::set<NodeId> silent = Doubts::together(fleet);
  const auto asked = [](const auto& one) { return one.second.heard && one.second.elsewhere; };
  if (!silent.empty() || std::ranges::none_of(fleet, asked)) return silent;
  for (const auto& [node, peer] : fleet) {
    if (peer.heard || !peer.elsewhere) continue;
    const Instant due = peer.last_sign + kAskAfter;
    if (due <= now || run_.members.at(node).down) {
      silent.insert(node);
    } else {
      ask_at_ = sooner(ask_at_, due);
    }
  }
  return silent;
}

void Watch::ask_about(const Doubts::Fleet& fleet, Instant now) {
  const std::set<NodeId> silent = doubtful(fleet, now);
  const bool together = !Doubts::together(fleet).empty();
  if (together && !together_) {
    reach(ControlProbe::kDoubt);
    outbox_.note("doubt", {},
                 fmt::format("{} of {} members fell silent together; none is fenced until others say so",
                             silent.size(), fleet.size()));
  }
  together_ = together;
  if (silent.empty() && asked_about_.empty()) return;
  if (!std::ranges::equal(silent, asked_about_ | std::views::keys)) asked_.clear();
  std::erase_if(asked_about_, [&](const auto& one) { return !silent.contains(one.first); });
  for (const NodeId node : silent) asked_about_.try_emplace(node, now);
  membership::ToMember message;
  for (const NodeId node : silent) message.mutable_doubt()->add_nodes(node.value);
  message.mutable_doubt();
  for (const auto& [node, peer] : fleet) {
    if (!peer.heard) {
      asked_.erase(node);
    } else if (asked_.insert(node).second) {
      outbox_.say(peer_of(run_.members.at(node).record), message);
    }
  }
}

// A joining member holds nothing. The process of one on this machine is gone if it has no connection: no
// network stands between.
bool Watch::may_be_needed(NodeId node, const Patience& patience, Instant now) const {
  const LedMember& member = run_.members.at(node);
  return member.record.state() != membership::JOINING &&
         (is_elsewhere(member) || (member.here && !member.down)) &&
         member.silent_since() + patience_of(member, patience) > now;
}

void Watch::keep_needed(std::vector<Fencing>& due, const Patience& patience, const CanLose& can_lose,
                        Instant now) {
  std::set<NodeId> silent;
  for (const Fencing& one : due) {
    for (const NodeId node : one.nodes) {
      if (may_be_needed(node, patience, now)) silent.insert(node);
    }
  }
  if (silent.empty() || can_lose(silent)) return;
  for (Fencing& one : due) std::erase_if(one.nodes, [&](NodeId node) { return silent.contains(node); });
  std::erase_if(due, [](const Fencing& one) { return one.nodes.empty(); });
  for (const NodeId node : silent) {
    LedMember& member = run_.members.at(node);
    member.spared = LedMember::Spared::kNeeded;
    wake(member, std::min(now + kLookAgain, member.silent_since() + patience_of(member, patience)));
  }
}

// Until when others have time to say whether they hear the silent node; nothing: one has said so, they had
// the time, or none is asked.
std::optional<Instant> Watch::answers_until(NodeId node, const Doubts::Fleet& fleet, Instant now) const {
  const auto since = asked_about_.find(node);
  if (since == asked_about_.end() || doubts_.anybody_says(node, fleet)) return std::nullopt;
  if (!options_.guarded(Defect::kSilenceFences)) return std::nullopt;
  const Instant until = since->second + kAnswersWithin;
  return until > now ? std::optional(until) : std::nullopt;
}

std::string Watch::waits_for(Wait wait, Instant now) const {
  const bool ends = wait == Wait::kForTheEnd;
  std::vector<std::uint64_t> nodes;
  for (const auto& [node, member] : run_.members) {
    const bool waits = ends ? !member.is_heard(now) : member.spared == LedMember::Spared::kWithOthers;
    if (waits && member.record.state() != membership::JOINING) nodes.push_back(node.value);
  }
  if (nodes.empty()) return {};
  const std::string_view words =
      ends ? "the run ends once node {} is heard, after ten minutes of silence at the latest"
           : "node {} is silent, and nothing shows that it is dead; it has ten minutes to come back";
  return fmt::format(fmt::runtime(words), fmt::join(nodes, ", "));
}

}  // namespace gossamer::cluster
