// SPDX-License-Identifier: Apache-2.0
#include "net/link/connections.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/node_name.h"

namespace gossamer::net {

Connections::Connections(host::Network& network, const Relay::Options& relay,
                         const Strangers::Limits& strangers)
    : network_(network), strangers_(strangers), relay_(relay) {}

void Connections::abandon() {
  for (const auto& [id, connection] : connections_) {
    if (!Relay::is_inner(id)) network_.close(id);
  }
}

Connection* Connections::find(host::ConnectionId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : &found->second;
}

Connection& Connections::add(host::ConnectionId id, host::Lane lane, Instant now) {
  Connection& connection = connections_[id];
  connection.id = id;
  connection.lane = lane;
  connection.heard = now;
  connection.via = relay_.via(id);
  return connection;
}

Connection& Connections::dial(const Link& link, host::Lane lane, Instant now) {
  const host::Endpoint& to = lane == host::Lane::kControl ? link.address.control : link.address.bulk;
  const NodeId via = link.lane(lane).via;
  const host::ConnectionId id =
      via.value > 0 ? relay_.connect(via, link.peer.node, lane) : network_.connect(to, lane);
  Connection& connection = add(id, lane, now);
  connection.ours = true;
  connection.advance(ConnectionEvent::kWeDial);
  connection.node = link.peer.node;
  connection.where = fmt::format("{} at {}", certificate_name(link.peer.node),
                                 via.value > 0 ? "relay " + certificate_name(via) : host::to_string(to));
  return connection;
}

void Connections::accept(const host::Accepted& event, Instant now) {
  if (!strangers_.has_room({event.host, event.peer.certificate})) return hang_up(event.connection);
  Connection& connection = add(event.connection, event.lane, now);
  connection.advance(ConnectionEvent::kPeerDials);
  connection.where = event.from;
  connection.host = event.host;
  connection.name = event.peer;
  add_stranger(connection, now);
}

void Connections::raise(const Connection& connection) {
  strangers_.remove(connection.id);
  if (!Relay::is_inner(connection.id))
    relay_.up(connection.id, {.peer = connection.node, .lane = connection.lane, .ours = connection.ours});
}

void Connections::add_stranger(const Connection& connection, Instant now) {
  relay_.down(connection.id);
  strangers_.add(connection.id, {connection.host, connection.name.certificate},
                 now + Connection::kGreetingTime);
}

void Connections::dismiss(Connection& connection, Instant now) {
  connection.node = {};
  if (!strangers_.contains(connection.id)) add_stranger(connection, now);
}

void Connections::drop(const Connection& connection) {
  CHECK(connection.state == ConnectionState::kGone, name(connection.state));
  const host::ConnectionId id = connection.id;
  strangers_.remove(id);
  connections_.erase(id);
  hang_up(id);
}

void Connections::hang_up(host::ConnectionId id) {
  if (Relay::is_inner(id)) return relay_.close(id);
  relay_.down(id);
  network_.close(id);
}

void Connections::send(Connection& connection, Slices frame) {
  connection.unwritten += total_bytes(frame);
  sent_bytes_ += total_bytes(frame);
  if (Relay::is_inner(connection.id)) return relay_.send(connection.id, std::move(frame));
  network_.send(connection.id, std::move(frame));
}

void Connections::consumed(const host::Received& event) {
  if (!Relay::is_inner(event.connection))
    network_.consumed(event.connection, host::Network::cost(event.frame));
}

bool Connections::speaks(const Link& link) const {
  return std::ranges::any_of(link.lanes, [this](const LaneState& lane) {
    return lane.connection.has_value() && at(*lane.connection).state != ConnectionState::kDialing;
  });
}

}  // namespace gossamer::net
