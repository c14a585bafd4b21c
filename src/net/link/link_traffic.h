// SPDX-License-Identifier: Apache-2.0
//
// LinkTraffic: what goes over connections that are up: the messages and Acks of their lanes, Pings, and the
// frames that are relayed. It keeps at most Connection::kUnwritten bytes between a connection and its socket.
//
// Owner: Links. Thread rule: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "net/link/channel_rules.h"
#include "net/link/connection.h"
#include "net/link/connections.h"
#include "net/link/frame.h"
#include "net/link/link.h"
#include "net/link/link_events.h"

namespace gossamer::net {

class LinkTraffic {
 public:
  enum class Next {
    kServe,    // the lane may have something to send now
    kNothing,  // it has no more than before
  };

  // Borrows `connections` for its life.
  LinkTraffic(Connections& connections, ChannelRules rules)
      : connections_(connections), rules_(std::move(rules)) {}

  [[nodiscard]] ChannelRules& rules() { return rules_; }

  // Takes a frame of a connection that is up; messages go into `out`. An error (kBadData) for anything that a
  // correct peer never sends.
  [[nodiscard]] Result<Next> on_frame(Connection& connection, Link& link, Frame frame, Instant now,
                                      LinkEvents& out);
  // Sends what may be sent, and an Ack if one is due.
  void serve(LaneState& lane, Instant now);
  // Sends a Ping if it is time, unless the last one is still under way.
  void ping(Connection& connection, Instant now);

  // Bytes of the pieces of messages on one channel, with headers and all that was sent again.
  [[nodiscard]] std::uint64_t sent_bytes(std::uint32_t channel) const;

 private:
  void on_ping(Connection& connection, const wire::Ping& ping);
  static void on_pong(Connection& connection, Link& link, const wire::Pong& pong, Instant now);

  Connections& connections_;
  ChannelRules rules_;
  std::uint64_t last_token_ = 0;
  std::map<std::uint32_t, std::uint64_t> sent_on_channel_;
};

}  // namespace gossamer::net
