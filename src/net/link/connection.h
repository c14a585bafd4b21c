// SPDX-License-Identifier: Apache-2.0
//
// Connection: what Links knows of one connection. Thread rule: plain value, owned by Links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/time.h"
#include "host/api/network.h"

namespace gossamer::net {

// The index of a lane's part in an array.
[[nodiscard]] inline std::size_t lane_index(host::Lane lane) { return static_cast<std::size_t>(lane); }

struct Connection {
  enum class Stage {
    kDialing,   // ours: not open yet
    kGreeting,  // waits for the other side's first frame
    kUp,
    kLeaving,  // the last frame is said: closed once the other side has closed, or its time is up
  };

  host::ConnectionId id;
  host::Lane lane = host::Lane::kControl;
  bool ours = false;  // we opened it
  Stage stage = Stage::kDialing;
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
