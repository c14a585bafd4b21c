// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <ranges>
#include <utility>

#include "cluster/control/run_placement.h"

namespace gossamer::cluster {
namespace {

Doubts::Silence silence_of(const LedMember& member) {
  return member.hung_up ? Doubts::Silence::kHungUp : Doubts::Silence::kWithoutAWord;
}

}  // namespace

Watch::Watch(const Leadership& leadership, net::Links& links, SilentTimes::Rows silent, Instant now)
    : options_(leadership.options),
      run_(leadership.run),
      outbox_(leadership.outbox),
      links_(links),
      disputes_(options_.guarded(Defect::kShortMemory) ? Disputes::Memory::kKept : Disputes::Memory::kNone),
      silent_times_(std::move(silent)),
      began_(now),
      last_came_(now) {}

void Watch::expect(LedMember& member, Instant now) {
  member.deadline = now + kHereTime;
  member.last_sign = now;
  schedule(member);
}

void Watch::come(LedMember& member, Instant now) {
  // Relayed links did not work before the member came. So disputes begin anew, but once only: a member that
  // says Here for ever could else delay them for ever.
  if (std::exchange(member.here, true)) return;
  disputes_.anew(NodeId(member.record.node()));
  if (member.record.state() != membership::JOINING) last_came_ = now;
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

void Watch::forget(const LedMember& member, Instant now) {
  const NodeId node(member.record.node());
  wake_spared(now);  // those that fell silent with it may be few now
  if (member.wake) wakes_.erase({*member.wake, node});
  disputes_.gone(node);
  doubts_.gone(node);
  accusations_.gone(node);
  for (const NodeId one : run_.departures.gone(node)) disputes_.favoured(one, node, now);
  stall_clock_.gone(node);
  ends_silence(member);
  asked_about_.erase(node);
  asked_.erase(node);
}

void Watch::heard(LedMember& member, Instant now) {
  // It may take over from others, or be a witness.
  if (!member.is_heard(now)) {
    wake_spared(now);
    ask_at_ = now;
  }
  const auto spared = std::exchange(member.spared, LedMember::Spared::kNo);
  if (spared == LedMember::Spared::kWithOthers || spared == LedMember::Spared::kNeeded) {
    // The silence was not the member's death. Nothing was relayed meanwhile, and connections come back one
    // after another.
    cut_off_ = false;
    disputes_.all_anew();
    doubts_.came_back(NodeId(member.record.node()), now - member.last_sign, silence_of(member), now);
  }
  ends_silence(member);
  member.last_sign = now;
  member.down = member.hung_up = false;
  member.died.reset();
  if (member.detector) {
    member.detector->heard(now);
  } else {
    member.detector.emplace(now);
  }
  if (asked_about_.contains(NodeId(member.record.node()))) ask_at_ = sooner(ask_at_, now + kTogether);
}

void Watch::begins_again(const LedMember& member, Instant now) {
  if (member.spared != LedMember::Spared::kWithOthers && member.spared != LedMember::Spared::kNeeded) return;
  doubts_.came_back(NodeId(member.record.node()), now - member.last_sign, silence_of(member), now);
  wake_spared(now);
}

void Watch::wake_spared(Instant now) {
  for (auto& [node, one] : run_.members) {
    if (one.spared != LedMember::Spared::kNo || one.died) wake(one, now);
  }
}

void Watch::closed(LedMember& member, Instant now) {
  const auto round_trip = links_.statistics(NodeId(member.record.node())).round_trip;
  member.down = true;
  member.hung_up = member.hung_up || now - member.last_sign < kHangsUpWithin;
  // The detector of one that seems dead is asked no more, and would take that for a pause of this process.
  if (!member.died)
    member.detector->closed(now, FailureDetector::confirm_after(round_trip, options_.beat_every));
  ask_at_ = now;
}

void Watch::says(NodeId by, const Word& word, Instant now) {
  disputes_.says(by, word.unreachable, now);
  if (asked_about_.empty() || !options_.guarded(Defect::kNoWitness)) return;
  if (doubts_.says(by, word.hears, word.quiet)) wake_spared(now);
}

Doubts::Fleet Watch::fleet(Instant now) const {
  Doubts::Fleet fleet;
  std::set<NodeId> holders;
  for (const auto& [thing, node] : run_.holdings) holders.insert(node);
  for (const auto& [node, member] : run_.members) {
    const bool joins = member.record.state() == membership::JOINING;
    if (joins && !member.here) continue;  // it is not silent yet
    fleet[node] = {.elsewhere = is_elsewhere(member),
                   .serves = !joins,
                   .holds = holders.empty() || holders.contains(node),
                   .heard = member.is_heard(now),
                   .last_sign = member.silent_since(),
                   .silence = silence_of(member)};
  }
  return fleet;
}

std::optional<Instant> Watch::alone_since(Instant now) const {
  std::optional<Instant> since;
  for (const auto& [node, member] : run_.members) {
    if (!is_elsewhere(member)) continue;
    if (member.is_heard(now)) return std::nullopt;
    if (member.record.state() == membership::JOINING) continue;
    since = std::max(since.value_or(began_), member.last_sign);
  }
  return since;
}

bool Watch::misses_alone(NodeId node, Instant now) const {
  const Doubts::Fleet known = fleet(now);
  return known.contains(node) && doubts_.heard_by_others(node, known) && Doubts::together(known).empty() &&
         !doubts_.others_return_until(now);
}

bool Watch::misses_living(Instant now) const {
  const Doubts::Fleet known = fleet(now);
  return std::ranges::any_of(known, [&](const auto& one) {
    return !one.second.heard && one.second.serves && doubts_.heard_by_others(one.first, known);
  });
}

void Watch::works(const Work& work, Instant now) {
  const Work before = std::exchange(work_, work);
  if (before == work) return;
  disputes_.all_anew();
  if (before.committed != work.committed) stall_clock_.stepped(now);
  // An Install may set the number, too.
  if (before.installed == work.installed && before.committed < work.committed) run_.departures.stepped();
}

bool Watch::stands_still(bool works, const std::function<bool()>& all_heard, Instant now) {
  // Members that go on while the view changes take no steps together, and no rest could show who hangs.
  const bool in_lockstep = options_.view_change == ViewChange::kFrozen && work_.committed;
  stall_clock_.expects(works && in_lockstep, now);
  if (!stall_clock_.is_due(step_seconds(run_, now), now)) return false;
  const bool asks = all_heard();
  if (!asks) {
    stall_clock_.put_off(now);
    return false;
  }
  stall_clock_.asked(now);
  reach(ControlProbe::kStandsStill);
  outbox_.note("stands_still", {}, "no step is taken, and no member works; all come to rest");
  return true;
}

std::vector<NodeId> Watch::unreachable(Instant now) {
  std::map<NodeId, Incarnation> heard;
  for (const auto& [node, record] : run_.view.members()) {  // a joining member does not judge
    if (run_.hears(node, now) && !run_.departures.contains(node))
      heard[node] = Incarnation(run_.members.at(node).record.incarnation());
  }
  std::vector<NodeId> losers;
  const Duration ripe = from_seconds(std::min(3 * step_seconds(run_, now), kLongestStep.seconds()));
  while (const auto loser = disputes_.settle(heard, ripe, now)) {
    heard.erase(loser->node);
    losers.push_back(loser->node);
    run_.departures.add(loser->node, loser->quarrels_with);
  }
  if (!losers.empty()) reach(ControlProbe::kUnreachable);
  return losers;
}

void Watch::loses(NodeId by, NodeId of, std::uint64_t times, Epoch epoch, Instant now) {
  const auto& serving = run_.view.members();
  if (options_.view_change != ViewChange::kFrozen || !serving.contains(by) || !serving.contains(of)) return;
  if (!accusations_.stands(by, of) || !options_.guarded(Defect::kEndlessQuarrel)) return;
  reach(ControlProbe::kQuarrel);
  if (disputes_.quarrels(by, of, times, epoch, now)) run_.departures.spoilt(by, of, epoch);
}

bool Watch::quarrel_is_ripe(Instant now) const {
  return disputes_.quarrel_is_ripe([&](NodeId node) { return run_.hears(node, now); });
}

std::optional<Accusations::Verdict> Watch::guilty() const {
  std::set<NodeId> judges;
  for (const auto& [node, record] : run_.view.members()) {
    if (run_.members.contains(node)) judges.insert(node);
  }
  return accusations_.settle(judges);
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
  // A member on this machine is cut off with it.
  const auto elsewhere = [&](NodeId node) { return is_elsewhere(run_.members.at(node)); };
  if (std::ranges::any_of(missing, elsewhere)) std::erase_if(here, std::not_fn(elsewhere));
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

std::vector<Fencing> Watch::due(const Patience& patience, const CanLose& can_lose, Instant now) {
  std::vector<NodeId> late;
  std::vector<NodeId> dead;
  Instant first = now;
  count_silences(now);
  const auto next = next_wakeup();
  if (!next || *next > now) return {};
  ask_at_.reset();
  look_again(now);  // whether the run can lose members depends on who else is silent
  const Doubts::Fleet known = fleet(now);
  if (options_.guarded(Defect::kSilenceFences)) ask_about(known, now);
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    const NodeId node = wakes_.begin()->second;
    wakes_.erase(wakes_.begin());
    LedMember& member = run_.members.at(node);
    member.wake.reset();
    if (!is_overdue(member, now)) continue;
    if (const auto until = sooner(spares(member, known, patience, now), answers_until(node, known, now))) {
      wake(member, std::min(*until, now + kLookAgain));
    } else if (!member.detector) {
      late.push_back(node);
    } else {
      first = std::min(first, *member.died);
      dead.push_back(node);
    }
  }
  std::vector<Fencing> due = fencings(std::move(late), std::move(dead), first, now);
  keep_needed(due, patience, can_lose, now);
  return due;
}

void Watch::look_again(Instant now) {
  for (auto& [node, member] : run_.members) {
    if (member.spared == LedMember::Spared::kNeeded) wake(member, now);
  }
}

// Whether the member seems dead, or has not come in time. If not, it is looked at again later.
bool Watch::is_overdue(LedMember& member, Instant now) {
  if (member.died) return true;
  if (!member.detector) {
    const Instant until = here_until(member);
    if (until > now) wake(member, until);
    return until <= now;
  }
  FailureDetector judged = *member.detector;  // a copy: a verdict of death is final, and may prove wrong
  if (judged.verdict(now) == Verdict::kDead) {
    member.died = now;
    return true;
  }
  member.detector = judged;
  schedule(member);
  return false;
}

// While members of before come, the others have time: a large fleet does not come at once.
Instant Watch::here_until(const LedMember& member) const {
  if (member.record.state() == membership::JOINING) return member.deadline;
  return std::max(member.deadline, last_came_ + kHereTime);
}

std::vector<Fencing> Watch::fencings(std::vector<NodeId> late, std::vector<NodeId> dead, Instant first,
                                     Instant now) {
  std::vector<Fencing> all;
  if (!late.empty()) {
    reach(ControlProbe::kNotHereInTime);
    all.push_back({std::move(late), kNotInTime});
  }
  if (dead.empty()) return all;
  if (const Instant last = last_due(first, now); last > now) {
    reach(ControlProbe::kDeathsTogether);
    for (const NodeId node : dead) wake(run_.members.at(node), last);
    return all;
  }
  reach(ControlProbe::kSilent);
  all.push_back({std::move(dead), kSilent});
  return all;
}

std::optional<Instant> Watch::next_wakeup() const {
  const std::optional<Instant> looks = sooner(ask_at_, stall_clock_.next_look());
  return wakes_.empty() ? looks : sooner(looks, wakes_.begin()->first);
}

}  // namespace gossamer::cluster
