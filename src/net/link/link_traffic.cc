// SPDX-License-Identifier: Apache-2.0
#include "net/link/link_traffic.h"

#include <utility>

namespace gossamer::net {

Result<LinkTraffic::Next> LinkTraffic::on_frame(Connection& connection, Link& link, Frame frame, Instant now,
                                                LinkEvents& out) {
  LaneState& lane = link.lane(connection.lane);
  const wire::FrameHeader& header = frame.header;
  switch (header.kind_case()) {
    case wire::FrameHeader::kData: {
      if (header.data().has_start()) {
        if (auto wrong = rules_.objection(link.peer, connection.lane, header.data().start())) return *wrong;
      }
      auto message = lane.stream.on_data(header.data(), std::move(frame.payload), now);
      if (!message.ok()) return message.error();
      if (message->has_value()) {
        const Receipt receipt{link.peer.node, link.serial, connection.lane, counted_bytes(**message)};
        out.emplace_back(Arrived{link.peer, std::move(**message), receipt});
      }
      return Next::kServe;
    }
    case wire::FrameHeader::kAck:
      if (auto done = lane.stream.on_ack(header.ack()); !done.ok()) return done.error();
      return Next::kServe;
    case wire::FrameHeader::kPing: on_ping(connection, header.ping()); return Next::kNothing;
    case wire::FrameHeader::kPong: on_pong(connection, link, header.pong(), now); return Next::kNothing;
    case wire::FrameHeader::kRelayOpen:
    case wire::FrameHeader::kRelayed:
    case wire::FrameHeader::kRelayClose:
      if (Relay::is_inner(connection.id)) return unexpected_frame(header, "nothing relayed twice");
      if (auto done = connections_.relay().on_frame(connection.id, std::move(frame)); !done.ok())
        return done.error();
      return Next::kNothing;
    default: return unexpected_frame(header, "Data, Ack, Ping, Pong or Goodbye");
  }
}

void LinkTraffic::on_ping(Connection& connection, const wire::Ping& ping) {
  // A peer that pings and does not read the answers gets no more of them. Data stops at a lower bound, so
  // that a busy connection still answers. It must: a peer sends no further Ping while one has no Pong.
  if (connection.unwritten >= 2 * Connection::kUnwritten) return;
  wire::FrameHeader pong;
  pong.mutable_pong()->set_token(ping.token());
  connections_.send(connection, encode_frame(pong));
}

void LinkTraffic::on_pong(Connection& connection, Link& link, const wire::Pong& pong, Instant now) {
  if (connection.ping == 0 || pong.token() != connection.ping) return;
  connection.ping = 0;
  // Only now: a peer that welcomes and hangs up is not dialed without end.
  link.lane(connection.lane).failures = 0;
  if (connection.lane == host::Lane::kControl) link.round_trip = now - connection.ping_sent;
}

void LinkTraffic::serve(LaneState& lane, Instant now) {
  if (!lane.up) return;
  Connection& connection = connections_.at(*lane.connection);
  const auto due = lane.stream.ack_due();
  if (due.has_value() && *due <= now && connection.unwritten < Connection::kUnwritten) {
    wire::FrameHeader ack;
    *ack.mutable_ack() = lane.stream.tell();
    connections_.send(connection, encode_frame(ack));
  }
  while (connection.unwritten < Connection::kUnwritten) {
    auto frame = lane.stream.next_frame();
    if (!frame.has_value()) break;
    sent_on_channel_[frame->channel] += total_bytes(frame->bytes);
    connections_.send(connection, std::move(frame->bytes));
  }
  while (connection.unwritten < Connection::kUnwritten) {
    auto frame = connections_.relay().next_frame(connection.id);
    if (!frame.has_value()) break;
    connections_.send(connection, std::move(*frame));
  }
}

void LinkTraffic::ping(Connection& connection, Instant now) {
  if (connection.next_ping > now) return;
  connection.next_ping = now + Connection::kPingEvery;
  if (connection.ping != 0) return;  // the last is still under way
  wire::FrameHeader ping;
  connection.ping = ++last_token_;
  connection.ping_sent = now;
  ping.mutable_ping()->set_token(connection.ping);
  connections_.send(connection, encode_frame(ping));
}

std::uint64_t LinkTraffic::sent_bytes(std::uint32_t channel) const {
  const auto found = sent_on_channel_.find(channel);
  return found == sent_on_channel_.end() ? 0 : found->second;
}

}  // namespace gossamer::net
