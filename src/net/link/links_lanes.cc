// SPDX-License-Identifier: Apache-2.0
//
// The lanes of links: how they come up, go down, are dialed again, and take another way.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/node_name.h"
#include "net/link/links.h"

namespace gossamer::net {
namespace {

constexpr std::array<host::Lane, host::kLanes> kBothLanes{host::Lane::kControl, host::Lane::kBulk};

Error other_way(const PeerAddress& to, host::Lane lane) {
  const std::string way = to.via.value > 0 ? "through " + certificate_name(to.via) : std::string("directly");
  return {.where = certificate_name(to.node),
          .what = fmt::format("the {} lane is opened {}", name(lane), way)};
}

Error reads_nothing(std::uint64_t bytes) {
  return {.kind = ErrorKind::kBadData,
          .what = "the peer does not read what it is sent",
          .got = fmt::format("{} bytes that wait for it", bytes),
          .expected = "a peer that reads",
          .fix = "look whether its machine is overloaded"};
}

}  // namespace

bool Links::reroute(const PeerAddress& to, host::Lane lane, Instant now) {
  Link* const link = find(to.node);
  if (link == nullptr || !link->opener) return false;
  LaneState& state = link->lane(lane);
  drop_connection(state);
  if (state.up) link->went_down(lane, other_way(to, lane), now, untold_);
  if (to.via.value == 0) link->address = to;
  state.via = to.via;
  state.failures = 0;
  dial(*link, lane, now);
  schedule(*link, now);
  return true;
}

void Links::dial_all(Link& link, Instant now) {
  for (const host::Lane lane : kBothLanes) {
    link.lane(lane).since = now;
    dial(link, lane, now);
  }
  schedule(link, now);
}

void Links::dial(Link& link, host::Lane lane, Instant now) {
  LaneState& state = link.lane(lane);
  if (const host::Endpoint* const at = link.claimed(lane, options_.coordinator)) {
    state.retry = dials_.take(*at, now);
    if (state.retry.has_value()) return reached(options_.probes, LinkProbe::kDialedOften);
  }
  state.connection = connections_.dial(link, lane, now).id;
  state.retry.reset();
}

void Links::hurry(NodeId node, Instant now) {
  Link* const link = find(node);
  if (link == nullptr) return;
  link->hurry(now);
  schedule(*link, now);
}

// Requires that the lane's connection is dropped already.
void Links::lost(Link& link, host::Lane lane, Lost how, Instant now, LinkEvents& out) {
  LaneState& state = link.lane(lane);
  const bool was_up = state.up;
  link.went_down(lane, std::move(how.reason), how.heard, out);
  if (link.opener) state.plan_next(now, rng_);
  // Both may take the other for the opener, where two openings and a lost connection crossed.
  if (lane == host::Lane::kControl && link.taken_over)
    link.abandoned =
        now + (options_.self.node < link.peer.node ? Connection::kAbandonedByLower : Connection::kAbandoned);
  if (!was_up && link.opener) out.emplace_back(link.failed_event(lane));
  schedule(link, now);
}

void Links::tell_untold(LinkEvents& out) {
  for (LinkEvent& event : std::exchange(untold_, {})) out.push_back(std::move(event));
}

// A silent lane stands still however much the other one carries.
void Links::heard(Connection& connection, Instant now) {
  connection.heard = now;
  Link* const link = find(connection.node);
  if (link == nullptr) return;
  link->last_heard = link->lane(connection.lane).heard = now;
  if (options_.silence == Options::Silence::kOfLane) return;
  for (const LaneState& lane : link->lanes) {
    if (lane.up) connections_.at(*lane.connection).heard = now;
  }
}

void Links::tick_link(Link& link, Instant now, LinkEvents& out) {
  if (link.abandoned.has_value() && *link.abandoned <= now) {
    return end(link.peer.node,
               Error{.where = certificate_name(link.peer.node),
                     .what = "the peer has not opened the link again, and has never sent anything on it"},
               out);
  }
  for (const host::Lane lane : kBothLanes) {
    LaneState& state = link.lane(lane);
    link.tell_blocked(lane, now, out);
    if (state.retry.has_value() && *state.retry <= now) dial(link, lane, now);
    if (!state.connection.has_value()) continue;
    Connection& connection = connections_.at(*state.connection);
    if (connection.heard + connection.patience() <= now) {
      reached(options_.probes, LinkProbe::kSilentConnection);
      if (link.last_heard > connection.heard + Connection::kPingEvery)
        reached(options_.probes, LinkProbe::kSilentLane);
      Error reason{.where = connection.where,
                   .what = fmt::format("no sign of life on the {} lane for {} s", name(lane),
                                       connection.patience().seconds())};
      leave(connection, {.event = ConnectionEvent::kSilence, .reason = std::move(reason)}, now, out);
      continue;
    }
    if (!state.up) continue;
    if (state.stream.queued_bytes() > traffic_.rules().most_queued(link.peer, lane))
      return fault(connection, reads_nothing(state.stream.queued_bytes()), now, out);
    traffic_.ping(connection, now);
  }
  for (const host::Lane lane : kBothLanes) serve(link, lane, now);
}

}  // namespace gossamer::net
