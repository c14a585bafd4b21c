// SPDX-License-Identifier: Apache-2.0
//
// Tests only: how a life knocks at a process that holds links. Thread rule: plain functions.
#pragma once

#include <cstdint>

#include "base/node_name.h"
#include "host/api/network.h"
#include "net/link/frame.h"
#include "net/link/peer_id.h"

namespace gossamer::cluster {

// Its control connection arrives, with its node's certificate.
inline host::Accepted knock(host::ConnectionId connection, net::PeerId from) {
  return {.connection = connection,
          .lane = host::Lane::kControl,
          .peer = {certificate_name(from.node)},
          .from = "10.0.0.9:1",
          .host = "10.0.0.9"};
}

// Its first message on that connection, for the run "run".
inline wire::FrameHeader hello(net::PeerId from, std::uint64_t session) {
  wire::FrameHeader header;
  wire::Hello& hello = *header.mutable_hello();
  hello.set_wire_min(net::kWireMin);
  hello.set_wire_max(net::kWireMax);
  hello.set_run("run");
  hello.mutable_from()->set_node(from.node.value);
  hello.mutable_from()->set_incarnation(from.incarnation.value);
  hello.set_session(session);
  return header;
}

}  // namespace gossamer::cluster
