// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/rest_clock.h"

#include <algorithm>
#include <utility>

namespace gossamer::cluster {

void RestClock::begin(const std::set<NodeId>& owing, Instant now) {
  if (!open_ || asked_) begun_ = now;
  for (auto& [node, member] : members_) {
    if (open_ && owing.contains(node)) {
      if (!member.limits) member.limits = asked_;
      member.knows = false;
    } else {
      member = {.since = {}, .work_ms = member.work_ms};
    }
  }
  end();
  open_ = true;
}

void RestClock::left(Instant now) {
  for (auto& [node, member] : members_) {
    if (member.limits) member.limits = *member.limits + (now - begun_);
  }
  asked_ = now;
  look_ = now + kLookAgain;
}

void RestClock::end() {
  open_ = false;
  asked_.reset();
  look_.reset();
  for (auto& [node, member] : members_) member.late = false;
}

void RestClock::came(NodeId node, Instant now) { members_[node].since = now; }

void RestClock::beat(NodeId node, bool knows, std::uint64_t work_ms, Instant now) {
  Member& member = members_[node];
  const bool works = work_ms > member.work_ms;
  member.work_ms = work_ms;
  if (!asked_ || !knows) return;
  member.worked = member.worked || works;
  if (works || !member.knows) member.since = now;
  member.knows = true;
}

void RestClock::gone(NodeId node) {
  const auto found = members_.find(node);
  if (found == members_.end()) return;
  if (found->second.late) ++late_lives_[node];
  members_.erase(found);
}

Duration RestClock::left_of(Duration most, NodeId node) const {
  const auto found = late_lives_.find(node);
  const unsigned halves = found == late_lives_.end() ? 0 : std::min(found->second, 62U);
  return std::max(Duration{most.ns >> halves}, time_);
}

void RestClock::steps_take(double seconds) {
  steps_ = from_seconds(std::min(kMostSteps * seconds, kLongest.seconds()));
}

Duration RestClock::most_of(const Member& member) const {
  return member.worked ? std::max(patience_, steps_) : patience_;
}

// Requires that the request has left.
Instant RestClock::late_from(NodeId node, const Member& member) const {
  const Duration most = member.worked ? most_of(member) : Duration{kMostTimes * time_.ns};
  const Instant limit = member.limits.value_or(*asked_) + left_of(most, node);
  return std::min(limit, std::max(member.since, *asked_) + time_);
}

// Whether the member is silent may have changed. A short silence says nothing: a line of this process may
// stutter.
void RestClock::turn(Member& member, bool silent, Instant now) const {
  if (silent == member.silent_since.has_value()) return;
  member.since = now;
  if (silent) {
    member.silent_since = now;
    return;
  }
  const Duration lasted = now - *std::exchange(member.silent_since, std::nullopt);
  if (lasted >= time_ && ++member.turns <= kMostTurns) member.limits = now;
}

RestClock::Late RestClock::late(const std::set<NodeId>& awaited, const Hearing& hearing, Instant now) {
  Late late;
  if (!look_ || *look_ > now) return late;
  look_ = now + kLookAgain;
  for (const NodeId node : awaited) {
    Member& member = members_[node];
    const bool silent = !hearing.hears(node);
    turn(member, silent, now);
    if (late_from(node, member) > now) continue;
    if (silent && hearing.missed_alone && !hearing.missed_alone(node)) continue;
    late.nodes.insert(node);
    member.late = true;
    if (!silent && member.limits.value_or(*asked_) + left_of(most_of(member), node) <= now)
      late.given_up.insert(node);
  }
  return late;
}

}  // namespace gossamer::cluster
