// SPDX-License-Identifier: Apache-2.0
//
// Link: what Links knows of one link: the peer, where it is reached, and the two lanes with their streams.
// Thread rule: plain value, owned by Links.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "base/result.h"
#include "base/rng.h"
#include "base/time.h"
#include "host/api/network.h"
#include "net/link/connection.h"
#include "net/link/lane_stream.h"
#include "net/link/link_events.h"
#include "net/link/peer_id.h"

namespace gossamer::net {

class Connections;

// The address of a node: where it listens, an endpoint for each lane. Or, instead, the node `via` through
// which it is reached: that one relays, and both ends have links with it.
struct PeerAddress {
  NodeId node;
  host::Endpoint control = {};
  host::Endpoint bulk = {};
  NodeId via = {};
};

struct LaneStatistics {
  bool up = false;
  Instant since;                           // when it came up or went down
  std::optional<Instant> last_heard = {};  // anything that arrived on it
  std::optional<NodeId> relayed_by = {};   // what is up goes through this node
  // In counted_bytes().
  std::uint64_t queued_bytes = 0;  // sent by the user, not acknowledged
  std::uint64_t acknowledged_bytes = 0;
  std::uint64_t received_bytes = 0;
};

struct LinkStatistics {
  bool up = false;                     // the control connection
  std::optional<Duration> round_trip;  // of the last Ping
  std::optional<Instant> last_heard;   // anything that arrived
  // In counted_bytes(), both lanes.
  std::uint64_t queued_bytes = 0;  // sent by the user, not acknowledged
  std::uint64_t acknowledged_bytes = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t held_bytes = 0;           // queued for the peer, and what it has sent and is not consumed
  std::optional<NodeId> relayed_by = {};  // the control connection, if it is up, goes through this node
  std::uint64_t link = 0;  // differs for each link with the node, as in Ticket; 0: there is none
  std::array<LaneStatistics, host::kLanes> lanes = {};
  [[nodiscard]] const LaneStatistics& lane(host::Lane which) const { return lanes[lane_index(which)]; }
};

struct LaneState {
  // A lane that has been down for so long is told of. A process that begins again is back sooner.
  static constexpr Duration kBlockedAfter{10'000'000'000};

  explicit LaneState(std::uint64_t window) : stream(window) {}
  // The lane's connection is lost. Plans the next attempt of the node that opened the link.
  void plan_next(Instant now, Rng& rng);

  LaneStream stream;
  std::optional<host::ConnectionId> connection;  // dialing or up
  NodeId via;                                    // the relay that its next connection goes through; 0: none
  bool up = false;
  Instant since;                 // when it came up or went down
  std::optional<Instant> heard;  // anything that arrived on it
  int failures = 0;
  std::optional<Instant> retry;
  Error trouble = {};         // why it went down, or could not be opened
  bool said_blocked = false;  // since it went down
};

struct Link {
  Link(std::uint64_t control_window, std::uint64_t bulk_window)
      : lanes{LaneState(control_window), LaneState(bulk_window)} {}
  [[nodiscard]] LaneState& lane(host::Lane which) { return lanes[lane_index(which)]; }
  [[nodiscard]] const LaneState& lane(host::Lane which) const { return lanes[lane_index(which)]; }

  // Since when the lane does not carry what it should, if it does not. It does not while it is not up. The
  // control lane also does not while nothing has come on it, or a Ping has no answer. A moment that has just
  // begun means nothing. Pings of the bulk lane wait behind messages, so only its connection's end says that
  // it is blocked.
  [[nodiscard]] Instant blocked_since(host::Lane which, const Connections& connections, Instant now) const;
  // A connection carries its lane from now on.
  void came_up(const Connection& connection, Instant now);
  // The connection of a lane is gone, on which something last came at `heard`. Tells so, if the lane was up.
  void went_down(host::Lane which, Error reason, Instant heard, LinkEvents& out);
  // Tells once of a lane that has been down for kBlockedAfter.
  void tell_blocked(host::Lane which, Instant now, LinkEvents& out);
  // The events of a lane.
  [[nodiscard]] LinkEvent up_event(host::Lane which, NodeId via) const;
  [[nodiscard]] LinkEvent broken_event(host::Lane which) const;
  [[nodiscard]] LinkEvent failed_event(host::Lane which) const;
  [[nodiscard]] LinkStatistics statistics(const Connections& connections) const;
  // When to look at the link again.
  [[nodiscard]] std::optional<Instant> next_wakeup(const Connections& connections, Instant now) const;

  PeerId peer;  // incarnation 0 until it is known
  PeerAddress address;
  bool opener = false;
  // The address of the lane, if it is dialed directly, and we have nothing but the peer's word for it.
  [[nodiscard]] const host::Endpoint* claimed(host::Lane which, NodeId coordinator) const;
  // Attempts that are planned come at once.
  void hurry(Instant now);
  // Whether the other side, which opened the link, seems not to have it. It seems so if nothing has come
  // after its Hello, and the control lane has had no connection for 4 s. The other side may have ended the
  // link, or be cut off.
  [[nodiscard]] bool forsaken(Instant now) const;

  // Something has come after a Hello or a Welcome: the other side has this link, too.
  void prove() {
    unproven = taken_over = false;
    abandoned.reset();
  }
  // The other side has opened the link, and nothing has come after its Hello.
  bool unproven = false;
  // Likewise, and this node was the opener until then.
  bool taken_over = false;
  std::optional<Instant> abandoned;  // when the link ends if the other side has not dialed it again
  std::uint64_t session = 0;
  std::uint64_t serial = 0;  // ours, never used again
  bool was_up = false;
  std::array<LaneState, host::kLanes> lanes;
  std::optional<Duration> round_trip;
  std::optional<Instant> last_heard;
  std::optional<Instant> wake;  // its entry in Links' list of times
};

}  // namespace gossamer::net
