// SPDX-License-Identifier: Apache-2.0
//
// Relay: connections inside connections (docs/protocols/link.md, "Relay"), all three parts of it. To the two
// nodes at its ends an inner connection looks like any other of host/api/network.h. It has a ConnectionId,
// takes frames and gives NetworkEvents. To the node between them it is two numbers, one on each of two outer
// connections, and the frames that wait to go on. These are bounded: an inner connection that would pass its
// own bound ends. Where there is no room for all, one ends of the node that takes the most of it.
//
// The outer connections belong to links that are up; Links tells which. next_frame() takes the frames for an
// outer connection, when its own have gone. Nodes that send over it share it. Each has as many bytes as the
// others, however many inner connections it has, and whatever it opens and closes.
//
// A pure state machine without time. Thread rule: one owner.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "host/api/network.h"
#include "net/link/frame.h"

namespace gossamer::net {

class Relay {
 public:
  struct Options {
    NodeId self;
    bool relays = false;  // for others
    // The most that may wait for one inner connection in one direction, by lane; and for all together.
    // Counted are the bytes of frames, and kHeldCost for each frame.
    std::array<std::uint64_t, host::kLanes> most_held{};
    std::uint64_t most_held_in_all = 0;
  };
  static constexpr std::uint64_t kHeldCost = 256;
  // The largest frame of an inner connection. Links make none larger. One that takes seconds on a slow line
  // would make it seem silent.
  static constexpr std::uint64_t kMostFrame = 96ULL << 10;
  // The most inner connections over one outer connection: of all nodes, and of one node behind it.
  static constexpr std::size_t kMostInner = 256;
  static constexpr std::size_t kMostInnerOfOne = 16;
  // The most RelayOpen and RelayClose frames of one node that wait for an outer connection.
  static constexpr std::size_t kMostNotices = 1024;

  explicit Relay(const Options& options) : options_(options) {}

  // Whether the connection is an inner one. Calls for such a connection belong here, not to the Network.
  [[nodiscard]] static bool is_inner(host::ConnectionId id) { return (id.value & kInner) != 0; }

  // A connection of a link with `peer` is up, or gone for good: inner connections over it end.
  struct OuterConnection {
    NodeId peer;
    host::Lane lane = host::Lane::kControl;
    bool ours = false;
  };
  void up(host::ConnectionId id, const OuterConnection& outer);
  void down(host::ConnectionId id);
  // Accepts inner connections that this peer says are from others.
  void trust(NodeId peer) { trusted_.insert(peer); }

  // As the functions of host::Network. An inner connection opens, or fails, through the link with `via`.
  [[nodiscard]] host::ConnectionId connect(NodeId via, NodeId to, host::Lane lane);
  void send(host::ConnectionId inner, Slices frame);
  void close(host::ConnectionId inner);
  // The relay that an inner connection goes through; 0 if it has ended.
  [[nodiscard]] NodeId via(host::ConnectionId inner) const;

  // Takes a RelayOpen, Relayed or RelayClose from an outer connection. An error (kBadData) for anything that
  // a correct peer never sends.
  [[nodiscard]] Result<void> on_frame(host::ConnectionId outer, Frame frame);
  // The next frame for an outer connection.
  [[nodiscard]] std::optional<Slices> next_frame(host::ConnectionId outer);

  // Events of inner connections that end here, and the outer connections that have frames to fetch: all since
  // these were called last.
  [[nodiscard]] std::vector<host::NetworkEvent> take_events() { return std::exchange(events_, {}); }
  [[nodiscard]] std::set<host::ConnectionId> take_ready() { return std::exchange(ready_, {}); }
  [[nodiscard]] bool has_news() const { return !events_.empty() || !ready_.empty(); }

  // The nodes that speak through this node, and with which, on either lane; each pair both ways round.
  [[nodiscard]] std::map<NodeId, std::set<NodeId>> pairs() const;
  // Bytes that wait here for all inner connections, counted with kHeldCost.
  [[nodiscard]] std::uint64_t held() const { return held_; }

 private:
  static constexpr std::uint64_t kInner = 1ULL << 63;

  using Number = std::uint64_t;
  // One end of an inner connection on this node.
  struct Place {
    host::ConnectionId outer;
    Number number = 0;

    bool operator==(const Place&) const = default;
  };
  struct Half {
    host::ConnectionId here;        // the inner connection that ends here; 0: it goes on
    Place onward;                   // if so
    NodeId from;                    // if so, the node that sent what waits in the queue; else 0
    std::deque<Slices> queue = {};  // for this outer connection
    std::uint64_t held = 0;
  };
  // What a node sends over an outer connection of another. RelayOpen and RelayClose go first, in their order.
  struct Source {
    std::deque<Slices> notices = {};  // RelayOpen and RelayClose
    std::deque<Number> turns = {};    // halves with something in their queue
    // By start-time fair queueing: the bytes that a node would have sent which has always had something to
    // send. The least goes next.
    std::uint64_t tag = 0;
    [[nodiscard]] bool waits() const { return !notices.empty() || !turns.empty(); }
  };
  struct Outer {
    OuterConnection what;
    Number next_ours = 0;
    Number last_theirs = 0;
    std::map<Number, Half> halves = {};
    // By the node that sends; 0: this one. That of the peer itself has refusals, and ends of what it opened.
    std::map<NodeId, Source> sources = {};
    std::uint64_t tag = 0;  // of what went last
    [[nodiscard]] std::size_t halves_of(NodeId from) const;
    [[nodiscard]] std::size_t notices_of(NodeId from) const;
    // The source, which has something to send from now on.
    [[nodiscard]] Source& source(NodeId from);
  };

  [[nodiscard]] Result<void> on_open(host::ConnectionId id, Outer& outer, const wire::RelayOpen& open);
  void pass_on(host::ConnectionId id, Outer& outer, Number number, NodeId to);
  void accept(host::ConnectionId id, Outer& outer, Number number, NodeId from);
  void on_relayed(const Place& place, Slices frame);
  [[nodiscard]] std::optional<host::ConnectionId> outer_to(NodeId peer, host::Lane lane) const;
  [[nodiscard]] Place add_half(host::ConnectionId outer);
  void push(const Place& place, Slices frame);
  // `from`: the node that it is about. What is said of one inner connection keeps its order.
  void notice(host::ConnectionId outer, NodeId from, const wire::FrameHeader& header);
  void say_closed(const Place& place, const std::string& reason);
  // Ends the half at `place`. The node or half behind it hears why; the outer connection does not.
  void end_half(const Place& place, const std::string& reason);
  // Ends a half that goes on. Both nodes hear that there is no room for it.
  void cut(const Place& place);
  // The half that gives way to `cost` more for `newcomer`; that may be itself.
  [[nodiscard]] Place fullest(const Place& newcomer, std::uint64_t cost) const;
  void forget(const Place& place);
  void let_go(Half& half, std::uint64_t cost);

  const Options options_;
  std::set<NodeId> trusted_;
  std::map<host::ConnectionId, Outer> outers_;
  std::map<host::ConnectionId, Place> ends_;  // of inner connections that end here
  std::uint64_t last_inner_ = 0;
  std::uint64_t held_ = 0;
  std::vector<host::NetworkEvent> events_;
  std::set<host::ConnectionId> ready_;
};

}  // namespace gossamer::net
