// SPDX-License-Identifier: Apache-2.0
#include "net/link/handshake.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/node_name.h"
#include "base/printable.h"

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

void Handshake::fence(PeerId peer) {
  Incarnation& highest = fenced_[peer.node];
  highest = std::max(highest, peer.incarnation);
}

bool Handshake::fenced(PeerId peer) const {
  const auto found = fenced_.find(peer.node);
  return found != fenced_.end() && peer.incarnation <= found->second;
}

bool Handshake::is_known(PeerId peer) const {
  return !known_lives_ || peer.node == options_.coordinator || known_lives_->contains(peer);
}

wire::Refusal Handshake::fenced_refusal(PeerId peer) {
  return refusal_of(
      wire::Refusal::FENCED,
      {.what = "this incarnation was declared dead",
       .got = fmt::format("{} incarnation {}", certificate_name(peer.node), peer.incarnation.value),
       .expected = "a later one",
       .fix = "join again"});
}

Slices Handshake::hello(Link& link, host::Lane lane) const {
  wire::FrameHeader header;
  wire::Hello* const hello = header.mutable_hello();
  hello->set_wire_min(kWireMin);
  hello->set_wire_max(kWireMax);
  hello->set_run(options_.run);
  hello->mutable_from()->set_node(options_.self.node.value);
  hello->mutable_from()->set_incarnation(options_.self.incarnation.value);
  hello->set_to_node(link.peer.node.value);
  hello->set_lane(static_cast<std::uint32_t>(lane));
  hello->set_session(link.session);
  hello->set_resume(link.was_up);
  *hello->mutable_progress() = link.lane(lane).stream.tell();
  hello->set_program(options_.program);
  return encode_frame(header);
}

Slices Handshake::welcome(Link& link, host::Lane lane, const wire::Hello& hello) const {
  wire::FrameHeader header;
  wire::Welcome* const welcome = header.mutable_welcome();
  welcome->set_wire(std::min(kWireMax, hello.wire_max()));
  welcome->mutable_from()->set_node(options_.self.node.value);
  welcome->mutable_from()->set_incarnation(options_.self.incarnation.value);
  *welcome->mutable_progress() = link.lane(lane).stream.tell();
  welcome->set_program(options_.program);
  return encode_frame(header);
}

std::optional<wire::Refusal> Handshake::objection(const Connection& connection, const wire::Hello& hello,
                                                  const Known& known) const {
  auto refusal = identity_objection(connection, hello, known.link);
  return refusal.has_value() ? refusal : session_objection(connection, hello, known);
}

std::optional<wire::Refusal> Handshake::identity_objection(const Connection& connection,
                                                           const wire::Hello& hello, const Link* link) const {
  const PeerId peer = peer_of(hello.from());
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
  const std::string claimed = certificate_name(peer.node);
  if (peer.node.value == 0 || peer.incarnation.value == 0 || peer.node == options_.self.node ||
      (!connection.name.certificate.empty() && connection.name.certificate != claimed)) {
    return refusal_of(wire::Refusal::IDENTITY, {.what = "the certificate is of another node",
                                                .got = claimed,
                                                .expected = connection.name.certificate,
                                                .fix = "join with a token of this run"});
  }
  if (fenced(peer) || (link != nullptr && peer.incarnation < link->peer.incarnation)) {
    reached(options_.probes, LinkProbe::kFencedHello);
    return fenced_refusal(peer);
  }
  if (!is_known(peer)) {
    reached(options_.probes, LinkProbe::kUnknownLife);
    return refusal_of(
        wire::Refusal::BUSY,
        {.what = "the coordinator has not told this node of that incarnation",
         .got = fmt::format("{} incarnation {}", certificate_name(peer.node), peer.incarnation.value),
         .expected = "one that the coordinator gave",
         .fix = "wait"});
  }
  if (hello.lane() != static_cast<std::uint32_t>(connection.lane)) {
    return refusal_of(wire::Refusal::PROTOCOL, {.what = "Hello for another lane than the connection's",
                                                .got = fmt::format("{}", hello.lane()),
                                                .expected = fmt::format("{}", lane_index(connection.lane)),
                                                .fix = {}});
  }
  return std::nullopt;
}

std::optional<wire::Refusal> Handshake::session_objection(const Connection& connection,
                                                          const wire::Hello& hello,
                                                          const Known& known) const {
  const PeerId peer = peer_of(hello.from());
  const auto gone = [&] {
    reached(options_.probes, LinkProbe::kGone);
    return refusal_of(wire::Refusal::GONE, {.what = "the link has ended here",
                                            .got = fmt::format("session {}", hello.session()),
                                            .expected = "a new one",
                                            .fix = "open the link again"});
  };
  const Link* const link = known.link;
  const bool ours = link != nullptr && link->opener;
  const bool same = link != nullptr && !ours && link->peer == peer && link->session == hello.session();
  const auto newest = newest_session_.find(peer.node);
  const bool late = newest != newest_session_.end() && newest->second.first == peer.incarnation &&
                    hello.session() <= newest->second.second;
  if (!same && (late || hello.resume())) return gone();
  // Both opened at once: the link of the node with the lower number stays, if it can reach the other.
  const bool other_incarnation =
      link != nullptr && link->was_up && link->peer.incarnation != peer.incarnation;
  if (ours && !other_incarnation && options_.self.node < peer.node && known.speaks) {
    return refusal_of(
        wire::Refusal::BUSY,
        {.what = "this node is opening the link itself", .got = {}, .expected = {}, .fix = "wait"});
  }
  // This Hello was under way for so long that a later connection has come further.
  if (same && !link->lane(connection.lane).stream.can_attach(hello.progress())) {
    return refusal_of(
        wire::Refusal::BUSY,
        {.what = "this connection is out of date", .got = {}, .expected = {}, .fix = "connect again"});
  }
  return std::nullopt;
}

std::optional<Incompatible> Handshake::incompatible(const Connection& connection, const wire::Hello& hello,
                                                    const wire::Refusal& refusal) {
  const PeerId peer = peer_of(hello.from());
  const std::string& proven = connection.name.certificate;
  const bool itself = proven.empty() || proven == certificate_name(peer.node);
  if (!itself || refusal.reason() != wire::Refusal::WIRE) return std::nullopt;
  return Incompatible{peer, error_of(refusal, ErrorKind::kRefused, connection.where)};
}

Handshake::Claim Handshake::claim(const wire::Hello& hello, const Link* link) {
  const PeerId peer = peer_of(hello.from());
  newest_session_[peer.node] = {peer.incarnation, hello.session()};
  if (link == nullptr) return Claim::kNewLink;
  if (!link->opener && link->peer == peer && link->session == hello.session()) return Claim::kSameLink;
  if (link->opener && !link->was_up) return Claim::kTakesOver;
  reached(options_.probes, LinkProbe::kOpenedAnew);
  return Claim::kNewLink;
}

std::optional<Ending> Handshake::wrong_end(const Connection& connection) {
  const std::string& proven = connection.name.certificate;
  std::string meant = certificate_name(connection.node);
  if (proven.empty() || proven == meant) return std::nullopt;
  return Ending{.event = ConnectionEvent::kOpenedOther,
                .reason = {.where = connection.where,
                           .what = "another node is at this address",
                           .got = printable(proven),
                           .expected = std::move(meant),
                           .fix = "look at the address that the node advertises"}};
}

std::optional<Error> Handshake::objection(const Connection& connection, const wire::Welcome& welcome,
                                          const Link& link) const {
  const PeerId peer = peer_of(welcome.from());
  const std::string claimed = certificate_name(peer.node);
  std::string_view wrong;
  ErrorKind kind = ErrorKind::kRefused;
  if (peer.node != link.peer.node || peer.incarnation.value == 0) wrong = "another node answers";
  if (welcome.wire() < kWireMin || welcome.wire() > kWireMax) wrong = "no wire version in common";
  // The other side has not refused us; this incarnation of it will not do.
  if (fenced(peer)) {
    wrong = "this incarnation was declared dead";
    kind = ErrorKind::kFailed;
  }
  if (!is_known(peer)) {
    wrong = "the coordinator has not told this node of that incarnation";
    kind = ErrorKind::kFailed;
  }
  if (link.peer.incarnation.value != 0 && link.peer.incarnation != peer.incarnation) {
    wrong = "the peer came back as another incarnation";
    kind = ErrorKind::kFailed;
  }
  if (wrong.empty()) return std::nullopt;
  return Error{
      .kind = kind,
      .where = connection.where,
      .what = std::string(wrong),
      .got = fmt::format("{} incarnation {}, wire {}", claimed, peer.incarnation.value, welcome.wire()),
      .expected = certificate_name(link.peer.node)};
}

Ending Handshake::on_refusal(const wire::Refusal& refusal, const std::string& where) {
  const bool final = is_final(refusal.reason());
  const bool for_good = final && refusal.reason() != wire::Refusal::GONE;
  return {.event = final ? ConnectionEvent::kFinalRefusal : ConnectionEvent::kOtherRefusal,
          .reason = error_of(refusal, for_good ? ErrorKind::kRefused : ErrorKind::kFailed, where),
          .refused = refused_by(refusal.reason())};
}

Ending Handshake::wrong_welcome(Error error) {
  wire::Refusal refusal = refusal_of(wire::Refusal::GONE, {.what = "the link has ended here: " + error.what,
                                                           .got = error.got,
                                                           .expected = error.expected,
                                                           .fix = "open another link"});
  return {.event = ConnectionEvent::kWelcomeWrong, .reason = std::move(error), .refusal = std::move(refusal)};
}

Ending Handshake::fault(Error error) {
  wire::Refusal refusal =
      refusal_of(wire::Refusal::PROTOCOL,
                 {.what = error.what, .got = error.got, .expected = error.expected, .fix = error.fix});
  return {.event = ConnectionEvent::kFault, .reason = std::move(error), .refusal = std::move(refusal)};
}

}  // namespace gossamer::net
