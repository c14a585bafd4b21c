// SPDX-License-Identifier: Apache-2.0
//
// Links, the part that reads frames: the identity of the other end, and what it may say.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/node_name.h"
#include "base/printable.h"
#include "net/link/links.h"

namespace gossamer::net {
namespace {

struct Parts {
  std::string what;
  std::string got;
  std::string expected;
  std::string fix;
};

wire::Refusal refusal_of(wire::Refusal::Reason reason, const Parts& parts) {
  wire::Refusal refusal;
  refusal.set_reason(reason);
  refusal.set_what(printable(parts.what));
  refusal.set_got(printable(parts.got));
  refusal.set_expected(printable(parts.expected));
  refusal.set_fix(printable(parts.fix));
  return refusal;
}

Error error_of(const wire::Refusal& refusal, ErrorKind kind, const std::string& where) {
  return {.kind = kind,
          .where = where,
          .what = printable(refusal.what()),
          .got = printable(refusal.got()),
          .expected = printable(refusal.expected()),
          .fix = printable(refusal.fix())};
}

// Whether the refusal is final: trying again could not help.
bool is_final(wire::Refusal::Reason reason) {
  return reason != wire::Refusal::BUSY && reason != wire::Refusal::PROTOCOL &&
         reason != wire::Refusal::UNKNOWN;
}

Refused refused_by(wire::Refusal::Reason reason) {
  switch (reason) {
    case wire::Refusal::FENCED: return Refused::kFenced;
    case wire::Refusal::NODE:
    case wire::Refusal::RUN: return Refused::kElsewhere;
    case wire::Refusal::WIRE:
    case wire::Refusal::IDENTITY: return Refused::kIncompatible;
    default: return Refused::kNo;
  }
}

}  // namespace

void Links::send_frame(Connection& connection, Slices frame) {
  connection.unwritten += total_bytes(frame);
  sent_bytes_ += total_bytes(frame);
  if (Relay::is_inner(connection.id)) return relay_.send(connection.id, std::move(frame));
  network_.send(connection.id, std::move(frame));
}

void Links::say_hello(Connection& connection, Link& link) {
  wire::FrameHeader header;
  wire::Hello* const hello = header.mutable_hello();
  hello->set_wire_min(kWireMin);
  hello->set_wire_max(kWireMax);
  hello->set_run(options_.run);
  hello->mutable_from()->set_node(options_.self.node.value);
  hello->mutable_from()->set_incarnation(options_.self.incarnation.value);
  hello->set_to_node(link.peer.node.value);
  hello->set_lane(static_cast<std::uint32_t>(connection.lane));
  hello->set_session(link.session);
  hello->set_resume(link.was_up);
  *hello->mutable_progress() = link.lanes[lane_index(connection.lane)].stream.tell();
  hello->set_program(options_.program);
  send_frame(connection, encode_frame(header));
}

void Links::on_frame(Connection& connection, Frame frame, Instant now, LinkEvents& out) {
  using Stage = Connection::Stage;
  if (connection.stage == Stage::kUp) return on_established(connection, std::move(frame), now, out);
  switch (frame.header.kind_case()) {
    case wire::FrameHeader::kHello:
      if (!connection.ours) return on_hello(connection, frame.header.hello(), now, out);
      break;
    case wire::FrameHeader::kWelcome:
      if (connection.ours) return on_welcome(connection, frame.header.welcome(), now, out);
      break;
    case wire::FrameHeader::kRefusal:
      if (connection.ours) return on_refusal(connection, frame.header.refusal(), now, out);
      break;
    default: break;
  }
  unexpected(connection, frame.header, connection.ours ? "Welcome or Refusal" : "Hello", now, out);
}

void Links::unexpected(Connection& connection, const wire::FrameHeader& header, std::string expected,
                       Instant now, LinkEvents& out) {
  fault(connection,
        Error{.kind = ErrorKind::kBadData,
              .what = "the peer broke the rules of the link",
              .got = fmt::format("a frame of kind {}", static_cast<int>(header.kind_case())),
              .expected = std::move(expected)},
        now, out);
}

wire::Refusal Links::fenced_refusal(PeerId peer) {
  return refusal_of(
      wire::Refusal::FENCED,
      {.what = "this incarnation was declared dead",
       .got = fmt::format("{} incarnation {}", certificate_name(peer.node), peer.incarnation.value),
       .expected = "a later one",
       .fix = "join again"});
}

std::optional<wire::Refusal> Links::objection(const Connection& connection, const wire::Hello& hello) const {
  const NodeId node{hello.from().node()};
  const Incarnation incarnation{hello.from().incarnation()};
  if (hello.wire_min() > kWireMax || hello.wire_max() < kWireMin) {
    return refusal_of(wire::Refusal::WIRE,
                      {.what = "no wire version in common",
                       .got = fmt::format("{} to {}", hello.wire_min(), hello.wire_max()),
                       .expected = fmt::format("one of {} to {}", kWireMin, kWireMax),
                       .fix = "run the same version of gossamer on both"});
  }
  if (hello.run() != options_.run) {
    return refusal_of(wire::Refusal::RUN, {.what = "this node belongs to another run",
                                           .got = fmt::format("run '{}'", printable(hello.run())),
                                           .expected = fmt::format("run '{}'", options_.run),
                                           .fix = "look at the address"});
  }
  if (hello.to_node() != 0 && hello.to_node() != options_.self.node.value) {
    return refusal_of(wire::Refusal::NODE, {.what = "this is another node",
                                            .got = certificate_name(NodeId{hello.to_node()}),
                                            .expected = certificate_name(options_.self.node),
                                            .fix = "look at the address"});
  }
  const std::string claimed = certificate_name(node);
  if (node.value == 0 || incarnation.value == 0 || node == options_.self.node ||
      (!connection.name.certificate.empty() && connection.name.certificate != claimed)) {
    return refusal_of(wire::Refusal::IDENTITY, {.what = "the certificate is of another node",
                                                .got = claimed,
                                                .expected = connection.name.certificate,
                                                .fix = "join with a token of this run"});
  }
  const auto fenced = fenced_.find(node);
  const auto link = links_.find(node);
  if ((fenced != fenced_.end() && incarnation <= fenced->second) ||
      (link != links_.end() && incarnation < link->second.peer.incarnation)) {
    reached(options_.probes, LinkProbe::kFencedHello);
    return fenced_refusal({node, incarnation});
  }
  if (hello.lane() != static_cast<std::uint32_t>(connection.lane)) {
    return refusal_of(wire::Refusal::PROTOCOL, {.what = "Hello for another lane than the connection's",
                                                .got = fmt::format("{}", hello.lane()),
                                                .expected = fmt::format("{}", lane_index(connection.lane)),
                                                .fix = {}});
  }
  return std::nullopt;
}

// Whether a connection of ours has reached the other side and said Hello.
bool Links::speaks(const Link& link) const {
  return std::ranges::any_of(link.lanes, [this](const LaneState& lane) {
    return lane.connection.has_value() &&
           connections_.at(*lane.connection).stage != Connection::Stage::kDialing;
  });
}

std::optional<wire::Refusal> Links::session_objection(const Connection& connection,
                                                      const wire::Hello& hello) const {
  const PeerId peer{NodeId{hello.from().node()}, Incarnation{hello.from().incarnation()}};
  const auto gone = [&] {
    reached(options_.probes, LinkProbe::kGone);
    return refusal_of(wire::Refusal::GONE, {.what = "the link has ended here",
                                            .got = fmt::format("session {}", hello.session()),
                                            .expected = "a new one",
                                            .fix = "open the link again"});
  };
  const auto found = links_.find(peer.node);
  const Link* const link = found == links_.end() ? nullptr : &found->second;
  const bool ours = link != nullptr && link->opener;
  const bool same = link != nullptr && !ours && link->peer == peer && link->session == hello.session();
  const auto newest = newest_session_.find(peer.node);
  const bool late = newest != newest_session_.end() && newest->second.first == peer.incarnation &&
                    hello.session() <= newest->second.second;
  if (!same && (late || hello.resume())) return gone();
  // Both opened at once: the link of the node with the lower number stays, if it can reach the other.
  const bool other_incarnation =
      link != nullptr && link->was_up && link->peer.incarnation != peer.incarnation;
  if (ours && !other_incarnation && options_.self.node < peer.node && speaks(*link)) {
    return refusal_of(
        wire::Refusal::BUSY,
        {.what = "this node is opening the link itself", .got = {}, .expected = {}, .fix = "wait"});
  }
  // This Hello was under way for so long that a later connection has come further.
  if (same && !link->lanes[lane_index(connection.lane)].stream.can_attach(hello.progress())) {
    return refusal_of(
        wire::Refusal::BUSY,
        {.what = "this connection is out of date", .got = {}, .expected = {}, .fix = "connect again"});
  }
  return std::nullopt;
}

Links::Link& Links::link_for(const wire::Hello& hello, LinkEvents& out) {
  const PeerId peer{NodeId{hello.from().node()}, Incarnation{hello.from().incarnation()}};
  newest_session_[peer.node] = {peer.incarnation, hello.session()};
  const auto found = links_.find(peer.node);
  if (found != links_.end()) {
    Link& link = found->second;
    if (!link.opener && link.peer == peer && link.session == hello.session()) return link;
    if (link.opener && !link.was_up) {
      // Nothing of ours has been delivered yet, so what is queued goes over the other's link.
      drop_connections(link);
      for (LaneState& lane : link.lanes) lane.retry.reset();
      link.opener = false;
      link.peer = peer;
      link.session = hello.session();
      return link;
    }
    reached(options_.probes, LinkProbe::kOpenedAnew);
    end(peer.node,
        Error{.where = certificate_name(peer.node),
              .what = link.peer == peer ? "the peer has opened a new link"
                                        : "the peer came back as another incarnation"},
        out);
  }
  Link& link = make_link(peer.node);
  link.peer = peer;
  link.session = hello.session();
  return link;
}

void Links::on_hello(Connection& connection, const wire::Hello& hello, Instant now, LinkEvents& out) {
  auto refusal = objection(connection, hello);
  if (!refusal.has_value()) refusal = session_objection(connection, hello);
  if (refusal.has_value()) {
    const PeerId peer{NodeId{hello.from().node()}, Incarnation{hello.from().incarnation()}};
    const std::string& proven = connection.name.certificate;
    const bool itself = proven.empty() || proven == certificate_name(peer.node);
    if (itself && refusal->reason() == wire::Refusal::WIRE)
      out.emplace_back(Incompatible{peer, error_of(*refusal, ErrorKind::kRefused, connection.where)});
    return refuse(connection, *refusal, now);
  }
  Link* const link = &link_for(hello, out);
  connection.where = fmt::format("{} at {}", certificate_name(link->peer.node), connection.where);
  wire::FrameHeader header;
  wire::Welcome* const welcome = header.mutable_welcome();
  welcome->set_wire(std::min(kWireMax, hello.wire_max()));
  welcome->mutable_from()->set_node(options_.self.node.value);
  welcome->mutable_from()->set_incarnation(options_.self.incarnation.value);
  *welcome->mutable_progress() = link->lanes[lane_index(connection.lane)].stream.tell();
  welcome->set_program(options_.program);
  send_frame(connection, encode_frame(header));
  establish(connection, *link, hello.progress(), now, out);
}

void Links::on_welcome(Connection& connection, const wire::Welcome& welcome, Instant now, LinkEvents& out) {
  Link& link = links_.at(connection.node);
  const PeerId peer{NodeId{welcome.from().node()}, Incarnation{welcome.from().incarnation()}};
  const std::string claimed = certificate_name(peer.node);
  const auto fenced = fenced_.find(peer.node);
  std::string_view wrong;
  ErrorKind kind = ErrorKind::kRefused;
  if (peer.node != link.peer.node || peer.incarnation.value == 0) wrong = "another node answers";
  if (!connection.name.certificate.empty() && connection.name.certificate != claimed) {
    wrong = "the certificate is of another node";
  }
  if (welcome.wire() < kWireMin || welcome.wire() > kWireMax) wrong = "no wire version in common";
  // The other side has not refused us; this incarnation of it will not do.
  if (fenced != fenced_.end() && peer.incarnation <= fenced->second) {
    wrong = "this incarnation was declared dead";
    kind = ErrorKind::kFailed;
  }
  if (link.peer.incarnation.value != 0 && link.peer.incarnation != peer.incarnation) {
    wrong = "the peer came back as another incarnation";
    kind = ErrorKind::kFailed;
  }
  if (!wrong.empty()) {
    return end(link.peer.node,
               Error{.kind = kind,
                     .where = connection.where,
                     .what = std::string(wrong),
                     .got = fmt::format("{} incarnation {}, wire {}", claimed, peer.incarnation.value,
                                        welcome.wire()),
                     .expected = certificate_name(link.peer.node)},
               out);
  }
  link.peer = peer;
  establish(connection, link, welcome.progress(), now, out);
}

void Links::establish(Connection& connection, Link& link, const wire::Progress& theirs, Instant now,
                      LinkEvents& out) {
  LaneState& lane = link.lanes[lane_index(connection.lane)];
  // The other side knows that its earlier connection is lost, or it would not have opened this one.
  if (lane.connection.has_value() && *lane.connection != connection.id) drop(*lane.connection);
  if (link.was_up && lane.stream.queued_bytes() > 0) reached(options_.probes, LinkProbe::kResent);
  strangers_.remove(connection.id);
  connection.node = link.peer.node;
  connection.stage = Connection::Stage::kUp;
  connection.next_ping = now;
  if (!Relay::is_inner(connection.id))
    relay_.up(connection.id, {.peer = link.peer.node, .lane = connection.lane, .ours = connection.ours});
  lane.connection = connection.id;
  lane.retry.reset();
  lane.up = true;
  link.was_up = true;
  link.last_heard = now;
  if (auto attached = lane.stream.attach(theirs); !attached.ok()) {
    Error error = attached.error();
    error.where = connection.where;
    return end(link.peer.node, std::move(error), out);
  }
  if (connection.lane == host::Lane::kControl) out.emplace_back(LinkUp{link.peer});
  serve_lane(link, connection.lane, now);
}

void Links::on_refusal(Connection& connection, const wire::Refusal& refusal, Instant now, LinkEvents& out) {
  Link& link = links_.at(connection.node);
  const bool final = is_final(refusal.reason());
  const bool for_good = final && refusal.reason() != wire::Refusal::GONE;
  const Error reason =
      error_of(refusal, for_good ? ErrorKind::kRefused : ErrorKind::kFailed, connection.where);
  if (final || connection.stage == Connection::Stage::kUp)
    return end(link.peer.node, reason, out, refused_by(refusal.reason()));
  const host::Lane lane = connection.lane;
  drop(connection.id);
  lost(link, lane, reason, now, out);
}

void Links::on_established(Connection& connection, Frame frame, Instant now, LinkEvents& out) {
  Link& link = links_.at(connection.node);
  LaneState& lane = link.lanes[lane_index(connection.lane)];
  wire::FrameHeader& header = frame.header;
  switch (header.kind_case()) {
    case wire::FrameHeader::kData: {
      auto message = lane.stream.on_data(header.data(), std::move(frame.payload), now);
      if (!message.ok()) return fault(connection, message.error(), now, out);
      if (message->has_value()) {
        const Receipt receipt{link.peer.node, link.serial, connection.lane, counted_bytes(**message)};
        out.emplace_back(Arrived{link.peer, std::move(**message), receipt});
      }
      return serve_lane(link, connection.lane, now);
    }
    case wire::FrameHeader::kAck:
      if (auto done = lane.stream.on_ack(header.ack()); !done.ok())
        return fault(connection, done.error(), now, out);
      return serve_lane(link, connection.lane, now);
    case wire::FrameHeader::kPing: {
      // A peer that pings and does not read the answers gets no more of them. Data stops at a lower bound, so
      // that a busy connection still answers. It must: a peer sends no further Ping while one has no Pong.
      if (connection.unwritten >= 2 * kUnwritten) return;
      wire::FrameHeader pong;
      pong.mutable_pong()->set_token(header.ping().token());
      return send_frame(connection, encode_frame(pong));
    }
    case wire::FrameHeader::kPong:
      if (header.pong().token() != connection.ping) return;
      connection.ping = 0;
      lane.failures = 0;  // only now: a peer that welcomes and hangs up is not dialed without end
      if (connection.lane == host::Lane::kControl) link.round_trip = now - connection.ping_sent;
      return;
    case wire::FrameHeader::kRelayOpen:
    case wire::FrameHeader::kRelayed:
    case wire::FrameHeader::kRelayClose:
      if (Relay::is_inner(connection.id))
        return unexpected(connection, header, "nothing relayed twice", now, out);
      if (auto done = relay_.on_frame(connection.id, std::move(frame)); !done.ok())
        fault(connection, done.error(), now, out);
      return;
    case wire::FrameHeader::kRefusal: return on_refusal(connection, header.refusal(), now, out);
    case wire::FrameHeader::kGoodbye:
      return end(link.peer.node,
                 Error{.where = connection.where,
                       .what = fmt::format("the peer has left: {}", printable(header.goodbye().reason()))},
                 out);
    default: return unexpected(connection, header, "Data, Ack, Ping, Pong or Goodbye", now, out);
  }
}

void Links::refuse(Connection& connection, const wire::Refusal& refusal, Instant now) {
  wire::FrameHeader header;
  *header.mutable_refusal() = refusal;
  send_frame(connection, encode_frame(header));
  connection.stage = Connection::Stage::kLeaving;
  connection.node = {};
  if (!strangers_.contains(connection.id)) make_stranger(connection, now);
}

// Trying again would give the same: a link with a peer that breaks the rules is over.
void Links::fault(Connection& connection, Error error, Instant now, LinkEvents& out) {
  error.where = connection.where;
  const NodeId node = connection.node;
  const host::Lane lane = connection.lane;
  if (connection.ours && connection.stage != Connection::Stage::kUp) {
    drop(connection.id);
    return lost(links_.at(node), lane, error, now, out);
  }
  refuse(connection,
         refusal_of(wire::Refusal::PROTOCOL,
                    {.what = error.what, .got = error.got, .expected = error.expected, .fix = error.fix}),
         now);
  if (node.value == 0) return;
  LaneState& state = links_.at(node).lanes[lane_index(lane)];
  state.connection.reset();
  state.up = false;
  end(node, std::move(error), out);
}

}  // namespace gossamer::net
