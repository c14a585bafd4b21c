// SPDX-License-Identifier: Apache-2.0
//
// LinkEvents: what links tell their user. Thread rule: plain values.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "host/api/network.h"
#include "net/link/message.h"
#include "net/link/peer_id.h"

namespace gossamer::net {

// Events of one lane. Up and broken come in turn, up first. `via` is the node that relays; 0: none does.

// A control connection is up: for the first time, or again.
struct LinkUp {
  PeerId peer;
  NodeId via = {};
};
// The control connection is gone; the side that opened it tries again. A process that ended looks like this
// at once.
struct LinkBroken {
  PeerId peer;
  Error reason;
};
// An attempt to open one failed and will be repeated. The node may never have been reached.
struct OpenFailed {
  NodeId node;
  Error reason;
};
// The same three for the bulk connection. The link stands without one, but what needs the lane waits.
struct BulkUp {
  PeerId peer;
  NodeId via = {};
};
struct BulkBroken {
  PeerId peer;
  Error reason;
};
struct BulkFailed {
  NodeId node;
  Error reason;
};
// A lane has had no connection for LaneState::kBlockedAfter. Told once until the lane is up again, on both
// sides. `reason` says what went wrong last. The incarnation is 0 if we never got through.
struct LaneBlocked {
  PeerId peer;
  host::Lane lane = host::Lane::kControl;
  Error reason;
};
// Why the other side refuses the link, if it said so.
enum class Refused {
  kNo,
  kFenced,        // this incarnation was declared dead
  kElsewhere,     // another node or run than we thought
  kIncompatible,  // versions or certificates do not fit
};
// The link is over: the peer left, was fenced, came back as another incarnation, or refused us. A refusal
// that another link would meet, too, has kind kRefused. Others have kFailed: gone, busy, protocol, or no
// reason given. Messages that were not acknowledged are lost. `peer.incarnation` is 0 if we never got
// through.
struct LinkEnded {
  PeerId peer;
  Error reason;
  Refused refused = Refused::kNo;
};
// A node opened a connection and was refused, because it speaks no wire version that this node does. There is
// no link.
struct Incompatible {
  PeerId peer;
  Error reason;
};
// The receipt of a message, to hand back to consumed(). It names one link, of which a node may have several
// in its life.
struct Receipt {
  NodeId node;
  std::uint64_t link = 0;
  host::Lane lane = host::Lane::kControl;
  std::uint64_t bytes = 0;
};
struct Arrived {
  PeerId from;
  Message message;
  Receipt receipt;
};
// The peer sent what no correct peer sends. LinkEnded follows.
struct PeerAtFault {
  PeerId peer;
  Error error;
};
using LinkEvent = std::variant<LinkUp, LinkBroken, OpenFailed, BulkUp, BulkBroken, BulkFailed, LaneBlocked,
                               LinkEnded, Incompatible, PeerAtFault, Arrived>;
using LinkEvents = std::vector<LinkEvent>;

}  // namespace gossamer::net
