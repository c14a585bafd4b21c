// SPDX-License-Identifier: Apache-2.0
//
// Any frames from a stranger, with or without a good Hello before them. Links does not crash and delivers no
// more than it was sent. A good peer gets its message through afterwards.
//
// The first byte chooses:
// - bit 0: begin with a good Hello
// - bit 1: take the bulk lane
// - bit 2: make the node a relay with a link to another node. It trusts the stranger as a relay, and reaches
//   a third node through it.
//
// Frames follow, each behind its length in two bytes.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "net/link/links.h"

namespace {

using namespace gossamer;
using namespace gossamer::net;

// Takes frames and forgets them.
class Sink final : public host::Network {
 public:
  Result<host::Endpoint> listen(const host::Endpoint& at, host::Lane) override { return at; }
  host::ConnectionId connect(const host::Endpoint&, host::Lane) override { return ++last_; }
  void send(host::ConnectionId, Slices frame) override { CHECK(total_bytes(frame) <= kMaxFrameBytes); }
  void consumed(host::ConnectionId, std::uint64_t) override {}
  void close(host::ConnectionId) override {}
  host::QuestionId ask(const host::Endpoint&, host::Question) override { return {}; }
  void answer(host::QuestionId, Result<std::string>) override {}

 private:
  host::ConnectionId last_{1000};
};

Slices hello(std::uint64_t node, host::Lane lane) {
  wire::FrameHeader header;
  wire::Hello* const hello = header.mutable_hello();
  hello->set_wire_min(kWireMin);
  hello->set_wire_max(kWireMax);
  hello->set_run("run");
  hello->mutable_from()->set_node(node);
  hello->mutable_from()->set_incarnation(1);
  hello->set_lane(static_cast<std::uint32_t>(lane));
  hello->set_session(1);
  hello->mutable_progress()->set_window(1 << 20);
  return encode_frame(header);
}

std::uint64_t delivered(Links& links, const LinkEvents& events) {
  std::uint64_t bytes = 0;
  for (const LinkEvent& event : events) {
    if (const auto* const arrived = std::get_if<Arrived>(&event)) {
      bytes += counted_bytes(arrived->message) - kMessageCost;
      links.consumed(arrived->receipt, Instant{});
    }
  }
  return bytes;
}

constexpr std::uint64_t kRelayRoom = 1U << 20;

Links make_links(host::Network& network, bool relays) {
  Links::Options options;
  options.run = "run";
  options.self = {NodeId{1}, Incarnation{1}};
  options.program = "fuzz";
  options.relays = relays;
  options.relay_bytes = kRelayRoom;
  return Links(network, std::move(options));
}

// Node 4 gets a link, to which frames can be relayed, and node 5 is opened through the stranger.
void make_relay(Links& links, host::Lane lane) {
  LinkEvents events;
  const host::ConnectionId id{3};
  links.on(host::Accepted{id, lane, {"node-4"}, "other", "there"}, Instant{}, events);
  links.on(host::Received{id, hello(4, lane)}, Instant{}, events);
  links.trust_relay(NodeId{2});
  links.open({.node = NodeId{5}, .via = NodeId{2}}, Instant{});
  links.tick(Instant{}, events);
}

void good_peer_gets_through(Links& links, Instant now) {
  const host::ConnectionId id{2};
  LinkEvents events;
  links.on(host::Accepted{id, host::Lane::kControl, {"node-3"}, "good", "here"}, now, events);
  links.on(host::Received{id, hello(3, host::Lane::kControl)}, now, events);
  wire::FrameHeader data;
  data.mutable_data()->set_number(1);
  data.mutable_data()->mutable_start()->set_body("hi");
  links.on(host::Received{id, encode_frame(data)}, now, events);
  CHECK(delivered(links, events) == 2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Sink network;
  const bool relays = (data[0] & 4) != 0;
  Links links = make_links(network, relays);
  const host::Lane lane = (data[0] & 2) != 0 ? host::Lane::kBulk : host::Lane::kControl;
  const host::ConnectionId id{1};
  LinkEvents events;
  Instant now;
  links.on(host::Accepted{id, lane, {"node-2"}, "stranger", "there"}, now, events);
  if ((data[0] & 1) != 0) links.on(host::Received{id, hello(2, lane)}, now, events);
  if (relays) make_relay(links, lane);
  std::span<const std::uint8_t> rest(data + 1, size - 1);
  while (rest.size() >= 2) {
    const std::size_t length = std::min<std::size_t>(rest[0] + 256U * rest[1], rest.size() - 2);
    links.on(host::Received{id, {Slice::copy_of(std::as_bytes(rest.subspan(2, length)))}}, now, events);
    rest = rest.subspan(2 + length);
    now = now + from_milliseconds(40);
    links.tick(now, events);
    CHECK(links.relay_held() <= kRelayRoom + 2 * Connection::kUnwritten);
  }
  CHECK(delivered(links, events) <= size);
  good_peer_gets_through(links, now);
  return 0;
}
