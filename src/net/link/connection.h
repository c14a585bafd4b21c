// SPDX-License-Identifier: Apache-2.0
//
// Connection: what Links knows of one connection. Thread rule: plain value, owned by Links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/ids.h"
#include "base/time.h"
#include "host/api/network.h"
#include "net/link/link_states.h"

namespace gossamer::net {

// The index of a lane's part in an array.
[[nodiscard]] inline std::size_t lane_index(host::Lane lane) { return static_cast<std::size_t>(lane); }

struct Connection {
  static constexpr Duration kGreetingTime{5'000'000'000};
  static constexpr Duration kPingEvery{1'000'000'000};
  // A connection on which nothing came for so long is closed.
  static constexpr Duration kSilence{10'000'000'000};
  // An opener dials again sooner: an attempt takes at most 10 s, and the wait before it at most 5 s. Where
  // two nodes wait for each other, the one with the lower number does not wait for that long.
  static constexpr Duration kAbandoned{16'000'000'000};
  static constexpr Duration kAbandonedByLower{4'000'000'000};
  static constexpr std::uint64_t kUnwritten = 1ULL << 20;  // above it no more is sent

  // Takes the row of this state and the event.
  ConnectionAction advance(ConnectionEvent event) {
    const ConnectionTransition& row = transition(state, event);
    state = row.to;
    return row.action;
  }
  // How long it may be without a frame, or not be open yet, while it belongs to a link.
  [[nodiscard]] Duration patience() const {
    return state == ConnectionState::kHelloSent ? kGreetingTime : kSilence;
  }

  host::ConnectionId id;
  host::Lane lane = host::Lane::kControl;
  bool ours = false;  // we opened it
  ConnectionState state = ConnectionState::kNew;
  NodeId node;        // the node of its link; 0: none yet, or no more
  std::string where;  // for people
  std::string host;   // the host that it came from; empty if it is ours
  NodeId via;         // the relay that it goes through; 0: none
  host::PeerName name;
  std::uint64_t unwritten = 0;  // handed to the network and still in this process
  Instant heard;                // when the last frame came
  Instant next_ping;
  std::uint64_t ping = 0;  // the token of the Ping that has no Pong yet; 0: none
  Instant ping_sent;
};

}  // namespace gossamer::net
