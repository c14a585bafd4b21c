// SPDX-License-Identifier: Apache-2.0
//
// Coordinator, the part that knows which members are alive.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/printable.h"
#include "cluster/control/coordinator.h"

namespace gossamer::cluster {

using membership::ToMember;

void Coordinator::here(Member& member, const membership::Here& said) {
  // Relayed links did not work before the member came. So disputes begin anew, but once only: a member that
  // says Here for ever could else delay them for ever.
  if (!std::exchange(member.here, true)) disputes_.anew(NodeId(member.record.node()));
  const bool knows_view = said.epoch() == view_.epoch().value;
  if (!knows_view || said.epoch() == 0) send_view(member, Epoch(said.epoch()));
  member.told = view_.epoch();
  const bool in_force = phase_ == Phase::kSettled || phase_ == Phase::kStopping;
  if (in_force && installed_.epoch() > said.installed() && said.epoch() != 0) {
    reach(ControlProbe::kInstallAgain);
    send_install(member);
  }
  introduce(member);
  if (phase_ == Phase::kShort) release_the_leaving();
  if (phase_ == Phase::kStopping) {
    reach(ControlProbe::kHereWhileStopping);
    ToMember message;
    *message.mutable_stop() = stop_;
    tell(member, std::move(message));
  }
}

// Tells listening members about a joining one. A joining member opens all of its links itself, but not to
// members that it cannot reach. These must open the link, and do not see the joining member in their view.
void Coordinator::introduce(const Member& member) {
  const auto tell_of = [this](const Member& joins, const Member& other) {
    if (!joins.here || !other.here || joins.record.state() != membership::JOINING) return;
    if (reaches(joins.record, other.record) || !reaches(other.record, joins.record)) return;
    ToMember message;
    *message.mutable_joining()->mutable_member() = joins.record;
    tell(other, std::move(message));
  };
  for (const auto& [node, other] : members_) {
    tell_of(other, member);
    tell_of(member, other);
  }
}

void Coordinator::beat(Member& member, const membership::Beat& said, Instant now) {
  const net::PeerId peer = peer_of(member.record);
  ToMember seen;
  seen.mutable_beat_seen()->set_sent_ns(said.sent_ns());
  say(peer, std::move(seen));  // rests on no decision
  if (options_.defect == Defect::kChatter && installed_.epoch() != 0) send_install(member);
  member.pace.add({.speed = said.speed(), .own_work = said.own_work(), .step_s = said.step_seconds()});
  member.steps = said.has_steps() ? std::optional(said.steps()) : std::nullopt;
  const std::size_t names =
      static_cast<std::size_t>(said.unreachable_size()) + static_cast<std::size_t>(said.lost_size());
  if (names > kMostNames) return fence(peer.node, "it names more nodes than there can be", now);
  std::set<NodeId> unreachable;
  for (const std::uint64_t node : said.unreachable()) {
    if (view_.members().contains(NodeId(node)) && NodeId(node) != peer.node) unreachable.insert(NodeId(node));
  }
  disputes_.says(peer.node, unreachable, now);
  if (!unreachable.empty() && phase_ != Phase::kStopping) {
    judge_missing(now);
    judge_unreachable(now);
  }
  Member* const still = find(peer);
  if (still == nullptr) return;
  if (!applied(*still, said.progress(), now)) return;
  const bool lost = std::any_of(said.lost().begin(), said.lost().end(), [this](std::uint64_t node) {
    return view_.members().contains(NodeId(node));
  });
  // Messages between two members are lost, so all come to rest and go on from the same step.
  const bool news = said.epoch() == view_.epoch().value && view_.find(peer) != nullptr;
  if (!lost || !news || options_.view_change != ViewChange::kFrozen || now < still->believed_from) return;
  // A member that loses something after each change of the view would keep all others from a step.
  const bool long_ago = now - still->believed_from > kLossForgotten;
  still->disbelief = long_ago ? kLossEvery : Duration{std::min(2 * still->disbelief.ns, kLossForgotten.ns)};
  still->believed_from = now + still->disbelief;
  want_change(now);
}

// Whether the member has come and is heard. Only then others' words about it can be weighed.
bool Coordinator::is_heard(NodeId node, Instant now) const {
  const auto member = members_.find(node);
  if (member == members_.end() || !member->second.here || !member->second.detector) return false;
  FailureDetector judged = *member->second.detector;
  return judged.verdict(now) == Verdict::kAlive;
}

void Coordinator::judge_unreachable(Instant now) {
  std::map<NodeId, Incarnation> heard;
  for (const auto& [node, record] : view_.members()) {  // a joining member does not judge
    if (is_heard(node, now)) heard[node] = Incarnation(members_.at(node).record.incarnation());
  }
  std::vector<NodeId> losers;
  for (auto loser = disputes_.settle(heard, now); loser; loser = disputes_.settle(heard, now))
    losers.push_back(*loser);
  if (losers.empty()) return;
  reach(ControlProbe::kUnreachable);
  fence_all(losers, std::string(kUnreachable), now);
}

// Fences members that died during a takeover: those that have not come though all others have, if none of
// these reaches them. A missing member that none of the others could reach directly was reached through the
// coordinator before. Then nothing follows from the silence.
void Coordinator::judge_missing(Instant now) {
  std::vector<NodeId> missing;
  std::vector<NodeId> here;
  for (const auto& [node, record] : view_.members()) {
    const auto member = members_.find(node);
    if (member == members_.end()) continue;
    if (member->second.here) {
      here.push_back(node);
    } else {
      missing.push_back(node);
    }
  }
  const auto reached_before = [&](NodeId node) {
    const membership::MemberRecord& record = members_.at(node).record;
    return std::ranges::any_of(here, [&](NodeId one) { return reaches(members_.at(one).record, record); });
  };
  if (!std::ranges::all_of(missing, reached_before)) return;
  const auto misses = [&](NodeId node) {
    return std::all_of(here.begin(), here.end(), [&](NodeId one) {
      const auto since = disputes_.since(one, node);
      return since && now - *since >= kMissingFor;
    });
  };
  // A few members that came but are cut off together do not speak for the others.
  if (missing.size() > here.size() || !std::all_of(missing.begin(), missing.end(), misses)) return;
  if (missing.empty()) return;
  reach(ControlProbe::kMissing);
  fence_all(missing, "it did not come, and nobody reaches it", now);
}

void Coordinator::leave(Member& member, const membership::Leave& said, Instant now) {
  const net::PeerId peer = peer_of(member.record);
  note("leaving", peer, printable(said.reason()));
  member.leaves = true;
  fence(peer.node, "it left", now);  // the end of its link tells it that it may go
}

void Coordinator::wake(Member& member, std::optional<Instant> when) {
  const NodeId node(member.record.node());
  if (member.wake) wakes_.erase({*member.wake, node});
  member.wake = when;
  if (when) wakes_.insert({*when, node});
}

void Coordinator::schedule(Member& member) {
  wake(member, member.detector ? member.detector->next_wakeup() : std::optional(member.deadline));
}

void Coordinator::heard(Member& member, Instant now) {
  const Duration silence = now - last_heard_;
  last_heard_ = now;
  if (std::exchange(cut_off_, false)) {
    // The silence was ours, and nothing was relayed. Connections try again the later the longer it was, and
    // not all at once.
    disputes_.all_anew();
    spared_until_ = now + std::min(silence, kHereTime);
    for (auto& [node, one] : members_) {
      if (one.detector) one.detector.emplace(now);
      one.died.reset();
      schedule(one);
    }
  }
  member.died.reset();
  if (member.detector) {
    member.detector->heard(now);
  } else {
    member.detector.emplace(now);
  }
}

void Coordinator::closed(Member& member, Instant now) {
  // Another connection takes about four round trips.
  const auto round_trip = links_.statistics(NodeId(member.record.node())).round_trip;
  Duration confirm = FailureDetector::kConfirm;
  if (round_trip) confirm = std::max(confirm, Duration{4 * round_trip->ns});
  member.detector->closed(now, confirm);
}

// Until when nobody is fenced, because nobody at all is heard. Then probably this process has lost its
// network, and not all members theirs. Members need no coordinator for a step. They get as long as after a
// takeover.
std::optional<Instant> Coordinator::nobody_fenced_until(Instant now) {
  if (!cut_off_ && now - last_heard_ > kAllSilent) {
    cut_off_ = true;
    note("cut_off", {}, "no member is heard; none is fenced for 10 s");
  }
  const Instant until = cut_off_ ? last_heard_ + kHereTime : spared_until_;
  return now < until ? std::optional(until) : std::nullopt;
}

// When the last member is due that is suspected already. Deaths come in groups: a switch, a rack. With one
// change for each, the last would wait for the writes of the others. Resting members wait for it anyway.
Instant Coordinator::last_due(Instant with, Instant now) const {
  Instant last = now;
  for (const auto& [node, member] : members_) {
    if (!member.detector || member.died) continue;
    FailureDetector judged = *member.detector;
    if (judged.verdict(now) != Verdict::kSuspected) continue;
    const std::optional<Instant> due = judged.next_wakeup();
    if (due && *due <= with + kTogether) last = std::max(last, *due);
  }
  return last;
}

void Coordinator::watch(Instant now) {
  std::vector<NodeId> late;
  std::vector<NodeId> dead;
  Instant first = now;
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    const NodeId node = wakes_.begin()->second;
    wakes_.erase(wakes_.begin());
    Member& member = members_.at(node);
    member.wake.reset();
    if (!member.detector) {
      late.push_back(node);
      continue;
    }
    FailureDetector judged = *member.detector;  // a copy: a verdict of death is final, may not be wanted
    if (judged.verdict(now) != Verdict::kDead) {
      member.detector = judged;
      schedule(member);
    } else if (const auto until = nobody_fenced_until(now)) {
      wake(member, *until);
    } else {
      const Instant died = member.died.value_or(now);
      member.died = died;
      first = std::min(first, died);
      dead.push_back(node);
    }
  }
  if (!late.empty()) {
    reach(ControlProbe::kNotHereInTime);
    fence_all(late, "it did not come in time", now);
  }
  if (dead.empty()) return;
  if (const Instant last = last_due(first, now); last > now) {
    reach(ControlProbe::kDeathsTogether);
    for (const NodeId node : dead) wake(members_.at(node), last);
    return;
  }
  reach(ControlProbe::kSilent);
  fence_all(dead, "it is silent", now);
}

// Fences members that have not come to rest in time: one engine that hangs must not stop the others.
void Coordinator::fence_the_restless(Instant now) {
  freeze_deadline_.reset();
  std::vector<NodeId> restless;
  for (const auto& [node, record] : view_.members()) {
    if (!reports_.contains(node)) restless.push_back(node);
  }
  if (!restless.empty()) reach(ControlProbe::kRestless);
  fence_all(restless, "it did not come to rest in time", now);
}

void Coordinator::fence_all(const std::vector<NodeId>& nodes, const std::string& why, Instant now) {
  const bool in_view = std::any_of(nodes.begin(), nodes.end(), [this](NodeId node) {
    return members_.at(node).record.state() != membership::JOINING;
  });
  if (in_view) reserve_epoch();
  for (const NodeId node : nodes) bury(node, why);
  if (in_view && phase_ != Phase::kStopping) return begin_change(now);
  if (!nodes.empty() && phase_ == Phase::kShort) release_the_leaving();
}

void Coordinator::bury(NodeId node, const std::string& why) {
  const auto found = members_.find(node);
  CHECK(found != members_.end(), node.value);
  const net::PeerId peer = peer_of(found->second.record);
  note("lost", peer, why);
  if (found->second.wake) wakes_.erase({*found->second.wake, node});
  if (phase_ == Phase::kStopping && !found->second.leaves) last_word_ = now_ + kLastWord;
  members_.erase(found);
  reports_.erase(node);
  disputes_.gone(node);
  if (fenced_.fence(peer.incarnation)) {
    outbox_.put(put_fenced(fenced_));
    fenced_since_.push_back({peer.incarnation, peer.incarnation});
  }
  outbox_.put(remove_member(peer.incarnation));
  free_everything_of(peer.incarnation);
  refuse(peer);
}

}  // namespace gossamer::cluster
