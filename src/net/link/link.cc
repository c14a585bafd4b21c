// SPDX-License-Identifier: Apache-2.0
#include "net/link/link.h"

#include <algorithm>
#include <utility>

#include "net/link/connections.h"

namespace gossamer::net {
namespace {

// The wait after the first, second, third ... failure: 0.1, 0.2, 0.4 ... 5 s; none before the first.
Duration backoff(int failures) {
  if (failures == 0) return {};
  return from_milliseconds(std::min(5000.0, 100.0 * static_cast<double>(1U << std::min(failures - 1, 10))));
}

}  // namespace

void LaneState::plan_next(Instant now, Rng& rng) {
  const auto wait = static_cast<double>(backoff(failures++).ns);
  // Without a random wait all nodes that lost the same peer would come back at the same moment.
  retry = now + Duration{static_cast<std::int64_t>(wait * (0.5 + 0.5 * static_cast<double>(rng.uniform())))};
}

Instant Link::blocked_since(host::Lane which, const Connections& connections, Instant now) const {
  const LaneState& one = lane(which);
  if (!one.up) return one.since;
  if (which == host::Lane::kBulk) return now;
  const Connection& connection = connections.at(*one.connection);
  return connection.ping == 0 ? connection.heard : std::min(connection.heard, connection.ping_sent);
}

const host::Endpoint* Link::claimed(host::Lane which, NodeId coordinator) const {
  if (lane(which).via.value != 0 || address.node == coordinator) return nullptr;
  return which == host::Lane::kControl ? &address.control : &address.bulk;
}

void Link::hurry(Instant now) {
  for (LaneState& one : lanes) {
    if (one.retry.has_value()) one.retry = std::min(*one.retry, now);
  }
}

bool Link::forsaken(Instant now) const {
  const LaneState& control = lane(host::Lane::kControl);
  return unproven && !control.up && now - control.since >= Connection::kAbandonedByLower;
}

void Link::came_up(const Connection& connection, Instant now) {
  // The other lane of a link that this side did not open may never come.
  if (!std::exchange(was_up, true) && !opener) {
    for (LaneState& one : lanes) one.since = now;
  }
  LaneState& state = lane(connection.lane);
  state.connection = connection.id;
  state.retry.reset();
  state.up = true;
  state.said_blocked = false;
  state.since = now;
  last_heard = state.heard = now;
  if (connection.lane == host::Lane::kControl) abandoned.reset();
}

void Link::went_down(host::Lane which, Error reason, Instant heard, LinkEvents& out) {
  LaneState& state = lane(which);
  state.trouble = std::move(reason);
  state.connection.reset();
  if (!std::exchange(state.up, false)) return;
  state.since = heard;
  out.push_back(broken_event(which));
}

void Link::tell_blocked(host::Lane which, Instant now, LinkEvents& out) {
  LaneState& state = lane(which);
  if (state.up || state.said_blocked || now < state.since + LaneState::kBlockedAfter) return;
  state.said_blocked = true;
  out.emplace_back(LaneBlocked{peer, which, state.trouble});
}

LinkEvent Link::up_event(host::Lane which, NodeId via) const {
  if (which == host::Lane::kControl) return LinkUp{peer, via};
  return BulkUp{peer, via};
}

LinkEvent Link::broken_event(host::Lane which) const {
  if (which == host::Lane::kControl) return LinkBroken{peer, lane(which).trouble};
  return BulkBroken{peer, lane(which).trouble};
}

LinkEvent Link::failed_event(host::Lane which) const {
  if (which == host::Lane::kControl) return OpenFailed{peer.node, lane(which).trouble};
  return BulkFailed{peer.node, lane(which).trouble};
}

std::optional<Instant> Link::next_wakeup(const Connections& connections, Instant now) const {
  std::optional<Instant> next;
  const auto at = [&](Instant when) { next = next.has_value() ? std::min(*next, when) : when; };
  if (abandoned.has_value()) at(*abandoned);
  for (const LaneState& one : lanes) {
    if (one.retry.has_value()) at(*one.retry);
    if (!one.up && !one.said_blocked) at(one.since + LaneState::kBlockedAfter);
    if (!one.connection.has_value()) continue;
    const Connection& connection = connections.at(*one.connection);
    at(connection.heard + connection.patience());
    if (!one.up) continue;
    at(connection.next_ping);
    // A full connection is served again when something was written.
    const auto due = one.stream.ack_due();
    if (due.has_value() && connection.unwritten < Connection::kUnwritten) at(std::max(*due, now));
  }
  return next;
}

LinkStatistics Link::statistics(const Connections& connections) const {
  LinkStatistics statistics{.round_trip = round_trip, .last_heard = last_heard};
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const LaneState& one = lanes[i];
    LaneStatistics& told = statistics.lanes[i];
    told = {.up = one.up,
            .since = one.since,
            .last_heard = one.heard,
            .queued_bytes = one.stream.queued_bytes(),
            .acknowledged_bytes = one.stream.acknowledged_bytes(),
            .received_bytes = one.stream.received_bytes()};
    const NodeId via = one.up ? connections.at(*one.connection).via : NodeId();
    if (via.value > 0) told.relayed_by = via;
    statistics.queued_bytes += one.stream.queued_bytes();
    statistics.acknowledged_bytes += one.stream.acknowledged_bytes();
    statistics.received_bytes += one.stream.received_bytes();
    statistics.held_bytes += one.stream.held_bytes();
  }
  statistics.up = statistics.lane(host::Lane::kControl).up;
  statistics.relayed_by = statistics.lane(host::Lane::kControl).relayed_by;
  statistics.link = serial;
  return statistics;
}

}  // namespace gossamer::net
