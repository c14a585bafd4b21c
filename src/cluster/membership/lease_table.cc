// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/lease_table.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace gossamer::cluster {
namespace {

// The granter's count of a duration: 5 % more, rounded up.
Duration with_margin(Duration duration) { return duration + Duration{(duration.ns + 19) / 20}; }

}  // namespace

LeaseTable::LeaseTable(std::span<const Lease> leases, FencedIncarnations fenced, Instant now)
    : fenced_(std::move(fenced)) {
  for (const Lease& lease : leases) {
    if (fenced_.contains(lease.holder)) continue;
    CHECK(!holder_of_any(lease.keys), lease.keys.space.value, lease.keys.begin, lease.keys.end);
    insert(lease, std::nullopt, now);
  }
}

LeaseAnswer LeaseTable::grant(const LeaseRequest& request, Instant now) {
  const Lease& lease = request.lease;
  if (fenced_.contains(lease.holder)) return {.outcome = LeaseOutcome::kFenced};
  if (const Place place = find(lease); place != held_.end()) return prolong(place, request.sent, now);
  if (const auto holder = holder_of_any(lease.keys)) {
    return {.outcome = LeaseOutcome::kHeld, .holder = *holder};
  }
  insert(lease, request.sent, now);
  return {.outcome = LeaseOutcome::kGranted, .duration = lease.duration};
}

LeaseAnswer LeaseTable::renew(const LeaseRequest& request, Instant now) {
  if (fenced_.contains(request.lease.holder)) return {.outcome = LeaseOutcome::kFenced};
  const Place place = find(request.lease);
  if (place == held_.end()) return {.outcome = LeaseOutcome::kNotHeld};
  return prolong(place, request.sent, now);
}

bool LeaseTable::release(const LeaseRequest& request) {
  const Place place = find(request.lease);
  if (place == held_.end() || !place->second.asked || request.sent < *place->second.asked) return false;
  erase(place);
  return true;
}

std::vector<Lease> LeaseTable::expire(Instant now) {
  std::vector<Lease> lapsed;
  while (!by_end_.empty() && by_end_.begin()->first <= now) {
    const Place place = held_.find(by_end_.begin()->second);
    const auto& [key, held] = *place;
    lapsed.push_back({{key.first, key.second, held.end}, held.holder, held.duration});
    erase(place);
  }
  return lapsed;
}

std::vector<Lease> LeaseTable::fence(Incarnation incarnation) {
  std::vector<Lease> freed;
  fenced_.fence(incarnation);
  for (Place place = held_.begin(); place != held_.end();) {
    const auto& [key, held] = *place;
    if (held.holder != incarnation) {
      ++place;
      continue;
    }
    freed.push_back({{key.first, key.second, held.end}, held.holder, held.duration});
    place = erase(place);
  }
  return freed;
}

std::optional<Incarnation> LeaseTable::holder(LeaseSpace space, std::uint64_t key) const {
  return holder_of_any({space, key, key + 1});
}

std::vector<Lease> LeaseTable::entries() const {
  std::vector<Lease> entries;
  entries.reserve(held_.size());
  for (const auto& [key, held] : held_) {
    entries.push_back({{key.first, key.second, held.end}, held.holder, held.duration});
  }
  return entries;
}

std::optional<Instant> LeaseTable::next_wakeup() const {
  return by_end_.empty() ? std::nullopt : std::optional(by_end_.begin()->first);
}

std::optional<Incarnation> LeaseTable::holder_of_any(const LeaseKeys& keys) const {
  CHECK(keys.begin < keys.end, keys.begin, keys.end);
  // Ranges do not overlap, so only the last one that begins before keys.end can share a key.
  const auto behind = held_.lower_bound({keys.space, keys.end});
  if (behind == held_.begin()) return std::nullopt;
  const auto& [key, held] = *std::prev(behind);
  if (key.first != keys.space || held.end <= keys.begin) return std::nullopt;
  return held.holder;
}

LeaseTable::Place LeaseTable::find(const Lease& lease) {
  const Place place = held_.find({lease.keys.space, lease.keys.begin});
  if (place == held_.end()) return place;
  const Held& held = place->second;
  return held.end == lease.keys.end && held.holder == lease.holder ? place : held_.end();
}

LeaseAnswer LeaseTable::prolong(Place place, Instant sent, Instant now) {
  auto& [key, held] = *place;
  by_end_.erase({held.until, key});
  held.until = now + with_margin(held.duration);
  held.asked = std::max(held.asked, std::optional(sent));
  by_end_.insert({held.until, key});
  return {.outcome = LeaseOutcome::kRenewed, .duration = held.duration};
}

void LeaseTable::insert(const Lease& lease, std::optional<Instant> asked, Instant now) {
  CHECK(lease.duration.ns > 0, lease.duration.ns);
  const Key key = {lease.keys.space, lease.keys.begin};
  const Instant until = now + with_margin(lease.duration);
  held_.emplace(key, Held{.end = lease.keys.end,
                          .holder = lease.holder,
                          .duration = lease.duration,
                          .until = until,
                          .asked = asked});
  by_end_.insert({until, key});
  ++count_[lease.holder];
}

LeaseTable::Place LeaseTable::erase(Place place) {
  const auto count = count_.find(place->second.holder);
  if (--count->second == 0) count_.erase(count);
  by_end_.erase({place->second.until, place->first});
  return held_.erase(place);
}

void HeldLease::granted(Instant sent, Duration duration) {
  if (dropped_ && sent <= *dropped_) return;
  until_ = std::max(until_, std::optional(sent + duration));
}

void HeldLease::dropped(Instant now) {
  until_.reset();
  dropped_ = now;
}

}  // namespace gossamer::cluster
