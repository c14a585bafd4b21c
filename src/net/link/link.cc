// SPDX-License-Identifier: Apache-2.0
#include "net/link/link.h"

#include <algorithm>

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

Instant Link::blocked_since(const Connections& connections, Instant now) const {
  Instant since = now;
  for (const LaneState& one : lanes) {
    if (!one.up) since = std::min(since, one.down_since);
  }
  const LaneState& control = lane(host::Lane::kControl);
  if (!control.up) return since;
  const Connection& connection = connections.at(*control.connection);
  since = std::min(since, connection.heard);
  return connection.ping == 0 ? since : std::min(since, connection.ping_sent);
}

std::optional<Instant> Link::next_wakeup(const Connections& connections, Instant now) const {
  std::optional<Instant> next;
  const auto at = [&](Instant when) { next = next.has_value() ? std::min(*next, when) : when; };
  if (abandoned.has_value()) at(*abandoned);
  for (const LaneState& one : lanes) {
    if (one.retry.has_value()) at(*one.retry);
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
  const LaneState& control = lane(host::Lane::kControl);
  LinkStatistics statistics{.up = control.up, .round_trip = round_trip, .last_heard = last_heard};
  if (statistics.up) {
    const NodeId via = connections.at(*control.connection).via;
    if (via.value > 0) statistics.relayed_by = via;
  }
  for (const LaneState& one : lanes) {
    statistics.queued_bytes += one.stream.queued_bytes();
    statistics.acknowledged_bytes += one.stream.acknowledged_bytes();
    statistics.received_bytes += one.stream.received_bytes();
  }
  statistics.link = serial;
  return statistics;
}

}  // namespace gossamer::net
