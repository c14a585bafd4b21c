// SPDX-License-Identifier: Apache-2.0
#include "net/link/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/node_name.h"

namespace gossamer::net {
namespace {

constexpr std::array<host::Lane, host::kLanes> kBothLanes{host::Lane::kControl, host::Lane::kBulk};

// The wait after the first, second, third ... failure: 0.1, 0.2, 0.4 ... 5 s; none before the first.
Duration backoff(int failures) {
  if (failures == 0) return {};
  return from_milliseconds(std::min(5000.0, 100.0 * static_cast<double>(1U << std::min(failures - 1, 10))));
}

// The bytes that may wait at a relay for one connection. Its window lets so much through; a quarter is for
// the frames' own bytes where messages are small; the rest is for Acks and Pings.
std::uint64_t most_held(std::uint64_t window) { return window + window / 4 + (1ULL << 20); }

// How long a connection may be without a frame, or not be open yet.
Duration patience(const Connection& connection) {
  return connection.stage == Connection::Stage::kGreeting ? Links::kGreetingTime : Links::kSilence;
}

}  // namespace

Links::Links(host::Network& network, Options options)
    : network_(network),
      options_(std::move(options)),
      rng_(options_.seed, Purpose::kBackoff, options_.self.node.value),
      strangers_(options_.strangers),
      relay_({.self = options_.self.node,
              .relays = options_.relays,
              .most_held = {most_held(options_.control_window), most_held(options_.bulk_window)},
              .most_held_in_all = options_.relay_bytes}) {
  CHECK(options_.self.node.value > 0 && options_.self.incarnation.value > 0);
}

void Links::abandon() {
  for (const auto& [id, connection] : connections_) {
    if (!Relay::is_inner(id)) network_.close(id);
  }
}

Links::Link& Links::make_link(NodeId node) {
  const auto [place, made] = links_.try_emplace(node, options_.control_window, options_.bulk_window);
  CHECK(made, node.value);
  place->second.peer.node = node;
  place->second.serial = ++last_serial_;
  return place->second;
}

Connection& Links::add_connection(host::ConnectionId id, host::Lane lane, Instant now) {
  Connection& connection = connections_[id];
  connection.id = id;
  connection.lane = lane;
  connection.heard = now;
  connection.via = relay_.via(id);
  return connection;
}

void Links::open(const PeerAddress& to, Instant now) {
  CHECK(to.node.value > 0 && to.node != options_.self.node, to.node.value);
  if (linked(to.node)) return;
  Link& link = make_link(to.node);
  link.address = to;
  link.opener = true;
  link.session = ++last_session_;
  for (const host::Lane lane : kBothLanes) dial(link, lane, now);
  schedule(link, now);
}

void Links::dial(Link& link, host::Lane lane, Instant now) {
  const host::Endpoint& to = lane == host::Lane::kControl ? link.address.control : link.address.bulk;
  const NodeId via = link.address.via;
  const host::ConnectionId id =
      via.value > 0 ? relay_.connect(via, link.peer.node, lane) : network_.connect(to, lane);
  Connection& connection = add_connection(id, lane, now);
  connection.ours = true;
  connection.node = link.peer.node;
  connection.where = fmt::format("{} at {}", certificate_name(link.peer.node),
                                 via.value > 0 ? "relay " + certificate_name(via) : host::to_string(to));
  LaneState& state = link.lanes[lane_index(lane)];
  state.connection = id;
  state.retry.reset();
}

void Links::close(NodeId node, const std::string& reason, Instant now) {
  const auto found = links_.find(node);
  if (found == links_.end()) return;
  Link& link = found->second;
  for (LaneState& lane : link.lanes) {
    if (!lane.connection.has_value()) continue;
    Connection& connection = connections_.at(*lane.connection);
    if (!lane.up || connection.lane != host::Lane::kControl) {
      drop(connection.id);
      continue;
    }
    // close() would throw the Goodbye away. So the other side closes the connection, or its deadline does.
    wire::FrameHeader goodbye;
    goodbye.mutable_goodbye()->set_reason(reason);
    send_frame(connection, encode_frame(goodbye));
    connection.stage = Connection::Stage::kLeaving;
    connection.node = {};
    make_stranger(connection, now);
  }
  if (link.wake.has_value()) wakes_.erase({*link.wake, node});
  links_.erase(found);
}

void Links::fence(PeerId peer, Instant now, LinkEvents& out) {
  Incarnation& highest = fenced_[peer.node];
  highest = std::max(highest, peer.incarnation);
  const auto found = links_.find(peer.node);
  if (found == links_.end() || found->second.peer.incarnation > peer.incarnation) return;
  if (found->second.peer.incarnation.value == 0) {  // the incarnation that will answer is not known yet
    reached(options_.probes, LinkProbe::kFencedBeforeKnown);
    return;
  }
  LaneState& control = found->second.lanes[lane_index(host::Lane::kControl)];
  if (control.up) {
    refuse(connections_.at(*control.connection), fenced_refusal(peer), now);
    control.connection.reset();
    control.up = false;
  }
  end(peer.node, Error{.where = certificate_name(peer.node), .what = "declared dead"}, out);
}

std::optional<Ticket> Links::send(PeerId to, host::Lane lane, Message message, Instant now) {
  const auto found = links_.find(to.node);
  if (found == links_.end()) return std::nullopt;
  Link& link = found->second;
  if (to.incarnation.value != 0 && to.incarnation != link.peer.incarnation) return std::nullopt;
  const MessageNumber number = link.lanes[lane_index(lane)].stream.send(std::move(message));
  serve_lane(link, lane, now);
  return Ticket{.node = to.node, .link = link.serial, .lane = lane, .number = number};
}

bool Links::cancel(const Ticket& ticket) {
  const auto found = links_.find(ticket.node);
  return found != links_.end() && found->second.serial == ticket.link &&
         found->second.lanes[lane_index(ticket.lane)].stream.cancel(ticket.number);
}

bool Links::settled(const Ticket& ticket) const {
  const auto found = links_.find(ticket.node);
  return found == links_.end() || found->second.serial != ticket.link ||
         found->second.lanes[lane_index(ticket.lane)].stream.acknowledged() >= ticket.number;
}

void Links::consumed(const Receipt& receipt, Instant now) {
  const auto found = links_.find(receipt.node);
  if (found == links_.end() || found->second.serial != receipt.link) return;
  found->second.lanes[lane_index(receipt.lane)].stream.consumed(receipt.bytes);
  serve_lane(found->second, receipt.lane, now);
}

void Links::on(host::NetworkEvent event, Instant now, LinkEvents& out) {
  hand_on(event, now, out);
  settle(now, out);
}

void Links::hand_on(host::NetworkEvent& event, Instant now, LinkEvents& out) {
  std::visit(
      [&](auto& one) {
        if constexpr (requires { one.connection; }) on_event(one, now, out);  // the others are questions
      },
      event);
}

void Links::settle(Instant now, LinkEvents& out) {
  while (relay_.has_news()) {
    for (const host::ConnectionId id : relay_.take_ready()) {
      const auto found = connections_.find(id);
      const auto link = found == connections_.end() ? links_.end() : links_.find(found->second.node);
      if (link != links_.end()) serve_lane(link->second, found->second.lane, now);
    }
    for (host::NetworkEvent& event : relay_.take_events()) hand_on(event, now, out);
  }
}

void Links::hang_up(host::ConnectionId id) {
  if (Relay::is_inner(id)) return relay_.close(id);
  relay_.down(id);
  network_.close(id);
}

void Links::on_event(const host::Opened& event, Instant now, LinkEvents&) {
  const auto found = connections_.find(event.connection);
  if (found == connections_.end()) return hang_up(event.connection);
  Connection& connection = found->second;
  connection.name = event.peer;
  connection.stage = Connection::Stage::kGreeting;
  connection.heard = now;
  Link& link = links_.at(connection.node);
  say_hello(connection, link);
  schedule(link, now);
}

void Links::on_event(const host::Accepted& event, Instant now, LinkEvents&) {
  if (!strangers_.has_room({event.host, event.peer.certificate})) return hang_up(event.connection);
  Connection& connection = add_connection(event.connection, event.lane, now);
  connection.stage = Connection::Stage::kGreeting;
  connection.where = event.from;
  connection.host = event.host;
  connection.name = event.peer;
  make_stranger(connection, now);
}

void Links::on_event(host::Received& event, Instant now, LinkEvents& out) {
  const auto found = connections_.find(event.connection);
  if (found == connections_.end()) return;
  // Windows bound what a link holds; the network need not hold anything back.
  if (!Relay::is_inner(event.connection))
    network_.consumed(event.connection, host::Network::cost(event.frame));
  Connection& connection = found->second;
  if (connection.stage == Connection::Stage::kLeaving) return;  // what it says does not matter any more
  connection.heard = now;
  if (const auto link = links_.find(connection.node); link != links_.end()) link->second.last_heard = now;
  auto frame = decode_frame(std::move(event.frame));
  if (!frame.ok()) return fault(connection, frame.error(), now, out);
  on_frame(connection, std::move(*frame), now, out);
}

void Links::on_event(const host::Written& event, Instant now, LinkEvents&) {
  const auto found = connections_.find(event.connection);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  CHECK(event.bytes <= connection.unwritten, event.bytes, connection.unwritten);
  connection.unwritten -= event.bytes;
  const auto link = links_.find(connection.node);
  if (link != links_.end()) serve_lane(link->second, connection.lane, now);
}

void Links::on_event(const host::Closed& event, Instant now, LinkEvents& out) {
  const auto found = connections_.find(event.connection);
  if (found == connections_.end()) return;
  const Connection connection = found->second;
  drop(event.connection);
  const auto link = links_.find(connection.node);
  if (link == links_.end()) return;
  Error reason = event.reason;
  reason.where = connection.where;
  lost(link->second, connection.lane, reason, now, out);
}

// Requires that the lane's connection is gone from connections_ already.
void Links::lost(Link& link, host::Lane lane, const Error& reason, Instant now, LinkEvents& out) {
  LaneState& state = link.lanes[lane_index(lane)];
  const bool was_up = std::exchange(state.up, false);
  state.connection.reset();
  if (link.opener) {
    const Duration wait = backoff(state.failures++);
    // Without a random wait all nodes that lost the same peer would come back at the same moment.
    state.retry =
        now +
        Duration{static_cast<std::int64_t>(static_cast<double>(wait.ns) * (0.5 + 0.5 * rng_.uniform()))};
  }
  if (lane == host::Lane::kControl) {
    if (was_up) {
      out.emplace_back(LinkBroken{link.peer, reason});
    } else if (link.opener) {
      out.emplace_back(OpenFailed{link.peer.node, reason});
    }
  }
  schedule(link, now);
}

void Links::drop(host::ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  strangers_.remove(id);
  connections_.erase(found);
  hang_up(id);
}

void Links::make_stranger(const Connection& connection, Instant now) {
  relay_.down(connection.id);
  strangers_.add(connection.id, {connection.host, connection.name.certificate}, now + kGreetingTime);
}

void Links::drop_connections(Link& link) {
  for (LaneState& lane : link.lanes) {
    if (lane.connection.has_value()) drop(*std::exchange(lane.connection, std::nullopt));
    lane.up = false;
  }
}

void Links::end(NodeId node, Error reason, LinkEvents& out, Refused refused) {
  const auto found = links_.find(node);
  CHECK(found != links_.end(), node.value);
  Link& link = found->second;
  drop_connections(link);
  if (link.wake.has_value()) wakes_.erase({*link.wake, node});
  out.emplace_back(LinkEnded{link.peer, std::move(reason), refused});
  links_.erase(found);
}

void Links::serve(Link& link, Instant now) {
  for (const host::Lane lane : kBothLanes) serve_lane(link, lane, now);
}

void Links::serve_lane(Link& link, host::Lane lane, Instant now) {
  LaneState& state = link.lanes[lane_index(lane)];
  if (state.up) {
    Connection& connection = connections_.at(*state.connection);
    const auto due = state.stream.ack_due();
    if (due.has_value() && *due <= now && connection.unwritten < kUnwritten) {
      wire::FrameHeader ack;
      *ack.mutable_ack() = state.stream.tell();
      send_frame(connection, encode_frame(ack));
    }
    while (connection.unwritten < kUnwritten) {
      auto frame = state.stream.next_frame();
      if (!frame.has_value()) break;
      sent_on_channel_[frame->channel] += total_bytes(frame->bytes);
      send_frame(connection, std::move(frame->bytes));
    }
    while (connection.unwritten < kUnwritten) {
      auto frame = relay_.next_frame(connection.id);
      if (!frame.has_value()) break;
      send_frame(connection, std::move(*frame));
    }
  }
  schedule(link, now);
}

std::uint64_t Links::sent_bytes(std::uint32_t channel) const {
  const auto found = sent_on_channel_.find(channel);
  return found == sent_on_channel_.end() ? 0 : found->second;
}

void Links::schedule(Link& link, Instant now) {
  std::optional<Instant> wake;
  const auto at = [&](Instant when) { wake = wake.has_value() ? std::min(*wake, when) : when; };
  for (const LaneState& lane : link.lanes) {
    if (lane.retry.has_value()) at(*lane.retry);
    if (!lane.connection.has_value()) continue;
    const Connection& connection = connections_.at(*lane.connection);
    at(connection.heard + patience(connection));
    if (!lane.up) continue;
    at(connection.next_ping);
    // A full connection is served again when something was written.
    const auto due = lane.stream.ack_due();
    if (due.has_value() && connection.unwritten < kUnwritten) at(std::max(*due, now));
  }
  if (wake == link.wake) return;
  if (link.wake.has_value()) wakes_.erase({*link.wake, link.peer.node});
  if (wake.has_value()) wakes_.insert({*wake, link.peer.node});
  link.wake = wake;
}

std::optional<Instant> Links::next_wakeup() const {
  std::optional<Instant> wake;
  if (relay_.has_news()) return Instant{};
  if (!wakes_.empty()) wake = wakes_.begin()->first;
  if (const auto next = strangers_.next()) wake = std::min(wake.value_or(next->first), next->first);
  return wake;
}

void Links::tick(Instant now, LinkEvents& out) {
  for (auto next = strangers_.next(); next.has_value() && next->first <= now; next = strangers_.next()) {
    reached(options_.probes, LinkProbe::kSilentStranger);
    drop(next->second);
  }
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    Link& link = links_.at(wakes_.begin()->second);
    wakes_.erase(wakes_.begin());
    link.wake.reset();
    tick_link(link, now, out);
  }
  settle(now, out);
}

void Links::tick_link(Link& link, Instant now, LinkEvents& out) {
  for (const host::Lane lane : kBothLanes) {
    LaneState& state = link.lanes[lane_index(lane)];
    if (state.retry.has_value() && *state.retry <= now) dial(link, lane, now);
    if (!state.connection.has_value()) continue;
    Connection& connection = connections_.at(*state.connection);
    if (connection.heard + patience(connection) <= now) {
      reached(options_.probes, LinkProbe::kSilentConnection);
      const Error reason{.where = connection.where,
                         .what = fmt::format("no sign of life on the {} lane for {} s", name(lane),
                                             patience(connection).seconds())};
      drop(connection.id);
      lost(link, lane, reason, now, out);
      continue;
    }
    if (state.up && connection.next_ping <= now) {
      connection.next_ping = now + kPingEvery;
      if (connection.ping != 0) continue;  // the last is still under way
      wire::FrameHeader ping;
      connection.ping = ++last_token_;
      connection.ping_sent = now;
      ping.mutable_ping()->set_token(connection.ping);
      send_frame(connection, encode_frame(ping));
    }
  }
  serve(link, now);
}

LinkStatistics Links::statistics(NodeId node) const {
  const auto found = links_.find(node);
  if (found == links_.end()) return {};
  const Link& link = found->second;
  LinkStatistics statistics{.up = link.lanes[lane_index(host::Lane::kControl)].up,
                            .round_trip = link.round_trip,
                            .last_heard = link.last_heard};
  if (statistics.up) {
    const NodeId via = connections_.at(*link.lanes[lane_index(host::Lane::kControl)].connection).via;
    if (via.value > 0) statistics.relayed_by = via;
  }
  for (const LaneState& lane : link.lanes) {
    statistics.queued_bytes += lane.stream.queued_bytes();
    statistics.acknowledged_bytes += lane.stream.acknowledged_bytes();
    statistics.received_bytes += lane.stream.received_bytes();
  }
  statistics.link = link.serial;
  return statistics;
}

}  // namespace gossamer::net
