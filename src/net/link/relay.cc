// SPDX-License-Identifier: Apache-2.0
#include "net/link/relay.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "base/check.h"
#include "base/node_name.h"
#include "base/printable.h"
#include "net/link/lane_stream.h"

namespace gossamer::net {
namespace {

// A relayed frame and the header around it fit into a frame, whatever its number is on the next connection.
static_assert(Relay::kMostFrame < kMaxFrameBytes - 64);
static_assert(Relay::kMostFrame > 4 + kMaxHeaderBytes + LaneStream::kPieceBytes);

Error fault(std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .what = "the peer broke the rules of relaying",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "look whether both nodes run the same version"};
}

}  // namespace

std::size_t Relay::Outer::halves_of(NodeId from) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(halves, [from](const auto& one) { return one.second.from == from; }));
}

std::size_t Relay::Outer::notices_of(NodeId from) const {
  const auto found = sources.find(from);
  return found == sources.end() ? 0 : found->second.notices.size();
}

// A node that had nothing to send saves up no turns.
Relay::Source& Relay::Outer::source(NodeId from) {
  Source& source = sources[from];
  if (!source.waits()) source.tag = std::max(source.tag, tag);
  return source;
}

void Relay::up(host::ConnectionId id, const OuterConnection& outer) {
  CHECK(!is_inner(id), id.value);
  // Both sides choose numbers: the side that opened the connection takes the odd ones.
  outers_[id] = {.what = outer, .next_ours = outer.ours ? 1U : 2U, .last_theirs = 0};
}

void Relay::down(host::ConnectionId id) {
  const auto found = outers_.find(id);
  if (found == outers_.end()) return;
  const std::string reason =
      fmt::format("the connection to {} is lost", certificate_name(found->second.what.peer));
  while (!found->second.halves.empty()) end_half({id, found->second.halves.begin()->first}, reason);
  outers_.erase(found);
  ready_.erase(id);
}

std::optional<host::ConnectionId> Relay::outer_to(NodeId peer, host::Lane lane) const {
  for (const auto& [id, outer] : outers_) {
    if (outer.what.peer == peer && outer.what.lane == lane) return id;
  }
  return std::nullopt;
}

Relay::Place Relay::add_half(host::ConnectionId outer) {
  Outer& there = outers_.at(outer);
  const Number number = std::exchange(there.next_ours, there.next_ours + 2);
  there.halves[number] = {};
  return {outer, number};
}

host::ConnectionId Relay::connect(NodeId via, NodeId to, host::Lane lane) {
  const host::ConnectionId inner{kInner | ++last_inner_};
  const auto outer = outer_to(via, lane);
  if (!outer.has_value() || outers_.at(*outer).halves.size() >= kMostInner) {
    events_.emplace_back(host::Closed{
        inner, Error{.where = certificate_name(via),
                     .what = outer.has_value() ? "too many connections through this relay"
                                               : fmt::format("no {} connection to the relay", name(lane))}});
    return inner;
  }
  const Place place = add_half(*outer);
  outers_.at(*outer).halves[place.number].here = inner;
  ends_[inner] = place;
  wire::FrameHeader header;
  header.mutable_relay_open()->set_number(place.number);
  header.mutable_relay_open()->set_to_node(to.value);
  notice(*outer, {}, header);
  events_.emplace_back(host::Opened{inner, {certificate_name(to)}});
  return inner;
}

void Relay::send(host::ConnectionId inner, Slices frame) {
  const std::uint64_t bytes = total_bytes(frame);
  CHECK(bytes <= kMostFrame, bytes);
  const auto found = ends_.find(inner);
  if (found != ends_.end()) push(found->second, std::move(frame));
}

void Relay::close(host::ConnectionId inner) {
  const auto found = ends_.find(inner);
  if (found == ends_.end()) return;
  const Place place = found->second;
  say_closed(place, "closed by the other side");
  forget(place);
}

NodeId Relay::via(host::ConnectionId inner) const {
  const auto found = ends_.find(inner);
  return found == ends_.end() ? NodeId{} : outers_.at(found->second.outer).what.peer;
}

std::map<NodeId, std::set<NodeId>> Relay::pairs() const {
  std::map<NodeId, std::set<NodeId>> pairs;
  for (const auto& [id, outer] : outers_) {
    for (const auto& [number, half] : outer.halves)
      if (half.here.value == 0) pairs[outer.what.peer].insert(outers_.at(half.onward.outer).what.peer);
  }
  return pairs;
}

void Relay::push(const Place& place, Slices frame) {
  Outer& outer = outers_.at(place.outer);
  Half& half = outer.halves.at(place.number);
  const std::uint64_t cost = kHeldCost + total_bytes(frame);
  half.held += cost;
  held_ += cost;
  if (half.queue.empty()) outer.source(half.from).turns.push_back(place.number);
  half.queue.push_back(std::move(frame));
  ready_.insert(place.outer);
}

void Relay::notice(host::ConnectionId outer, NodeId from, const wire::FrameHeader& header) {
  outers_.at(outer).source(from).notices.push_back(encode_frame(header));
  ready_.insert(outer);
}

void Relay::say_closed(const Place& place, const std::string& reason) {
  wire::FrameHeader header;
  header.mutable_relay_close()->set_number(place.number);
  header.mutable_relay_close()->set_reason(reason);
  const Outer& outer = outers_.at(place.outer);
  const auto half = outer.halves.find(place.number);
  // What the peer has opened counts with its refusals: it alone can open less.
  const bool theirs = place.number % 2 == (outer.what.ours ? 0U : 1U);
  const bool of_peer = theirs || half == outer.halves.end();
  notice(place.outer, of_peer ? outer.what.peer : half->second.from, header);
}

void Relay::let_go(Half& half, std::uint64_t cost) {
  half.held -= cost;
  held_ -= cost;
}

void Relay::forget(const Place& place) {
  Outer& outer = outers_.at(place.outer);
  const auto found = outer.halves.find(place.number);
  let_go(found->second, found->second.held);
  if (found->second.here.value != 0) ends_.erase(found->second.here);
  if (!found->second.queue.empty()) std::erase(outer.sources.at(found->second.from).turns, place.number);
  outer.halves.erase(found);
}

void Relay::end_half(const Place& place, const std::string& reason) {
  const Outer& outer = outers_.at(place.outer);
  const Half& half = outer.halves.at(place.number);
  if (half.here.value != 0) {
    events_.emplace_back(
        host::Closed{half.here, Error{.where = certificate_name(outer.what.peer), .what = reason}});
  } else {
    say_closed(half.onward, reason);
    forget(half.onward);
  }
  forget(place);
}

Result<void> Relay::on_frame(host::ConnectionId id, Frame frame) {
  Outer& outer = outers_.at(id);
  const wire::FrameHeader& header = frame.header;
  if (header.kind_case() == wire::FrameHeader::kRelayOpen) return on_open(id, outer, header.relay_open());
  const bool data = header.kind_case() == wire::FrameHeader::kRelayed;
  const Place place{id, data ? header.relayed().number() : header.relay_close().number()};
  const bool theirs = place.number % 2 == (outer.what.ours ? 0U : 1U);
  if (place.number == 0 || (theirs ? place.number > outer.last_theirs : place.number >= outer.next_ours)) {
    return fault(fmt::format("a frame of connection {}", place.number), "one that was opened");
  }
  // A frame that was under way when its connection closed is no fault.
  if (!outer.halves.contains(place.number)) return {};
  if (data) {
    on_relayed(place, std::move(frame.payload));
  } else {
    end_half(place, printable(header.relay_close().reason()));
  }
  return {};
}

Result<void> Relay::on_open(host::ConnectionId id, Outer& outer, const wire::RelayOpen& open) {
  const Number number = open.number();
  const bool theirs = number % 2 == (outer.what.ours ? 0U : 1U);
  if (!theirs || number <= outer.last_theirs) {
    return fault(fmt::format("connection {} opened after {}", number, outer.last_theirs),
                 outer.what.ours ? "a higher even number" : "a higher odd number");
  }
  if ((open.to_node() == 0) == (open.from_node() == 0))
    return fault("RelayOpen to and from, or neither", "one of them");
  const bool full = outer.notices_of(outer.what.peer) >= kMostNotices;
  // A peer that does not read the refusals must not pile them up.
  if (full && open.to_node() != 0) return fault("more requests while answers wait", "that they are read");
  outer.last_theirs = number;
  if (open.to_node() != 0) {
    pass_on(id, outer, number, NodeId{open.to_node()});
  } else if (!full) {
    // Otherwise nothing is said: a relay is not at fault for what others open through it, and they try again.
    accept(id, outer, number, NodeId{open.from_node()});
  }
  return {};
}

void Relay::pass_on(host::ConnectionId id, Outer& outer, Number number, NodeId to) {
  const auto onward = outer_to(to, outer.what.lane);
  std::string wrong;
  if (!options_.relays) {
    wrong = fmt::format("{} does not relay", certificate_name(options_.self));
  } else if (!onward.has_value() || to == outer.what.peer) {
    wrong = fmt::format("{} has no {} connection to {}", certificate_name(options_.self),
                        name(outer.what.lane), certificate_name(to));
  } else if (outer.halves.size() >= kMostInner || outers_.at(*onward).halves.size() >= kMostInner ||
             outers_.at(*onward).halves_of(outer.what.peer) >= kMostInnerOfOne ||
             outers_.at(*onward).notices_of(outer.what.peer) >= kMostNotices) {
    wrong = fmt::format("{} relays too many connections", certificate_name(options_.self));
  }
  if (!wrong.empty()) return say_closed({id, number}, wrong);
  const Place there = add_half(*onward);
  outer.halves[number] = {.here = {}, .onward = there, .from = to};
  outers_.at(*onward).halves[there.number] = {.here = {}, .onward = {id, number}, .from = outer.what.peer};
  wire::FrameHeader header;
  header.mutable_relay_open()->set_number(there.number);
  header.mutable_relay_open()->set_from_node(outer.what.peer.value);
  notice(*onward, outer.what.peer, header);
}

void Relay::accept(host::ConnectionId id, Outer& outer, Number number, NodeId from) {
  const NodeId relay = outer.what.peer;
  std::string wrong;
  if (!trusted_.contains(relay)) {
    wrong = fmt::format("{} takes no connections from {}", certificate_name(options_.self),
                        certificate_name(relay));
  } else if (from == relay || from == options_.self) {
    wrong = fmt::format("{} cannot come through {}", certificate_name(from), certificate_name(relay));
  } else if (outer.halves.size() >= kMostInner) {
    wrong = "too many connections through this relay";
  }
  if (!wrong.empty()) return say_closed({id, number}, wrong);
  const host::ConnectionId inner{kInner | ++last_inner_};
  outer.halves[number] = {.here = inner, .onward = {}, .from = {}};
  ends_[inner] = {id, number};
  events_.emplace_back(host::Accepted{inner,
                                      outer.what.lane,
                                      {certificate_name(from)},
                                      "relay " + certificate_name(relay),
                                      certificate_name(relay)});
}

void Relay::on_relayed(const Place& place, Slices frame) {
  const Half& half = outers_.at(place.outer).halves.at(place.number);
  if (half.here.value != 0) {
    events_.emplace_back(host::Received{half.here, std::move(frame)});
    return;
  }
  const std::uint64_t bytes = total_bytes(frame);
  const std::uint64_t cost = kHeldCost + bytes;
  const Place onward = half.onward;
  const Outer& there = outers_.at(onward.outer);
  const std::uint64_t most = options_.most_held[static_cast<std::size_t>(there.what.lane)];
  if (bytes > kMostFrame || there.halves.at(onward.number).held + cost > most) return cut(onward);
  while (held_ + cost > options_.most_held_in_all) {
    cut(fullest(onward, cost));
    if (!there.halves.contains(onward.number)) return;  // it, or the half that leads the other way
  }
  push(onward, std::move(frame));
}

void Relay::cut(const Place& place) {
  const std::string reason = fmt::format("{} cannot hold more of it", certificate_name(options_.self));
  say_closed(place, reason);
  end_half(place, reason);
}

// Nodes could else fill the room, and each frame of others would end its own connection. All nodes together
// take what waits, so the largest part is no smaller than an equal one.
Relay::Place Relay::fullest(const Place& newcomer, std::uint64_t cost) const {
  struct Waiting {
    Place place;
    NodeId from;
    NodeId to;
    std::uint64_t held = 0;
  };
  std::vector<Waiting> all;
  std::map<NodeId, std::uint64_t> sent;
  std::map<NodeId, std::uint64_t> waited_for;
  std::map<std::pair<NodeId, NodeId>, std::uint64_t> pairs;
  for (const auto& [id, outer] : outers_) {
    for (const auto& [number, half] : outer.halves) {
      const Place place{id, number};
      const std::uint64_t held = half.held + (place == newcomer ? cost : 0);
      if (half.from.value == 0 || held == 0) continue;
      const NodeId to = outer.what.peer;
      all.push_back({.place = place, .from = half.from, .to = to, .held = held});
      sent[half.from] += held;
      waited_for[to] += held;
      pairs[{half.from, to}] += held;
    }
  }
  const auto part = [&](const Waiting& one) {
    return std::tuple(std::max(sent.at(one.from), waited_for.at(one.to)), pairs.at({one.from, one.to}),
                      one.held);
  };
  return std::ranges::max_element(all, {}, part)->place;
}

std::optional<Slices> Relay::next_frame(host::ConnectionId id) {
  const auto found = outers_.find(id);
  if (found == outers_.end()) return std::nullopt;
  Outer& outer = found->second;
  Source* source = nullptr;
  for (auto& [from, one] : outer.sources) {
    if (one.waits() && (source == nullptr || one.tag < source->tag)) source = &one;
  }
  if (source == nullptr) return std::nullopt;
  outer.tag = source->tag;
  if (!source->notices.empty()) {
    Slices frame = std::move(source->notices.front());
    source->notices.pop_front();
    source->tag += kHeldCost + total_bytes(frame);
    return frame;
  }
  const Number number = source->turns.front();
  source->turns.pop_front();
  Half& half = outer.halves.at(number);
  Slices frame = std::move(half.queue.front());
  half.queue.pop_front();
  if (!half.queue.empty()) source->turns.push_back(number);
  const std::uint64_t bytes = total_bytes(frame);
  source->tag += kHeldCost + bytes;
  let_go(half, kHeldCost + bytes);
  if (half.here.value != 0) events_.emplace_back(host::Written{half.here, bytes});
  wire::FrameHeader header;
  header.mutable_relayed()->set_number(number);
  return encode_frame(header, std::move(frame));
}

}  // namespace gossamer::net
