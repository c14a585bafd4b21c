// SPDX-License-Identifier: Apache-2.0
#include "net/link/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/node_name.h"
#include "base/printable.h"

namespace gossamer::net {
namespace {

// The bytes that may wait at a relay for one connection. Its window lets so much through; a quarter is for
// the frames' own bytes where messages are small; the rest is for Acks and Pings.
std::uint64_t most_held(std::uint64_t window) { return window + window / 4 + (1ULL << 20); }

Error replaced(const Connection& connection) {
  return {.where = connection.where, .what = "the peer has opened a later connection"};
}

Error forsaken_by(NodeId node) {
  return {.where = certificate_name(node), .what = "the peer has opened the link, and said nothing on it"};
}

// The error, said of a connection.
Error placed(Error error, const Connection& connection) {
  error.where = connection.where;
  return error;
}

}  // namespace

Links::Links(host::Network& network, Options options)
    : options_(std::move(options)),
      rng_(options_.seed, Purpose::kBackoff, options_.self.node.value),
      connections_(network,
                   {.self = options_.self.node,
                    .relays = options_.relays,
                    .most_held = {most_held(options_.control_window), most_held(options_.bulk_window)},
                    .most_held_in_all = options_.relay_bytes},
                   options_.strangers),
      traffic_(connections_, ChannelRules(options_.channels, options_.coordinator,
                                          options_.self.node == options_.coordinator ? Receiver::kCoordinator
                                                                                     : Receiver::kMember)),
      handshake_({.run = options_.run,
                  .self = options_.self,
                  .program = options_.program,
                  .coordinator = options_.coordinator,
                  .probes = options_.probes}) {
  CHECK(options_.self.node.value > 0 && options_.self.incarnation.value > 0);
}

Link* Links::find(NodeId node) {
  const auto found = links_.find(node);
  return found == links_.end() ? nullptr : &found->second;
}

const Link* Links::find(NodeId node) const {
  const auto found = links_.find(node);
  return found == links_.end() ? nullptr : &found->second;
}

Link& Links::make_link(NodeId node) {
  const auto [place, made] = links_.try_emplace(node, options_.control_window, options_.bulk_window);
  CHECK(made, node.value);
  place->second.peer.node = node;
  place->second.serial = ++last_serial_;
  return place->second;
}

void Links::open(const PeerAddress& to, Instant now) {
  CHECK(to.node.value > 0 && to.node != options_.self.node, to.node.value);
  if (forsaken(to.node, now)) end(to.node, forsaken_by(to.node), untold_);
  if (linked(to.node)) return;
  Link& link = make_link(to.node);
  link.address = to;
  link.opener = true;
  link.session = ++last_session_;
  for (LaneState& lane : link.lanes) lane.via = to.via;
  dial_all(link, now);
}

void Links::close(NodeId node, const std::string& reason, Instant now) {
  Link* const link = find(node);
  if (link == nullptr) return;
  LaneState& control = link->lane(host::Lane::kControl);
  if (control.up) {
    // close() would throw the Goodbye away. So the other side closes the connection, or its deadline does.
    Connection& connection = connections_.at(*control.connection);
    wire::FrameHeader goodbye;
    goodbye.mutable_goodbye()->set_reason(reason);
    connections_.send(connection, encode_frame(goodbye));
    connection.advance(ConnectionEvent::kUserCloses);
    connections_.dismiss(connection, now);
    control.connection.reset();
  }
  drop_connections(*link);
  forget(*link);
}

void Links::fence(PeerId peer, Instant now, LinkEvents& out) {
  handshake_.fence(peer);
  const Link* const link = find(peer.node);
  if (link == nullptr || link->peer.incarnation > peer.incarnation) return;
  if (link->peer.incarnation.value == 0) {  // the incarnation that will answer is not known yet
    reached(options_.probes, LinkProbe::kFencedBeforeKnown);
    return;
  }
  Error reason{.where = certificate_name(peer.node), .what = "declared dead"};
  const LaneState& control = link->lane(host::Lane::kControl);
  if (!control.up) return end(peer.node, std::move(reason), out);
  leave(connections_.at(*control.connection),
        {.event = ConnectionEvent::kUserFences,
         .reason = std::move(reason),
         .refusal = Handshake::fenced_refusal(peer)},
        now, out);
}

std::optional<Ticket> Links::send(PeerId to, host::Lane lane, Message message, Instant now) {
  Link* const link = find(to.node);
  if (link == nullptr) return std::nullopt;
  if (to.incarnation.value != 0 && to.incarnation != link->peer.incarnation) return std::nullopt;
  const MessageNumber number = link->lane(lane).stream.send(std::move(message));
  serve(*link, lane, now);
  return Ticket{.node = to.node, .link = link->serial, .lane = lane, .number = number};
}

bool Links::cancel(const Ticket& ticket) {
  Link* const link = find(ticket.node);
  return link != nullptr && link->serial == ticket.link &&
         link->lane(ticket.lane).stream.cancel(ticket.number);
}

bool Links::settled(const Ticket& ticket) const {
  const Link* const link = find(ticket.node);
  return link == nullptr || link->serial != ticket.link ||
         link->lane(ticket.lane).stream.acknowledged() >= ticket.number;
}

void Links::consumed(const Receipt& receipt, Instant now) {
  Link* const link = find(receipt.node);
  if (link == nullptr || link->serial != receipt.link) return;
  link->lane(receipt.lane).stream.consumed(receipt.bytes);
  serve(*link, receipt.lane, now);
}

void Links::on(host::NetworkEvent event, Instant now, LinkEvents& out) {
  tell_untold(out);
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
  Relay& relay = connections_.relay();
  while (relay.has_news()) {
    for (const host::ConnectionId id : relay.take_ready()) {
      const Connection* const connection = connections_.find(id);
      Link* const link = connection == nullptr ? nullptr : find(connection->node);
      if (link != nullptr) serve(*link, connection->lane, now);
    }
    for (host::NetworkEvent& event : relay.take_events()) hand_on(event, now, out);
  }
}

void Links::on_event(const host::Opened& event, Instant now, LinkEvents& out) {
  Connection* const connection = connections_.find(event.connection);
  if (connection == nullptr) return connections_.hang_up(event.connection);
  connection->name = event.peer;
  connection->heard = now;
  if (auto other = Handshake::wrong_end(*connection)) return leave(*connection, *std::move(other), now, out);
  connection->advance(ConnectionEvent::kOpened);
  Link& link = links_.at(connection->node);
  connections_.send(*connection, handshake_.hello(link, connection->lane));
  schedule(link, now);
}

void Links::on_event(host::Received& event, Instant now, LinkEvents& out) {
  Connection* const connection = connections_.find(event.connection);
  if (connection == nullptr) return;
  connections_.consumed(event);
  if (connection->state == ConnectionState::kLeaving)
    return leave(*connection, {.event = ConnectionEvent::kAnyFrame}, now, out);
  heard(*connection, now);
  auto frame = decode_frame(std::move(event.frame));
  if (!frame.ok()) return fault(*connection, frame.error(), now, out);
  on_frame(*connection, std::move(*frame), now, out);
}

void Links::on_event(const host::Written& event, Instant now, LinkEvents&) {
  Connection* const connection = connections_.find(event.connection);
  if (connection == nullptr) return;
  CHECK(event.bytes <= connection->unwritten, event.bytes, connection->unwritten);
  connection->unwritten -= event.bytes;
  if (Link* const link = find(connection->node)) serve(*link, connection->lane, now);
}

void Links::on_event(const host::Closed& event, Instant now, LinkEvents& out) {
  Connection* const connection = connections_.find(event.connection);
  if (connection == nullptr) return;
  leave(*connection, {.event = ConnectionEvent::kClosed, .reason = placed(event.reason, *connection)}, now,
        out);
}

void Links::leave(Connection& connection, Ending ending, Instant now, LinkEvents& out) {
  const NodeId node = connection.node;
  const host::Lane lane = connection.lane;
  switch (const ConnectionAction action = connection.advance(ending.event)) {
    case ConnectionAction::kNothing: return;
    case ConnectionAction::kHangUp: return connections_.drop(connection);
    case ConnectionAction::kLaneDown: {
      const Instant heard = connection.heard;
      connections_.drop(connection);
      return lost(links_.at(node), lane, {.reason = std::move(ending.reason), .heard = heard}, now, out);
    }
    case ConnectionAction::kSayRefusal: return refuse(connection, ending.refusal, now);
    case ConnectionAction::kSayRefusalAndEnd: {
      refuse(connection, ending.refusal, now);
      LaneState& state = links_.at(node).lane(lane);
      state.connection.reset();
      state.up = false;
      return end(node, std::move(ending.reason), out, ending.refused);
    }
    case ConnectionAction::kEndLink: return end(node, std::move(ending.reason), out, ending.refused);
    default: CHECK(false, static_cast<int>(action));
  }
}

void Links::fault(Connection& connection, const Error& error, Instant now, LinkEvents& out) {
  if (connection.state == ConnectionState::kUp)
    out.emplace_back(PeerAtFault{links_.at(connection.node).peer, placed(error, connection)});
  leave(connection, Handshake::fault(placed(error, connection)), now, out);
}

void Links::refuse(Connection& connection, const wire::Refusal& refusal, Instant now) {
  wire::FrameHeader header;
  *header.mutable_refusal() = refusal;
  connections_.send(connection, encode_frame(header));
  connections_.dismiss(connection, now);
}

void Links::drop_connections(Link& link) {
  for (LaneState& lane : link.lanes) {
    lane.up = false;
    drop_connection(lane);
  }
}

void Links::drop_connection(LaneState& lane) {
  if (!lane.connection.has_value()) return;
  Connection& connection = connections_.at(*std::exchange(lane.connection, std::nullopt));
  // The connection that ends the link is gone already.
  if (connection.state != ConnectionState::kGone) connection.advance(ConnectionEvent::kLinkEnds);
  connections_.drop(connection);
}

void Links::end(NodeId node, Error reason, LinkEvents& out, Refused refused) {
  Link& link = links_.at(node);
  drop_connections(link);
  out.emplace_back(LinkEnded{link.peer, std::move(reason), refused});
  forget(link);
}

void Links::forget(const Link& link) {
  const NodeId node = link.peer.node;
  if (link.wake.has_value()) wakes_.erase({*link.wake, node});
  links_.erase(node);
}

void Links::on_frame(Connection& connection, Frame frame, Instant now, LinkEvents& out) {
  const wire::FrameHeader& header = frame.header;
  const auto state = connection.state;
  if (header.has_hello() && state == ConnectionState::kAccepted)
    return on_hello(connection, header.hello(), now, out);
  if (header.has_welcome() && state == ConnectionState::kHelloSent)
    return on_welcome(connection, header.welcome(), now, out);
  if (header.has_refusal() && (state == ConnectionState::kHelloSent || state == ConnectionState::kUp))
    return leave(connection, Handshake::on_refusal(header.refusal(), connection.where), now, out);
  if (state != ConnectionState::kUp) {
    const char* const expected = connection.ours ? "Welcome or Refusal" : "Hello";
    return fault(connection, unexpected_frame(header, expected), now, out);
  }
  if (header.has_goodbye()) {
    const std::string reason = printable(header.goodbye().reason());
    Error left{.where = connection.where, .what = fmt::format("the peer has left: {}", reason)};
    return leave(connection, {.event = ConnectionEvent::kGoodbye, .reason = std::move(left)}, now, out);
  }
  Link& link = links_.at(connection.node);
  const auto next = traffic_.on_frame(connection, link, std::move(frame), now, out);
  if (!next.ok()) return fault(connection, next.error(), now, out);
  connection.advance(ConnectionEvent::kTraffic);
  link.prove();
  if (*next == LinkTraffic::Next::kServe) serve(link, connection.lane, now);
}

void Links::on_hello(Connection& connection, const wire::Hello& hello, Instant now, LinkEvents& out) {
  const Link* const known = find(peer_of(hello.from()).node);
  const bool speaks = known != nullptr && known->opener && connections_.speaks(*known);
  const auto refusal = handshake_.objection(connection, hello, {.link = known, .speaks = speaks});
  if (refusal.has_value()) {
    if (auto told = Handshake::incompatible(connection, hello, *refusal)) out.emplace_back(std::move(*told));
    return leave(connection, {.event = ConnectionEvent::kHelloRefused, .refusal = *refusal}, now, out);
  }
  Link& link = link_for(hello, out);
  connection.where = fmt::format("{} at {}", certificate_name(link.peer.node), connection.where);
  connections_.send(connection, handshake_.welcome(link, connection.lane, hello));
  connection.advance(ConnectionEvent::kHello);
  raise(connection, link, hello.progress(), now, out);
}

Link& Links::link_for(const wire::Hello& hello, LinkEvents& out) {
  const PeerId peer = peer_of(hello.from());
  Link* link = find(peer.node);
  const Handshake::Claim claim = handshake_.claim(hello, link);
  if (claim == Handshake::Claim::kSameLink) return *link;
  if (claim == Handshake::Claim::kTakesOver) {
    // Nothing of ours has been delivered yet, so what is queued goes over the other's link.
    drop_connections(*link);
    for (LaneState& lane : link->lanes) lane.retry.reset();
    link->opener = false;
    link->taken_over = true;
  } else {
    if (link != nullptr) {
      const char* const what =
          link->peer == peer ? "the peer has opened a new link" : "the peer came back as another incarnation";
      end(peer.node, Error{.where = certificate_name(peer.node), .what = what}, out);
    }
    link = &make_link(peer.node);
  }
  link->peer = peer;
  link->session = hello.session();
  link->unproven = true;
  return *link;
}

void Links::on_welcome(Connection& connection, const wire::Welcome& welcome, Instant now, LinkEvents& out) {
  Link& link = links_.at(connection.node);
  if (auto wrong = handshake_.objection(connection, welcome, link))
    return leave(connection, Handshake::wrong_welcome(std::move(*wrong)), now, out);
  link.peer = peer_of(welcome.from());
  if (const auto* const at = link.claimed(connection.lane, options_.coordinator)) dials_.answered(*at);
  connection.advance(ConnectionEvent::kWelcome);
  raise(connection, link, welcome.progress(), now, out);
}

void Links::raise(Connection& connection, Link& link, const wire::Progress& theirs, Instant now,
                  LinkEvents& out) {
  LaneState& lane = link.lane(connection.lane);
  // The other side knows that its earlier connection is lost, or it would not have opened this one.
  if (lane.connection.has_value() && *lane.connection != connection.id) {
    leave(connections_.at(*lane.connection), {.event = ConnectionEvent::kReplaced}, now, out);
    link.went_down(connection.lane, replaced(connection), now, out);
  }
  if (link.was_up && lane.stream.queued_bytes() > 0) reached(options_.probes, LinkProbe::kResent);
  connection.node = link.peer.node;
  connection.next_ping = now;
  connections_.raise(connection);
  link.came_up(connection, now);
  if (auto attached = lane.stream.attach(theirs); !attached.ok()) {
    return leave(connection,
                 {.event = ConnectionEvent::kWrongProgress, .reason = placed(attached.error(), connection)},
                 now, out);
  }
  out.emplace_back(link.up_event(connection.lane, connection.via));
  serve(link, connection.lane, now);
}

void Links::serve(Link& link, host::Lane lane, Instant now) {
  traffic_.serve(link.lane(lane), now);
  schedule(link, now);
}

void Links::schedule(Link& link, Instant now) {
  const std::optional<Instant> wake = link.next_wakeup(connections_, now);
  if (wake == link.wake) return;
  if (link.wake.has_value()) wakes_.erase({*link.wake, link.peer.node});
  if (wake.has_value()) wakes_.insert({*wake, link.peer.node});
  link.wake = wake;
}

std::optional<Instant> Links::next_wakeup() const {
  std::optional<Instant> wake;
  if (connections_.relay().has_news() || !untold_.empty()) return Instant{};
  if (!wakes_.empty()) wake = wakes_.begin()->first;
  if (const auto next = connections_.next_stranger())
    wake = std::min(wake.value_or(next->first), next->first);
  return wake;
}

void Links::tick(Instant now, LinkEvents& out) {
  tell_untold(out);
  for (auto next = connections_.next_stranger(); next.has_value() && next->first <= now;
       next = connections_.next_stranger()) {
    reached(options_.probes, LinkProbe::kSilentStranger);
    leave(connections_.at(next->second), {.event = ConnectionEvent::kSilence}, now, out);
  }
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    Link& link = links_.at(wakes_.begin()->second);
    wakes_.erase(wakes_.begin());
    link.wake.reset();
    tick_link(link, now, out);
  }
  settle(now, out);
}

}  // namespace gossamer::net
