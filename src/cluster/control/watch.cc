// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/watch.h"

#include <algorithm>
#include <map>
#include <utility>

namespace gossamer::cluster {

Watch::Watch(const Leadership& leadership, net::Links& links, Instant now)
    : options_(leadership.options),
      run_(leadership.run),
      outbox_(leadership.outbox),
      links_(links),
      disputes_(options_.guarded(Defect::kShortMemory) ? Disputes::Memory::kKept : Disputes::Memory::kNone),
      last_heard_(now) {}

void Watch::expect(LedMember& member, Instant now) {
  member.deadline = now + kHereTime;
  schedule(member);
}

void Watch::come(LedMember& member) {
  // Relayed links did not work before the member came. So disputes begin anew, but once only: a member that
  // says Here for ever could else delay them for ever.
  if (!std::exchange(member.here, true)) disputes_.anew(NodeId(member.record.node()));
}

void Watch::wake(LedMember& member, std::optional<Instant> when) {
  const NodeId node(member.record.node());
  if (member.wake) wakes_.erase({*member.wake, node});
  member.wake = when;
  if (when) wakes_.insert({*when, node});
}

void Watch::schedule(LedMember& member) {
  wake(member, member.detector ? member.detector->next_wakeup() : std::optional(member.deadline));
}

void Watch::forget(const LedMember& member) {
  const NodeId node(member.record.node());
  if (member.wake) wakes_.erase({*member.wake, node});
  disputes_.gone(node);
}

void Watch::heard(LedMember& member, Instant now) {
  const Duration silence = now - last_heard_;
  last_heard_ = now;
  if (std::exchange(cut_off_, false)) {
    // The silence was ours, and nothing was relayed. Connections try again the later the longer it was, and
    // not all at once.
    disputes_.all_anew();
    spared_until_ = now + std::min(silence, kHereTime);
    for (auto& [node, one] : run_.members) {
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

void Watch::closed(LedMember& member, Instant now) {
  // Another connection takes about four round trips.
  const auto round_trip = links_.statistics(NodeId(member.record.node())).round_trip;
  Duration confirm = FailureDetector::kConfirm;
  if (round_trip) confirm = std::max(confirm, Duration{4 * round_trip->ns});
  member.detector->closed(now, confirm);
}

void Watch::says(NodeId by, const std::set<NodeId>& others, Instant now) { disputes_.says(by, others, now); }

// Whether the member has come and is heard. Only then others' words about it can be weighed.
bool Watch::is_heard(NodeId node, Instant now) const {
  const auto member = run_.members.find(node);
  if (member == run_.members.end() || !member->second.here || !member->second.detector) return false;
  FailureDetector judged = *member->second.detector;
  return judged.verdict(now) == Verdict::kAlive;
}

std::vector<NodeId> Watch::unreachable(Instant now) {
  std::map<NodeId, Incarnation> heard;
  for (const auto& [node, record] : run_.view.members()) {  // a joining member does not judge
    if (is_heard(node, now)) heard[node] = Incarnation(run_.members.at(node).record.incarnation());
  }
  std::vector<NodeId> losers;
  for (auto loser = disputes_.settle(heard, now); loser; loser = disputes_.settle(heard, now))
    losers.push_back(*loser);
  if (!losers.empty()) reach(ControlProbe::kUnreachable);
  return losers;
}

// Members that died during a takeover: those that have not come though all others have, if none of these
// reaches them. A missing member that none of the others could reach directly was reached through the
// coordinator before. Then nothing follows from the silence.
std::vector<NodeId> Watch::missing(Instant now) {
  std::vector<NodeId> missing;
  std::vector<NodeId> here;
  for (const auto& [node, record] : run_.view.members()) {
    const auto member = run_.members.find(node);
    if (member == run_.members.end()) continue;
    if (member->second.here) {
      here.push_back(node);
    } else {
      missing.push_back(node);
    }
  }
  const auto reached_before = [&](NodeId node) {
    const membership::MemberRecord& record = run_.members.at(node).record;
    return std::ranges::any_of(here,
                               [&](NodeId one) { return reaches(run_.members.at(one).record, record); });
  };
  if (!std::ranges::all_of(missing, reached_before)) return {};
  const auto misses = [&](NodeId node) {
    return std::all_of(here.begin(), here.end(), [&](NodeId one) {
      const auto since = disputes_.since(one, node);
      return since && now - *since >= kMissingFor;
    });
  };
  // A few members that came but are cut off together do not speak for the others.
  if (missing.size() > here.size() || !std::all_of(missing.begin(), missing.end(), misses)) return {};
  if (!missing.empty()) reach(ControlProbe::kMissing);
  return missing;
}

// Until when nobody is fenced, because nobody at all is heard. Then probably this process has lost its
// network, and not all members theirs. Members need no coordinator for a step. They get as long as after a
// takeover.
std::optional<Instant> Watch::nobody_fenced_until(Instant now) {
  if (!cut_off_ && now - last_heard_ > kAllSilent) {
    cut_off_ = true;
    outbox_.note("cut_off", {}, "no member is heard; none is fenced for 10 s");
  }
  const Instant until = cut_off_ ? last_heard_ + kHereTime : spared_until_;
  return now < until ? std::optional(until) : std::nullopt;
}

// When the last member is due that is suspected already. Deaths come in groups: a switch, a rack. With one
// change for each, the last would wait for the writes of the others. Resting members wait for it anyway.
Instant Watch::last_due(Instant with, Instant now) const {
  Instant last = now;
  for (const auto& [node, member] : run_.members) {
    if (!member.detector || member.died) continue;
    FailureDetector judged = *member.detector;
    if (judged.verdict(now) != Verdict::kSuspected) continue;
    const std::optional<Instant> due = judged.next_wakeup();
    if (due && *due <= with + kTogether) last = std::max(last, *due);
  }
  return last;
}

std::vector<Fencing> Watch::due(Instant now) {
  std::vector<NodeId> late;
  std::vector<NodeId> dead;
  Instant first = now;
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    const NodeId node = wakes_.begin()->second;
    wakes_.erase(wakes_.begin());
    LedMember& member = run_.members.at(node);
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
  std::vector<Fencing> all;
  if (!late.empty()) {
    reach(ControlProbe::kNotHereInTime);
    all.push_back({std::move(late), "it did not come in time"});
  }
  if (dead.empty()) return all;
  if (const Instant last = last_due(first, now); last > now) {
    reach(ControlProbe::kDeathsTogether);
    for (const NodeId node : dead) wake(run_.members.at(node), last);
    return all;
  }
  reach(ControlProbe::kSilent);
  all.push_back({std::move(dead), "it is silent"});
  return all;
}

std::optional<Instant> Watch::next_wakeup() const {
  return wakes_.empty() ? std::nullopt : std::optional(wakes_.begin()->first);
}

}  // namespace gossamer::cluster
