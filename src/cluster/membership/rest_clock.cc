// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/rest_clock.h"

#include <algorithm>

namespace gossamer::cluster {

void RestClock::begin() {
  end();
  for (auto& [node, member] : members_) member = {.since = {}, .limit_since = {}, .work_ms = member.work_ms};
}

void RestClock::left(Instant now) {
  asked_ = now;
  look_ = now + time_;
}

void RestClock::end() {
  asked_.reset();
  look_.reset();
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

// Requires that the request has left.
Instant RestClock::until(const Member& member, bool some_rest) const {
  const bool patient = member.worked || !some_rest;
  const Duration most = std::max(time_, patient ? patience_ : Duration{kMostTimes * time_.ns});
  const Instant limit = std::max(member.limit_since, *asked_) + most;
  return some_rest ? std::min(limit, std::max(member.since, *asked_) + time_) : limit;
}

std::set<NodeId> RestClock::late(const std::set<NodeId>& awaited, bool some_rest,
                                 const std::function<bool(NodeId)>& heard, Instant now) {
  std::set<NodeId> late;
  if (!asked_ || !look_ || *look_ > now) return late;
  look_.reset();
  for (const NodeId node : awaited) {
    Member& member = members_[node];
    if (!heard(node)) member.since = member.limit_since = now;
    const Instant spared = until(member, some_rest);
    if (spared <= now) {
      late.insert(node);
    } else {
      look_ = sooner(look_, std::min(spared, now + time_));  // the first one may come to rest meanwhile
    }
  }
  return late;
}

}  // namespace gossamer::cluster
